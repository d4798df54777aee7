package processlock

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rule 23. All's keys are each lock once, in canonical order.
func TestAllSortsAndDropsDoubles(t *testing.T) {
	canonical := func(k Keys) (texts []string) {
		for _, k := range k.keys {
			texts = append(texts, k.Canonical())
		}
		return texts
	}
	k := All("b", []any{"a"}, "a", 7, 7.0, MustKey("a"), []any{"a", "b"}, All("c", All(), All("b", 10)), nil, map[string]int{}, "aaaaaaaaaa")
	require.NoError(t, k.err)
	assert.Equal(t, []string{
		"null", "number:10", "number:7", "object:{}", "string:10:aaaaaaaaaa", "string:1:a", "string:1:a\x00string:1:b", "string:1:b", "string:1:c",
	}, canonical(k))
	assert.Equal(t, MustKey([]any{"a"}), k.keys[5], "the first spelling stays")
	many := []any{[]any{"a"}}
	for i := range 50 {
		many = append(many, "a", i)
	}
	assert.Equal(t, MustKey([]any{"a"}), All(many...).keys[50], "the first of many")
	assert.Empty(t, All().keys)
	assert.NoError(t, All().err)
	assert.Empty(t, All(Keys{}, All()).keys)
	assert.Equal(t, All("a", "b"), All("b", "a", All("a")))
	assert.Len(t, All([]any{"a", "b"}).keys, 1, "a list is one key")

	// Rule 17.
	for _, c := range []struct {
		keys Keys
		err  string
	}{
		{All("a", []any{1, func() {}}, Key{}), "processlock: keys[1][1]: func() has no stable identity"},
		{All(All("a", Key{}), func() {}), "processlock: keys[1]: the zero Key has no stable identity"},
		{All([]any{All()}), "processlock: keys[0][0]: keys from All can't be part of a key; give them to WithLock alone, or to another All"},
	} {
		assert.EqualError(t, c.keys.err, c.err)
		assert.ErrorIs(t, c.keys.err, ErrKey)
		assert.Empty(t, c.keys.keys)
	}
}

// Keys are ordered as their canonical texts are.
func TestKeyCompare(t *testing.T) {
	keys := []Key{{}, MustKey()}
	for _, v := range []any{
		"", "a", "b", "aa", "0", "\xff", "\x00", "aaaaaaaaaa", "aaaaaaaaab", strings.Repeat("a", 100), strings.Repeat("a", 99) + "b", "λ", "😀", "aa😀",
		0, 1, -1, 10, 100, 9, -10, int64(math.MaxInt64), int64(math.MinInt64), 1.5, 1e21, 1e30, negZero, uint64(math.MaxUint64), nil, true, false, big.NewInt(1), day,
		[]any{"a", "b"}, []any{"a", 1}, []any{1, "a"}, []any{10, 1}, []any{"aaaaaaaaaa", 1}, []any{strings.Repeat("a", 100), 1}, []byte("a"), map[string]int{}, []any{""},
	} {
		keys = append(keys, MustKey(v))
	}
	for _, k := range keys {
		for _, o := range keys {
			want := strings.Compare(k.Canonical(), o.Canonical())
			assert.Equal(t, want, signOf(k.compare(o)), "%v %v", k, o)
		}
	}
}

func signOf(n int) int { return min(max(n, -1), 1) }

// The order of texts is that of their UTF-16 code units.
func TestCompareUTF16(t *testing.T) {
	runes := []rune{0, 'a', 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfeff, 0xfffd, 0xffff, 0x10000, 0x1f600, 0x10ffff, 0xdfff, 'λ', 0xefff, 0xf000}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(5) {
			r := runes[random.IntN(len(runes))]
			if random.IntN(4) == 0 {
				r = rune(random.IntN(utf8.MaxRune + 1))
			}
			b.WriteRune(r)
		}
		return b.String()
	}
	for range 100_000 {
		a, b := text(), text()
		want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		if got := signOf(compareUTF16(a, b)); got != want {
			require.Equal(t, want, got, "%q %q", a, b)
		}
		require.Equal(t, len(utf16.Encode([]rune(a))), utf16Len(a), "%q", a)
		require.Equal(t, len(a), utf16Prefix(a+b, utf16Len(a)), "%q", a)
	}
}

// Every instant that a Time can hold has a text of its own; where the years of
// Time's own calendar fit into 32 bits,
// they agree.
func TestKeyDates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		at := time.Unix(random.Int64N(1<<random.IntN(56)+1)-random.Int64N(1<<random.IntN(56)+1), random.Int64N(1e9)).UTC()
		year := fmt.Sprintf("%04d", at.Year())
		if at.Year() < 0 || at.Year() > 9999 {
			year = fmt.Sprintf("%+07d", at.Year())
		}
		milli := at.Format(".000000000")
		for len(milli) > 4 && milli[len(milli)-1] == '0' {
			milli = milli[:len(milli)-1]
		}
		require.Equal(t, "date:"+year+at.Format("-01-02T15:04:05")+milli+"Z", string(appendDate(nil, at)))
	}
	seen := map[string]int64{}
	for _, base := range []int64{math.MinInt64, math.MaxInt64, math.MaxInt64 - 62135596800, math.MinInt64 + 62135596800, 0} {
		for d := int64(-3); d <= 3; d++ {
			text := MustKey(time.Unix(base+d, 0)).Canonical() // wraps
			if other, ok := seen[text]; ok {
				assert.Equal(t, other, base+d, text)
			}
			seen[text] = base + d
		}
	}
	assert.Contains(t, seen, "date:+292277024627-12-06T15:30:07.000Z")
	assert.Contains(t, seen, "date:-292277024626-01-27T08:29:52.000Z")
}
