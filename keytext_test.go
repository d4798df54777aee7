package processlock

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestKeyString(t *testing.T) {
	type struct1 struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	for _, c := range []struct {
		key  Key
		want string
	}{
		{Key{}, `<zero Key>`},
		{MustKey("b"), `["b"]`},
		{MustKey([]any{"b"}), `["b"]`},
		{MustKey([]any{[]any{"b"}}), `[["b"]]`},
		{MustKey(), `[]`},
		{MustKey(""), `[""]`},
		{MustKey("invoice", 7), `["invoice",7]`},
		{MustKey(-7), `[-7]`},
		{MustKey(negZero), `[-0]`},
		{MustKey(1e21), `[1e+21]`},
		{MustKey(nil), `[null]`},
		{MustKey(true, false, nil), `[true,false,null]`},
		{MustKey(big.NewInt(7)), `[7n]`},
		{MustKey(big.NewInt(-7), 1), `[-7n,1]`},
		{MustKey(day), `[2025-11-30T01:02:03.004Z]`},
		{MustKey(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), 1), `[-000001-01-01T00:00:00.000Z,1]`},
		{MustKey([]byte("a\x00\xff]")), `[bytes"a\x00\xff]"]`},
		{MustKey([]byte{}, [2]byte{'a', 'b'}), `[bytes"",bytes"ab"]`},
		{MustKey(map[string]struct{}{"b": {}, "a": {}}), `[set["a","b"]]`},
		{MustKey(map[int]struct{}{}), `[set[]]`},
		{MustKey(struct1{1, "x"}), `[{"a":1,"b":"x"}]`},
		{MustKey(map[string]any{}, []any{}), `[{},[]]`},
		{MustKey(map[any]any{1: []any{1}, "a": map[any]any{nil: true}}), `[map{1:[1],"a":map{null:true}}]`},
		{MustKey(map[time.Time]big.Int{day.UTC(): *big.NewInt(1)}), `[map{2025-11-30T01:02:03.004Z:1n}]`},
		{MustKey("λ日😀é"), `["λ日😀é"]`},
		{MustKey("a\x00b\n\"\\\x7f"), `["a\x00b\n\"\\\x7f"]`},
		{MustKey("\u202eabc\u2066\u2028\ufeff\u00a0"), `["\u202eabc\u2066\u2028\ufeff\u00a0"]`},
		{MustKey("\xff\xe2\x82"), `["\xff\xe2\x82"]`},
		{MustKey("a\x00string:1:b", "]},=", "c"), `["a\x00string:1:b","]},=","c"]`},
		{MustKey([]byte("😀")[:2], "x"), `[bytes"\xf0\x9f","x"]`},
		{MustKey("\xf0\x9f", "😀", "x"), `["\xf0\x9f","😀","x"]`},
		{MustKey(map[string]any{"string:1:a=": "}"}), `[{"string:1:a=":"}"}]`},
	} {
		assert.Equal(t, c.want, c.key.String())
		assert.Equal(t, c.want, fmt.Sprintf("%v", c.key))
		assert.Equal(t, "<"+c.want+">", fmt.Sprintf("<%s>", []any{c.key}[0]))
	}
}

// A text is cut to 200 bytes where it would be longer, between runes and escapes
// and never inside.
func TestKeyStringCut(t *testing.T) {
	fit := func(n int) string { return `["` + strings.Repeat("x", n) + `"]` }
	assert.Equal(t, fit(196), MustKey(strings.Repeat("x", 196)).String(), "200 bytes are not cut")
	assert.Equal(t, fit(197)[:197]+"...", MustKey(strings.Repeat("x", 197)).String())
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"runes":      {strings.Repeat("日", 100), `["` + strings.Repeat("日", 65) + "..."},
		"wide runes": {"x" + strings.Repeat("😀", 100), `["x` + strings.Repeat("😀", 48) + "..."},
		"escapes":    {strings.Repeat("\x00", 100), `["` + strings.Repeat(`\x00`, 48) + "..."},
		"list":       {make([]int, 1000), "[" + strings.Repeat("0,", 98) + "..."},
		"number":     {new(big.Int).Exp(big.NewInt(10), big.NewInt(1000), nil), "[1" + strings.Repeat("0", 195) + "..."},
		"bytes":      {make([]byte, 1000), `[bytes"` + strings.Repeat(`\x00`, 47) + "..."},
	} {
		k := MustKey(c.v)
		assert.Equal(t, c.want, k.String(), name)
		checkString(t, k)
		k = MustKey(c.v, "more")
		checkString(t, k)
		assert.True(t, strings.HasSuffix(k.String(), "..."), name)
	}
	// Every length around the cut.
	for _, unit := range []string{"x", "é", "日", "😀", "\x00", "\xff", "\U000e0001", "\""} {
		for n := range 220 {
			for _, v := range []any{strings.Repeat(unit, n), []any{1, strings.Repeat(unit, n)}, map[string]any{strings.Repeat(unit, n): n}, []byte(strings.Repeat(unit, n)), []any{strings.Repeat("x", n), unit, unit}} {
				checkString(t, MustKey(v))
			}
		}
	}
	var deep any = 1
	for range 900 {
		deep = []any{deep}
	}
	assert.Equal(t, strings.Repeat("[", 197)+"...", MustKey(deep).String())
}

// Printing a large key costs no more than printing a small one: of its text only
// the beginning is read.
func TestKeyStringCost(t *testing.T) {
	huge := strings.Repeat("😀\n", 1<<18)
	for _, k := range []Key{
		MustKey(huge), MustKey(huge, 1), MustKey([]byte(huge)), MustKey(map[string]string{huge: huge}),
		MustKey(make([]int, 1<<18)), MustKey(new(big.Int).Lsh(big.NewInt(1), 1<<18)),
	} {
		checkString(t, k)
		best := time.Hour
		for range 10 {
			start := time.Now()
			_ = k.String()
			best = min(best, time.Since(start))
		}
		assert.Less(t, best, time.Millisecond, "%v", k)
	}
}
