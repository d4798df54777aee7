package processlock

import (
	"crypto/sha256"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzKey checks the encoder against the model: a value's text is the model's
// whatever its spelling, and two keys are one lock exactly if the model says so.
func FuzzKey(f *testing.F) {
	f.Add([]byte{}, uint64(0))
	f.Add([]byte("\x0a\x03\x07\x05hello\x02\x01\x07\x00\x0a\x03\x07\x05hello\x02\x01\x07"), uint64(1))
	f.Add([]byte("\x0e\x03\x01\x00\x02\x05\x07\x07\x00\x01\x05\x00\x0f\x02\x05\x00\x05\x01"), uint64(2))
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		data := make([]byte, random.IntN(200))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data, random.Uint64())
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		s := &nodeSource{data}
		nodes := []keyNode{s.node(4, false), s.node(4, false), s.node(2, false)}
		r := rand.New(rand.NewPCG(seed, 0))
		var keys []Key
		for _, n := range nodes {
			want := n.lock()
			for range 3 {
				v := n.spell(r, false)
				k, err := KeyOf(v)
				require.NoError(t, err, "%#v", v)
				require.Equal(t, want, k.Canonical(), "%#v", v)
				checkNormal(t, k)
				checkString(t, k)
				checkID(t, k)
				inside, err := KeyOf(k, []any{k})
				require.NoError(t, err)
				require.Equal(t, n.canonical(false)+"\x00array:["+n.canonical(false)+"]", inside.Canonical())
				checkString(t, inside)
				keys = append(keys, k)
			}
		}
		for i, a := range keys {
			for j, b := range keys {
				same := nodes[i/3].lock() == nodes[j/3].lock()
				assert.Equal(t, same, a.same(b))
				assert.Equal(t, same, a.compare(b) == 0)
				assert.Equal(t, strings.Compare(a.Canonical(), b.Canonical()), signOf(a.compare(b)))
				if same {
					assert.Equal(t, a.String(), b.String())
				}
			}
		}
	})
}

// checkID checks k's ID against the definition.
func checkID(t *testing.T, k Key) {
	t.Helper()
	text := k.Canonical()
	sum := sha256.Sum256([]byte(text))
	want := new(big.Int).SetBytes(sum[:8])
	if digits, ok := strings.CutPrefix(text, "bigint:"); ok && !k.list {
		n, ok := new(big.Int).SetString(digits, 10)
		require.True(t, ok)
		want = n.And(n, new(big.Int).SetUint64(math.MaxUint64))
	}
	require.Equal(t, int64(want.Uint64()), k.ID())
}
