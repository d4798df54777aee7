package lockdebug_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

var lineNumber = regexp.MustCompile(`\.go:\d+`)

// The table for a terminal, as it stands.
func TestText(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		s.ask("alice", []any{"a"})
		time.Sleep(90 * time.Second)
		s.ask("bob", []any{[]any{"b", 7}, "a"})
		time.Sleep(1500 * time.Millisecond)
		s.ask("", []any{[]any{"b", 7}}, processlock.Shared)
		got := s.get("/?format=text").Body.String()
		got = lineNumber.ReplaceAllString(got, ".go:1")
		want := `
processlock at 2000-01-01 00:01:31.500 UTC

keys 2, holders 2, waiting 2, longest wait 1.5 s for ["a"]
so far: acquired 2, waited 2 (0 ns), canceled 0, unavailable 0, deadlocks 0, closed 0, lost 0

          CLIENT  MODE       FOR      FUNCTION                           AT               HOLDS
["a"]
  held    alice   exclusive  unknown  lockdebug_test.(*scene).nest.func1  scene_test.go:1
  wait 1  bob     exclusive  1.5 s    lockdebug_test.(*scene).nest.func1  scene_test.go:1  ["b",7]
["b",7]
  held    bob     exclusive  unknown  lockdebug_test.(*scene).nest.func1  scene_test.go:1
  wait 1  -       shared     0 ns     lockdebug_test.(*scene).nest.func1  scene_test.go:1

chain of 2 keys, 2 waiting behind ["a"]: ["a"] ["b",7]
`
		// The widths of the two columns whose content may change.
		squeeze := func(s string) string { return regexp.MustCompile(` {2,}AT +`).ReplaceAllString(s, "  AT  ") }
		require.Equal(t, squeeze(strings.TrimPrefix(want, "\n")), squeeze(lineUp(got)))

		require.Contains(t, s.get("/?format=text&key=B").Body.String(), "\nfilter: 1 of 2 keys with B\n\n")
	})
}

// lineUp undoes what the length of a line number does to the column after it.
func lineUp(s string) string {
	return regexp.MustCompile(`(\.go:1) +(\S)`).ReplaceAllString(s, "$1  $2")
}

func TestTextOfNothing(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		require.Equal(t, `processlock at 2000-01-01 00:00:00.000 UTC

keys 0, holders 0, waiting 0
so far: acquired 0, waited 0 (0 ns), canceled 0, unavailable 0, deadlocks 0, closed 0, lost 0
`, s.get("/?format=text").Body.String())
	})
}

// Keys of another coordinator are drawn as those of the same text, so waits may
// look like a circle that is none.
func TestTextOfACircle(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		other := processlock.New(processlock.Options{})
		s.ask("h", []any{"x"})
		s.ask("h", []any{"y"})
		for outer, inner := range map[string]string{"x": "y", "y": "x"} {
			go func() {
				_ = other.WithLock(s.Context(), outer, func(ctx context.Context) error { return s.WithLock(ctx, inner, nothing) })
			}()
		}
		synctest.Wait()
		require.Contains(t, s.get("/?format=text").Body.String(), "\nchain of 2 keys, 2 waiting in a circle: ")
	})
}
