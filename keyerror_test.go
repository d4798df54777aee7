package processlock

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rule 17. What has no identity is an error around ErrKey with the path to it.
func TestKeyErrors(t *testing.T) {
	type conn struct{ Conn func() }
	type dup struct {
		A int `json:"b"`
		b int
	}
	type inKey struct{ C chan int }
	self := mapCycle{}
	self["x"] = []any{self}
	ring := &linked{Name: "a"}
	ring.Next = &linked{"b", ring}
	list := []any{1, nil}
	list[1] = list
	part := []any{nil, 2}
	part[0] = part[:1]
	forest := tree{nil}
	forest[0] = forest
	var loop pointer
	loop = &loop
	var boxed any
	boxed = &boxed
	for _, c := range []struct {
		key any
		err string
	}{
		{func() {}, "key: func() has no stable identity"},
		{(func(int) string)(nil), "key: func(int) string has no stable identity"},
		{make(chan int), "key: chan int has no stable identity"},
		{1i, "key: complex128 has no stable identity"},
		{complex64(1), "key: complex64 has no stable identity"},
		{unsafe.Pointer(nil), "key: unsafe.Pointer has no stable identity"},
		{[]any{1, conn{}}, "key[1].Conn: func() has no stable identity"},
		{[]any{1, struct{ conn }{}}, "key[1].conn.Conn: func() has no stable identity"},
		{&[]any{&conn{}}, "key[0].Conn: func() has no stable identity"},
		{[]func(){nil}, "key[0]: func() has no stable identity"},
		{map[string]any{"b": func() {}, "\n": make(chan int), "c": 1}, `key["\n"]: chan int has no stable identity`},
		{map[int][]any{7: {nil, math.NaN()}}, "key[7][1]: NaN has no stable identity"},
		{map[[2]int]any{{1, 2}: 1i}, "key[[1,2]]: complex128 has no stable identity"},
		{map[any]int{inKey{}: 1}, "key[map key].C: chan int has no stable identity"},
		{map[any]struct{}{inKey{}: {}}, "key[map key].C: chan int has no stable identity"},
		{math.NaN(), "key: NaN has no stable identity"},
		{struct{ F float64 }{math.NaN()}, "key.F: NaN has no stable identity"}, // D6
		{map[float64]int{math.NaN(): 1}, "key[map key]: NaN has no stable identity"},
		{float32(math.Inf(1)), "key: +Inf has no stable identity"},
		{math.Inf(-1), "key: -Inf has no stable identity"},
		{failing{}, `key: MarshalText of processlock.failing: boom\nhere`},
		{[]any{"a", &failing{}}, `key[1]: MarshalText of processlock.failing: boom\nhere`},
		{struct{ T wrappedTime }{wrappedTime{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}, "key.T: MarshalText of processlock.wrappedTime: Time.MarshalText: year outside of range [0,9999]"},
		{map[any]int{1: 1, int8(1): 2}, "key: two keys of the map are the same, 1"},
		{[]any{map[any]int{"a\n": 1, namedString("a\n"): 2}}, `key[0]: two keys of the map are the same, "a\n"`},
		{map[*int]int{ptrTo(1): 1, ptrTo(1): 2}, "key: two keys of the map are the same, 1"},
		{map[any]int{0.0: 1, float32(negZero): 2}, "key: two keys of the map are the same, 0"},
		{dup{b: 1}, `key: fields A and b of processlock.dup have one name, "b"`},
		{struct{ D *dup }{&dup{}}, `key.D: fields A and b of processlock.dup have one name, "b"`},
		{Key{}, "key: the zero Key has no stable identity"},
		{&Key{}, "key: the zero Key has no stable identity"},
		{[]Key{MustKey(), {}}, "key[1]: the zero Key has no stable identity"},
		{struct{ K Key }{}, "key.K: the zero Key has no stable identity"},
		{All("a"), "key: keys from All can't be part of a key; give them to WithLock alone, or to another All"},
		{ptrTo(All("a")), "key: keys from All can't be part of a key; give them to WithLock alone, or to another All"},
		{[]any{"a", All("a")}, "key[1]: keys from All can't be part of a key; give them to WithLock alone, or to another All"},
		{struct{ K Keys }{}, "key.K: keys from All can't be part of a key; give them to WithLock alone, or to another All"},
		{json.Number(""), `key: json.Number "" is not a number`},
		{json.Number("abc"), `key: json.Number "abc" is not a number`},
		{json.Number("+1"), `key: json.Number "+1" is not a number`},
		{json.Number("0x1"), `key: json.Number "0x1" is not a number`},
		{json.Number("1_0"), `key: json.Number "1_0" is not a number`},
		{json.Number("NaN"), `key: json.Number "NaN" is not a number`},
		{json.Number("01"), `key: json.Number "01" is not a number`},
		{json.Number("-"), `key: json.Number "-" is not a number`},
		{json.Number("1."), `key: json.Number "1." is not a number`},
		{json.Number(".5"), `key: json.Number ".5" is not a number`},
		{json.Number("1e"), `key: json.Number "1e" is not a number`},
		{json.Number("1 "), `key: json.Number "1 " is not a number`},
		{json.Number("-01"), `key: json.Number "-01" is not a number`},
		{[]json.Number{"1", "1\n"}, `key[1]: json.Number "1\n" is not a number`},
		{json.Number("1e999"), `key: json.Number "1e999" is out of range`},
		{self, `key["x"][0]: a cycle through processlock.mapCycle has no stable identity`},
		{ring, "key.Next.Next: a cycle through *processlock.linked has no stable identity"},
		{*ring, "key.Next.Next.Next: a cycle through *processlock.linked has no stable identity"},
		{list, "key[1]: a cycle through []interface {} has no stable identity"},
		{part, "key[0][0]: a cycle through []interface {} has no stable identity"},
		{forest, "key[0]: a cycle through processlock.tree has no stable identity"},
		{loop, "key: a cycle through processlock.pointer has no stable identity"},
		{boxed, "key: a cycle through *interface {} has no stable identity"},
		{struct {
			P any `json:",omitempty"`
		}{boxed}, "key.P: a cycle through *interface {} has no stable identity"},
	} {
		k, err := KeyOf(c.key)
		assert.EqualError(t, err, "processlock: "+c.err)
		assert.ErrorIs(t, err, ErrKey)
		assert.Equal(t, Key{}, k)
		var _ = err.(*keyError)
	}
	_, err := KeyOf(list...)
	assert.EqualError(t, err, "processlock: key[1]: a cycle through []interface {} has no stable identity")
	_, err = KeyOf("a", func() {})
	assert.EqualError(t, err, "processlock: key[1]: func() has no stable identity")

	// Rule 36. MarshalText's own error is there too.
	_, err = KeyOf(failing{})
	assert.ErrorIs(t, err, errMarshal)
	assert.ErrorIs(t, err, ErrKey)
}

// The first of several errors is the same one every time.
func TestKeyErrorOrder(t *testing.T) {
	m := map[string]any{}
	for i := range 50 {
		m[strconv.Itoa(i)] = func() {}
	}
	for range 50 {
		_, err := KeyOf(m)
		require.EqualError(t, err, `processlock: key["0"]: func() has no stable identity`)
	}
}

// Rule 17. An error's text is one line of bounded length, whatever the key holds.
func TestKeyErrorText(t *testing.T) {
	long := strings.Repeat("x\u202e\n\xff", 100_000)
	deep := any(func() {})
	for range 500 {
		deep = map[string]any{"level": []any{deep}}
	}
	for _, v := range []any{
		map[string]any{long: func() {}}, map[string]any{"\u202e\r\n": func() {}}, json.Number(long), json.Number("1" + strings.Repeat("0", 1000)),
		failingWith{errors.New(long)}, deep, map[any]int{long: 1, namedString(long): 2},
		reflect.New(reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[func()](), Tag: reflect.StructTag(long)}})).Interface(),
		reflect.Zero(reflect.ChanOf(reflect.BothDir, reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[int](), Tag: reflect.StructTag(long)}}))).Interface(),
	} {
		_, err := KeyOf(v)
		require.Error(t, err)
		text := err.Error()
		assert.Less(t, len(text), 2000)
		assert.True(t, strings.HasPrefix(text, "processlock: key"), text)
		assert.Equal(t, 1, strings.Count(text, "processlock: "), text)
		assert.True(t, utf8.ValidString(text))
		assert.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }), "%q", text)
	}
	_, err := KeyOf(deep)
	assert.EqualError(t, err, "processlock: key"+strings.Repeat(`["level"][0]`, 14)[:157]+`...[0]`+strings.Repeat(`["level"][0]`, 6)+": func() has no stable identity")
}

type failingWith struct{ err error }

func (f failingWith) MarshalText() ([]byte, error) { return nil, f.err }
