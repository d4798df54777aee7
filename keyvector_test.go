package processlock

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typed is a value as testdata/stable-keys.jsonl spells it.
type typed struct {
	T string          `json:"t"`
	V json.RawMessage `json:"v"`
}

type vector struct {
	Key        typed  `json:"key"`
	Canonical  string `json:"canonical"`
	AdvisoryID string `json:"advisoryId"`
}

func readVectors(t *testing.T) []vector {
	f, err := os.Open("testdata/stable-keys.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var all []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		all = append(all, v)
	}
	require.NoError(t, lines.Err())
	return all
}

// spelling turns a typed value into a Go value. Each function may be nil, which
// leaves the plain spelling.
type spelling struct {
	value  func(any) any            // around every value
	number func(string) (any, bool) // instead of int or float64
	text   func(string) any         // instead of string
	list   func([]any) any          // instead of []any
}

func (s spelling) of(t *testing.T, v typed) (value any, ok bool) {
	decode := func(into any) {
		require.NoError(t, json.Unmarshal(v.V, into))
	}
	wrap := func(v any) (any, bool) {
		if s.value != nil {
			v = s.value(v)
		}
		return v, true
	}
	switch v.T {
	case "null":
		return wrap(nil)
	case "boolean":
		var b bool
		decode(&b)
		return wrap(b)
	case "string":
		var str string
		decode(&str)
		if s.text != nil {
			return wrap(s.text(str))
		}
		return wrap(str)
	case "number":
		var text string
		decode(&text)
		if s.number != nil {
			if n, ok := s.number(text); ok {
				return wrap(n)
			}
		}
		if n, err := strconv.Atoi(text); err == nil && text != "-0" {
			return wrap(n)
		}
		f, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return wrap(f)
	case "bigint":
		var text string
		decode(&text)
		n, ok := new(big.Int).SetString(text, 10)
		require.True(t, ok)
		return wrap(n)
	case "date":
		var ms int64
		decode(&ms)
		return wrap(time.UnixMilli(ms))
	case "array", "set":
		var elems []typed
		decode(&elems)
		list := make([]any, len(elems))
		set := map[any]struct{}{}
		for i, e := range elems {
			if list[i], ok = s.of(t, e); !ok {
				return nil, false
			}
			if v.T == "set" {
				set[hashable(list[i])] = struct{}{}
			}
		}
		if v.T == "set" {
			return wrap(set)
		}
		if s.list != nil {
			return wrap(s.list(list))
		}
		return wrap(list)
	case "object":
		var entries [][2]json.RawMessage
		decode(&entries)
		object := map[string]any{}
		for _, e := range entries {
			var k string
			var v typed
			require.NoError(t, json.Unmarshal(e[0], &k))
			require.NoError(t, json.Unmarshal(e[1], &v))
			if object[k], ok = s.of(t, v); !ok {
				return nil, false
			}
		}
		return wrap(object)
	case "map":
		var entries [][2]typed
		decode(&entries)
		m := map[any]any{}
		for _, e := range entries {
			k, ok := s.of(t, e[0])
			if !ok {
				return nil, false
			}
			v, ok := s.of(t, e[1])
			if !ok {
				return nil, false
			}
			m[hashable(k)] = v
		}
		return wrap(m)
	case "undefined":
		return nil, false
	}
	require.Fail(t, "unknown type", v.T)
	return nil, false
}

// hashable returns v, or a pointer to it if it can't be a key of a Go map.
func hashable(v any) any {
	if v == nil || reflect.ValueOf(v).Comparable() {
		return v
	}
	return &v
}

type (
	namedString string
	namedFloat  float64
	namedInt16  int16
	namedList   []any
)

