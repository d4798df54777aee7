package processlock

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// J1, J4, J7: what is one lock and what is not. Each group is one lock, and no
// two groups are.
func TestKeySame(t *testing.T) {
	type two struct{ A, B string }
	type ab struct {
		B int `json:"b"`
		A int `json:"a"`
	}
	type optional struct {
		A int `json:"a"`
		B int `json:"b,omitempty"`
		C any `json:"c,omitzero"`
	}
	groups := [][]any{
		{"a", namedString("a"), ptrTo("a"), marshaler{"a"}, []any{"a"}, []string{"a"}, [1]namedString{"a"}, &[]any{marshaler{"a"}}, MustKey("a"), []Key{MustKey("a")}},
		{[]any{[]any{"a"}}, [][]string{{"a"}}, []any{MustKey([]any{"a"})}, [1][1]string{{"a"}}},
		{7, int8(7), uint64(7), uintptr(7), 7.0, float32(7), json.Number("7"), json.Number("7e0"), namedInt16(7), time.Duration(7), []int{7}, [1]any{7.0}, []float32{7}, MustKey(7)},
		{[]any{[]int{7}}, []any{MustKey([]float64{7})}},
		{"7", numberKind("7")},
		{big.NewInt(7), *big.NewInt(7), []*big.Int{big.NewInt(7)}},
		{float64(1 << 60), uint64(1152921504606847000), json.Number("1.152921504606847e18"), json.Number("1152921504606847000")},
		{int64(1 << 60), json.Number("1152921504606846976")},
		{uint64(math.MaxUint64)},
		{float64(1 << 63), json.Number("9223372036854775808"), uint64(9223372036854776000)},
		{0, 0.0, uint8(0), json.Number("0")},
		{negZero, float32(negZero), json.Number("-0"), json.Number("-0e9"), []any{negZero}},
		{nil, (*int)(nil), []any{nil}, []error{nil}, MustKey(nil)},
		{[]any{}, []int(nil), [0]string{}, MustKey()},
		{[]any{nil, nil}, MustKey(nil, nil), [2]*int{}},
		{[]any{[]any{}}, [][]int{nil}},
		{true, boolKind(true)}, {false}, {"true"}, {"null"}, {"", []string{""}},
		{[]byte("a"), [1]byte{'a'}, bytesKind("a"), [][]byte{[]byte("a")}},
		{map[string]int{"a": 1, "b": 2}, ab{2, 1}, &ab{2, 1}, optional{1, 2, nil}, []any{ab{2, 1}}},
		{map[any]int{"a": 1, "b": 2}, map[any]any{"a": 1.0, "b": uint8(2)}},
		{map[string]int{"a": 1}, optional{A: 1}, optional{1, 0, (*int)(nil)}},
		{map[string]any{"a": 1, "b": nil}},
		{map[string]int{}, struct{}{}}, {map[int]int{}}, {map[int]struct{}{}},
		// Parts don't run into each other.
		{[]any{"aa", "b"}, []string{"aa", "b"}}, {[]any{"a", "ab"}}, {"a\x00b"}, {[]any{"a", "b"}, [2]string{"a", "b"}},
		{"string:1:a\x00string:1:b"}, {"a\x00string:1:b"}, {[]any{"a", ""}}, {[]any{"", "a"}},
		{two{"a|b", "c"}}, {two{"a", "b|c"}}, {two{"", ""}}, {two{"a", ""}}, {two{"", "a"}},
		{"\xff"}, {"\xfe"}, {"\uFFFD"}, {"é"}, {"e\u0301"},
		{day, day.In(zone), instant(day), ptrTo(day)}, {day.Add(1)}, {day.Add(1000)}, {day.Add(time.Millisecond)}, {dayText[5:]},
	}
	now := time.Now() // with a monotonic reading
	groups = append(groups, []any{now, now.Round(0), now.UTC(), now.In(zone)})
	for i, group := range groups {
		first := MustKey(group[0])
		for _, v := range group {
			k := MustKey(v)
			assert.True(t, k.same(first), "%#v and %#v", v, group[0])
			assert.Equal(t, first.Canonical(), k.Canonical())
			assert.Equal(t, first.String(), k.String())
			checkNormal(t, k)
		}
		for _, other := range groups[:i] {
			k := MustKey(other[0])
			assert.False(t, k.same(first), "%#v and %#v", other[0], group[0])
			assert.NotEqual(t, first.Canonical(), k.Canonical())
			assert.NotEqual(t, first.ID(), k.ID())
		}
	}
}

