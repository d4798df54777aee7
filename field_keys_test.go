package processlock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Pairs of spellings that are one lock or two, asked of the lock itself: while
// one is held, the other is available exactly if it is another.
//
// Rules 1 and 2.
func TestField_J1_J2_J4_J7_J10_SpellingsOfOneLockAndOfTwo(t *testing.T) {
	type pair struct{ A, B string }
	type box struct{ V any }
	type ab struct {
		B int `json:"b"`
		A int `json:"a,omitempty"`
	}
	text, number := "a", 1
	at := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	rows := []struct {
		id   string
		a, b any
		one  bool
	}{
		{"J1", pair{"a|b", "c"}, pair{"a", "b|c"}, false},
		{"J1", [2]string{"aa", "b"}, [2]string{"a", "ab"}, false},
		{"J1", []any{pair{"a", ""}, "b"}, []any{pair{"a", "b"}, ""}, false},
		{"J1", []string{"", "a"}, []string{"a", ""}, false},
		{"J1", []string{"a\x00", "b"}, []string{"a", "\x00b"}, false},
		{"J1", []string{"a", "b"}, "a\x00b", false},
		{"J1", []any{[]any{"a"}, "b"}, []any{[]any{"a", "b"}}, false},
		{"J2", []int{1}, []int{1}, true},
		{"J2", box{[]int{1}}, box{[]any{1}}, true},
		{"J2", box{map[string][]int{"a": {1}}}, box{map[string][]int{"a": {1}}}, true},
		{"J2", box{[]int{1}}, box{[]int{2}}, false},
		{"J4", &pair{"a", "b"}, &pair{"a", "b"}, true},
		{"J4", &pair{"a", "b"}, &pair{"a", "c"}, false},
		{"J4", &text, "a", true},
		{"J4", &number, 1, true},
		{"J4", box{&number}, box{1}, true},
		{"J7", map[string]int{"a": 1, "b": 2}, map[string]int{"b": 2, "a": 1}, true},
		{"J7", map[string]any{"app": "x", "shard": 1}, map[string]any{"shard": 1, "app": "x"}, true},
		{"J7", 1, 1.0, true},
		{"J7", 1, json.Number("1"), true},
		{"J7", 1, json.Number("10e-1"), true},
		{"J7", 1, "1", false},
		{"J7", ab{B: 2}, map[string]int{"b": 2}, true}, // omitempty
		{"J7", ab{B: 2, A: 1}, map[string]int{"a": 1, "b": 2}, true},
		{"J7", ab{B: 2}, map[string]int{"a": 0, "b": 2}, false},
		{"J7", at, at.In(time.FixedZone("", 3600)), true},
		{"J7", at, at.Add(time.Millisecond), false},
		{"J10", []any{"disk", 1, 7}, []any{"disk", 1, 8}, false},
		{"J10", []any{"disk", 1}, []any{"disk", 1, 0}, false},
	}
	for _, row := range rows {
		t.Run(fmt.Sprintf("%s/%v and %v", row.id, processlock.MustKey(row.a), processlock.MustKey(row.b)), func(t *testing.T) {
			c := processlock.New(processlock.Options{})
			for _, keys := range [][2]any{{row.a, row.b}, {row.b, row.a}} {
				require.NoError(t, c.WithLock(t.Context(), keys[0], func(context.Context) error {
					require.Equal(t, row.one, !ltFree(c, keys[1]))
					return nil
				}))
				// Together they are as many locks as they are.
				require.NoError(t, c.WithLock(t.Context(), processlock.All(keys[0], keys[1]), func(context.Context) error {
					require.EqualValues(t, map[bool]int64{true: 1, false: 2}[row.one], c.Stats().Held)
					return nil
				}))
			}
			ltIdle(t, c)
		})
	}
}

// What can't be hashed or compared by the runtime is read by content or
// refused, never a panic, and leaves every other key as usable as before.
//
// Rules 17 and 36.
func TestField_J2_KeysThatGoCannotHash(t *testing.T) {
	type box struct{ V any }
	c := processlock.New(processlock.Options{})
	for _, key := range []any{
		[]int{1}, map[string]int{"a": 1}, box{[]int{1}}, [1]any{[]int{1}}, box{map[any]any{"a": []int{1}}},
	} {
		require.NoError(t, c.WithLock(t.Context(), key, func(context.Context) error {
			assert.False(t, ltFree(c, key))
			return nil
		}))
	}
	for _, key := range []any{
		func() {}, make(chan int), box{func() {}}, [1]any{func() {}}, []any{1, box{[]any{func() {}}}}, map[string]any{"a": func() {}},
	} {
		require.ErrorIs(t, c.WithLock(t.Context(), key, ctNever(t)), processlock.ErrKey)
		require.ErrorIs(t, c.WithLock(t.Context(), processlock.All("a", key), ctNever(t)), processlock.ErrKey)
		for i := range 100 {
			require.True(t, ltFree(c, i))
		}
	}
	require.NoError(t, processlock.CTLeft(c))
}