var spellings = map[string]spelling{
	"plain": {},
	"pointers": {value: func(v any) any {
		p := &v
		return &p
	}},
	"named types": {
		text: func(s string) any { return namedString(s) },
		list: func(l []any) any { return namedList(l) },
		number: func(s string) (any, bool) {
			if n, err := strconv.ParseInt(s, 10, 16); err == nil && s != "-0" {
				return namedInt16(n), true
			}
			f, err := strconv.ParseFloat(s, 64)
			return namedFloat(f), err == nil
		},
	},
	"floats": {number: func(s string) (any, bool) {
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil && (math.Abs(f) < 1<<53 || !isDigits(s))
	}},
	"json numbers": {number: func(s string) (any, bool) { return json.Number(s), true }},
	"unsigned": {number: func(s string) (any, bool) {
		n, err := strconv.ParseUint(s, 10, 64)
		return n, err == nil
	}},
	"texts":  {text: func(s string) any { return marshaler{s} }},
	"arrays": {list: func(l []any) any { return toArray(l) }},
	"keys": {list: func(l []any) any {
		k, err := KeyOf(l)
		if err != nil {
			panic(err)
		}
		return k
	}},
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// marshaler is a struct with a string for a text.
type marshaler struct{ text string }

func (m marshaler) MarshalText() ([]byte, error) { return []byte(m.text), nil }

// toArray returns an array, if there is one of the length.
func toArray(l []any) any {
	switch len(l) {
	case 0:
		return [0]any{}
	case 1:
		return [1]any(l)
	case 2:
		return [2]any(l)
	case 3:
		return [3]any(l)
	}
	return l
}

// P20, P22: the texts and ids that the TypeScript original printed, for every
// row and many ways to spell it.
func TestKeyVectors(t *testing.T) {
	vectors := readVectors(t)
	require.Len(t, vectors, 527)
	for name, s := range spellings {
		t.Run(name, func(t *testing.T) {
			checked, skipped := 0, 0
			for i, v := range vectors {
				row := fmt.Sprintf("row %d: %.200q", i+1, v.Canonical)
				value, ok := s.of(t, v.Key)
				if !ok {
					skipped++
					// Only undefined has no Go form, and it shows in the text.
					assert.Contains(t, v.Canonical, "undefined", row)
					continue
				}
				checked++
				k, err := KeyOf(value)
				require.NoError(t, err, row)
				if !assert.Equal(t, v.Canonical, k.Canonical(), row) {
					continue
				}
				assert.Equal(t, v.AdvisoryID, strconv.FormatInt(k.ID(), 10), row)
				checkNormal(t, k)
				checkString(t, k)
			}
			t.Logf("%d rows checked, %d skipped", checked, skipped)
			assert.Equal(t, 4, skipped)
		})
	}
}

// The ids that the identity's description names.
func TestKeyKnownIDs(t *testing.T) {
	decimal := func(s string) *big.Int {
		n, ok := new(big.Int).SetString(s, 10)
		require.True(t, ok)
		return n
	}
	for _, c := range []struct {
		key any
		id  int64
	}{
		{"schema-install", 8391191540082855336},
		{[]string{"schema-install", "v2"}, -6627415645816226415},
		{map[string]int{"b": 2, "a": 1}, 8289569017560903448},
		{struct {
			B int `json:"b"`
			A int `json:"a"`
		}{2, 1}, 8289569017560903448},
		{[]string{"unicode", "λ"}, 5028212226534770301},
		{[]any{1, "1", true, nil}, 1977673129255614398},
		{decimal("-9223372036854771659"), -9223372036854771659},
		{decimal("18446744073709551615"), -1},
		{decimal("18446744073709551616"), 0},
		{decimal("-18446744073709551617"), -1},
		{decimal("9223372036854775808"), math.MinInt64},
	} {
		k, err := KeyOf(c.key)
		require.NoError(t, err)
		assert.Equal(t, c.id, k.ID(), k)
	}
}

// A *big.Int on its own is its id; in a list, even alone, it is hashed. The two
// are one lock in the process.
func TestKeyIDOfBigInt(t *testing.T) {
	seven := big.NewInt(7)
	for _, own := range []any{seven, *seven, &seven, MustKey(seven)} {
		assert.EqualValues(t, 7, MustKey(own).ID())
	}
	for _, hashed := range []any{[]any{seven}, []*big.Int{seven}, [1]big.Int{*seven}, &[]any{seven}, []any{MustKey(seven)}} {
		k := MustKey(hashed)
		assert.Equal(t, int64(5286370387214951766), k.ID())
		assert.Equal(t, k.ID(), MustKey(k).ID(), "a Key is itself")
		assert.True(t, k.same(MustKey(seven)))
		assert.NotEqual(t, k, MustKey(seven), "== is finer than the lock")
		assert.Equal(t, k.String(), MustKey(seven).String())
	}
}
