package processlock

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Nesting is fine up to 1,000 levels, whatever they are made of, and an error
// beyond. No depth overflows the stack.
func TestKeyNesting(t *testing.T) {
	debug.SetMaxStack(64 << 20)
	defer debug.SetMaxStack(1 << 30)
	anys := func(v any) any { return []any{v} }
	for name, wrap := range map[string]func(any) any{
		"lists":     anys,
		"namedList": func(v any) any { return namedList{v} },
		"arrays":    func(v any) any { return [1]any{v} },
		"objects":   func(v any) any { return map[string]any{"a": v} },
		"maps":      func(v any) any { return map[int]any{1: v} },
		"structs":   func(v any) any { return struct{ V any }{v} },
		"pointers":  func(v any) any { return &v },
		"map keys":  func(v any) any { return map[any]int{hashable(v): 1} },
		"sets":      func(v any) any { return map[any]struct{}{hashable(v): {}} },
		"keys":      func(v any) any { k, _ := KeyOf([]any{v}); return k },
	} {
		t.Run(name, func(t *testing.T) {
			most := maxNesting
			if name == "map keys" || name == "sets" { // each behind a pointer, but for the innermost
				most = maxNesting / 2
			}
			nest := func(n int) any {
				var v any = "leaf"
				for range n {
					v = wrap(v)
				}
				return v
			}
			_, err := KeyOf(nest(most))
			assert.NoError(t, err)
			_, err = KeyOf(nest(most + 1))
			if assert.Error(t, err) {
				assert.ErrorIs(t, err, ErrKey)
				if name == "keys" { // the key inside is already refused
					return
				}
				assert.ErrorContains(t, err, "nesting is deeper than 1000")
				assert.LessOrEqual(t, len(err.Error()), 512)
			}
			_, err = KeyOf(nest(100_000))
			assert.ErrorIs(t, err, ErrKey)
		})
	}
	// A Key counts with the levels of its text.
	deep := any("leaf")
	for range maxNesting - 1 {
		deep = []any{deep}
	}
	k := MustKey(deep)
	checkString(t, k)
	_, err := KeyOf([]any{k})
	assert.NoError(t, err)
	_, err = KeyOf([]any{[]any{k}})
	assert.EqualError(t, err, "processlock: key[0][0]: nesting is deeper than 1000")
	_, err = KeyOf([]any{strings.Repeat("[", 100_000), MustKey("a", strings.Repeat("{[", 100_000))})
	assert.NoError(t, err, "brackets in strings are no levels")
}

// A value that is used twice is no cycle.
func TestKeySharedValue(t *testing.T) {
	s, p, m := []any{1}, ptrTo(1), map[string]int{"a": 1}
	_, err := KeyOf([]any{s, s, []any{s}, p, p, &p, m, m, []any{m, s}, linked{"a", &linked{}}})
	assert.NoError(t, err)
	tail := []any{1, 2, 3}
	_, err = KeyOf([]any{tail, tail[:2], []any{tail[:1], tail}})
	assert.NoError(t, err)
	// Nor is one that begins where another does.
	anys, named := []any{1, nil}, namedList{1, nil}
	anys[1], named[1] = anys[:1], named[:1]
	assert.Equal(t, "number:1\x00array:[number:1]", MustKey(anys).Canonical())
	assert.Equal(t, "number:1\x00array:[number:1]", MustKey(named).Canonical())
}