// KeyOf of one argument reads it; of several or none it is the list of them.
func TestKeyOfParts(t *testing.T) {
	assert.Equal(t, MustKey("a", "b"), MustKey([]any{"a", "b"}))
	assert.Equal(t, MustKey("a", "b"), MustKey([]string{"a", "b"}))
	assert.Equal(t, MustKey("a"), stringKey("a"))
	assert.Equal(t, MustKey(7), intKey(7))
	assert.Equal(t, MustKey([]any{}), MustKey())
	assert.Equal(t, "", MustKey().Canonical())
	assert.NotEqual(t, Key{}, MustKey(), "the empty list is a lock, and not the zero Key")
	assert.Equal(t, `[]`, MustKey().String())
	assert.Equal(t, MustKey([]any{"a", 1}), MustKey(MustKey("a", 1)), "a Key is itself")
	assert.NotEqual(t, MustKey("a"), MustKey([]any{"a"}), "== knows lists")
	assert.True(t, MustKey("a").same(MustKey([]any{"a"})))
	assert.Equal(t, "array:[string:1:a]\x00null", MustKey(MustKey([]any{"a"}), nil).Canonical())
	assert.Equal(t, "string:1:a\x00null", MustKey(MustKey("a"), nil).Canonical())
}

// Rule 16. MustKey panics with the error that KeyOf returns.
func TestMustKey(t *testing.T) {
	_, err := KeyOf("a", func() {})
	assert.PanicsWithError(t, err.Error(), func() { MustKey("a", func() {}) })
	defer func() { assert.ErrorIs(t, recover().(error), ErrKey) }()
	MustKey(func() {})
}

// Rule 13. The zero Key prints as what it is.
func TestZeroKey(t *testing.T) {
	assert.Equal(t, "<zero Key>", Key{}.String())
	assert.Equal(t, "", Key{}.Canonical())
	assert.False(t, Key{}.same(MustKey()))
}

// A key is copied: nothing that happens to the value later reaches it.
func TestKeyIsCopied(t *testing.T) {
	list := []any{"a", []byte("bytes")}
	m := map[string]int{"a": 1}
	n := big.NewInt(7)
	type s struct {
		M map[string]int
		L []any
		N *big.Int
	}
	v := &s{m, list, n}
	keys := []Key{MustKey(list), MustKey(m), MustKey(v), MustKey(n), MustKey(list...)}
	texts := []string{}
	for _, k := range keys {
		texts = append(texts, strings.Clone(k.Canonical()))
	}
	list[0], list[1].([]byte)[0] = "b", 'x'
	m["a"], m["b"] = 2, 3
	n.SetInt64(8)
	v.L = nil
	for i := range 100 { // the scratch memory is used again
		MustKey("other", i, m)
	}
	for i, k := range keys {
		assert.Equal(t, texts[i], k.Canonical())
	}
}

// Scratch memory is shared by goroutines, one after the other.
func TestKeyConcurrent(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				v := []any{g, i, map[string]any{"g": g, "i": strconv.Itoa(i)}, &linked{Name: strconv.Itoa(g)}}
				want := fmt.Sprintf("number:%d\x00number:%d\x00object:{string:1:g=number:%d,string:1:i=string:%d:%d}\x00object:{string:4:name=string:1:%d,string:4:next=null}",
					g, i, g, len(strconv.Itoa(i)), i, g)
				if k := MustKey(v...); k.Canonical() != want {
					t.Errorf("%q is not %q", k.Canonical(), want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// J7: the order of maps is not the key's.
func TestKeyMapOrder(t *testing.T) {
	var want Key
	for i := range 100 {
		object, m, set := map[string]int{}, map[any]any{}, map[any]struct{}{}
		for _, n := range rand.Perm(50) {
			object[strconv.Itoa(n)] = n
			m[n] = strconv.Itoa(n)
			m[strconv.Itoa(n)] = n
			set[float64(n)/2] = struct{}{}
			set[strconv.Itoa(n)] = struct{}{}
		}
		k := MustKey(object, m, set)
		if i == 0 {
			want = k
		}
		require.Equal(t, want, k)
	}
}

// P17. Keys that differ have ids that differ.
func TestKeyIDCollisions(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n = 10_000
	}
	seen := make(map[int64]struct{}, n)
	for i := range n {
		seen[MustKey("invoice", i/7, i%7).ID()] = struct{}{}
	}
	assert.Len(t, seen, n)
}

// The scratch memory of one huge key is not kept.
func TestKeySpareMemory(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for range 10 {
		MustKey(huge, huge)
		e := encoders.Get().(*encoder)
		assert.LessOrEqual(t, cap(e.buf), maxSpare)
		encoders.Put(e)
	}
}
