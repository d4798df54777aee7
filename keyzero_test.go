package processlock

import (
	"encoding/json"
	"math/big"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The field is left out exactly if it is zero, for both options and whatever
// spelling of the zero.
func TestKeyOmit(t *testing.T) {
	type part struct {
		At   time.Time
		N    big.Int
		List []int
		Skip int `json:"-"`
		_    int
	}
	type all struct {
		F any `json:",omitempty"`
	}
	omitted := func(v any) bool {
		f := reflect.StructField{Name: "F", Type: reflect.TypeOf(v)}
		var got []bool
		for _, option := range []string{"omitempty", "omitzero", "string,omitzero", "omitempty,omitzero"} {
			f.Tag = reflect.StructTag(`json:",` + option + `"`)
			s := reflect.New(reflect.StructOf([]reflect.StructField{f})).Elem()
			s.Field(0).Set(reflect.ValueOf(v))
			k, err := KeyOf(s.Interface())
			got = append(got, err == nil && k.Canonical() == "object:{}")
		}
		assert.Len(t, slices.Compact(got), 1, "%#v", v)
		return got[0]
	}
	loop := pointer(nil)
	loop = &loop
	for _, zero := range []any{
		0, int8(0), uint(0), 0.0, float32(0), "", namedString(""), false, json.Number(""), boolKind(false),
		[]int(nil), []int{}, []byte{}, [0]int{}, [2]int{}, [2]byte{}, map[string]int(nil), map[string]int{}, map[int]struct{}{}, map[int]int{},
		(*int)(nil), ptrTo((*int)(nil)), ptrTo(any(nil)), ptrTo(any((*int)(nil))), ptrTo(MustKey(nil)), &[]any{nil}[0],
		time.Time{}, time.Time{}.In(zone), instant(time.Time{}.In(zone)), [1]time.Time{time.Time{}.In(zone)},
		big.Int{}, *new(big.Int).Sub(big.NewInt(5), big.NewInt(5)), [1]big.Int{*new(big.Int).Sub(big.NewInt(5), big.NewInt(5))},
		struct{}{}, part{}, part{List: []int{}, Skip: 7, At: time.Time{}.In(zone)}, [1]part{{Skip: 1}}, [1]any{(*int)(nil)}, [1]any{MustKey(nil)},
		(func())(nil), (chan int)(nil), complex(0, 0), Key{}, Keys{}, All(),
		marshaler{}, ptrText{}, textSlice{}, textSlice(nil), net.IP{}, textMap{}, textString(""), textFunc(nil), struct{ wrappedTime }{},
		all{}, all{(*int)(nil)}, struct{ a, b any }{nil, (*int)(nil)}, struct{ t [1]time.Time }{[1]time.Time{time.Time{}.In(zone)}},
		struct {
			n big.Int
			k Key
		}{n: *new(big.Int).Sub(big.NewInt(5), big.NewInt(5))},
	} {
		assert.True(t, omitted(zero), "%#v", zero)
	}
	for _, full := range []any{
		1, negZero, float32(negZero), "a", true, json.Number("0"), json.Number("0.0"),
		[]int{0}, [1]int{1}, [1]float64{negZero}, []byte{0}, [2]byte{0, 1}, map[string]int{"": 0}, map[int]struct{}{0: {}},
		ptrTo(0), ptrTo(""), ptrTo(any(0)), ptrTo(ptrTo(0)), ptrTo(MustKey("")), ptrTo(MustKey()), ptrTo(MustKey([]any{nil})),
		time.Unix(0, 0), time.Time{}.Add(1), *big.NewInt(1), new(big.Int), new(time.Time),
		part{At: day}, part{List: []int{0}}, part{N: *big.NewInt(-1)}, [1]any{0}, [1][1]float64{{negZero}},
		MustKey(), MustKey(nil), marshaler{"a"}, ptrText{"a"}, textSlice{0}, all{0}, all{(func())(nil)}, loop,
	} {
		assert.False(t, omitted(full), "%#v", full)
	}
	// An interface is zero if it is null, and not if it holds another zero.
	for _, null := range []any{nil, (*int)(nil), ptrTo(any(nil)), MustKey(nil), ptrTo(MustKey(nil))} {
		assert.Equal(t, "object:{}", MustKey(all{null}).Canonical())
	}
	for _, v := range []any{0, "", []int(nil), MustKey(), MustKey([]any{nil}), time.Time{}} {
		assert.NotEqual(t, "object:{}", MustKey(all{v}).Canonical())
	}
	// As a key of a map, -0 is the 0 that it is equal to.
	type f struct {
		F float64 `json:",omitempty"`
		G any
	}
	assert.Equal(t, "set:[object:{string:1:G=null}]", MustKey(map[f]struct{}{{F: negZero}: {}}).Canonical())
	assert.Equal(t, "set:[object:{string:1:G=object:{string:1:F=number:-0,string:1:G=null}}]", MustKey(map[f]struct{}{{G: &f{F: negZero}}: {}}).Canonical())
}
