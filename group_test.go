package processlock_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// What no caller may do panics at once, with the package's prefix, also once the
// group's context is done. Nothing is added by it.
//
// Rule 16.
func TestGroupMisusePanics(t *testing.T) {
	var zero processlock.Group
	var none *processlock.Group
	var noContext context.Context
	for name, do := range map[string]func(g *processlock.Group){
		"nil context":                         func(*processlock.Group) { processlock.NewGroup(noContext, "g") },
		"nil fn":                              func(g *processlock.Group) { g.Go(nil) },
		"nil fn in GoLocked":                  func(g *processlock.Group) { g.GoLocked("k", nil) },
		"nil Option":                          func(g *processlock.Group) { g.GoLocked("k", ltNop, nil) },
		"nil Option after another":            func(g *processlock.Group) { g.GoLocked("k", ltNop, processlock.Shared, nil) },
		"nil *Group":                          func(*processlock.Group) { none.Go(ltNop) },
		"nil *Group in GoLocked":              func(*processlock.Group) { none.GoLocked("k", ltNop) },
		"nil *Group in SetLimit":              func(*processlock.Group) { none.SetLimit(1) },
		"nil *Group in Skipped":               func(*processlock.Group) { none.Skipped() },
		"nil *Group in Wait":                  func(*processlock.Group) { _ = none.Wait() },
		"Group that NewGroup has not made, 1": func(*processlock.Group) { zero.Go(ltNop) },
		"Group that NewGroup has not made, 2": func(*processlock.Group) { zero.GoLocked("k", ltNop) },
		"Group that NewGroup has not made, 3": func(*processlock.Group) { zero.SetLimit(1) },
		"Group that NewGroup has not made, 4": func(*processlock.Group) { zero.Skipped() },
		"Group that NewGroup has not made, 5": func(*processlock.Group) { _ = zero.Wait() },
		"SetLimit after the group's first task": func(g *processlock.Group) {
			g.Go(ltNop)
			g.SetLimit(2)
		},
		"SetLimit after GoLocked": func(g *processlock.Group) {
			g.GoLocked("k", ltNop)
			g.SetLimit(2)
		},
		"Go after Wait has returned": func(g *processlock.Group) {
			_ = g.Wait()
			g.Go(ltNop)
		},
		"GoLocked after Wait has returned": func(g *processlock.Group) {
			g.Go(ltNop)
			_ = g.Wait()
			g.GoLocked("k", ltNop)
		},
	} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, done=%t", name, done), func(t *testing.T) {
				var c processlock.Coordinator
				ctx, cancel := context.WithCancel(processlock.WithCoordinator(t.Context(), &c))
				defer cancel()
				g, _ := processlock.NewGroup(ctx, "g")
				if done {
					cancel()
				}
				func() {
					defer func() {
						text, _ := recover().(string)
						assert.Regexp(t, "^processlock: [nGS]", text)
					}()
					do(g)
				}()
				_ = g.Wait()
				ctRequireIdle(t, &c)
			})
		}
	}
}

// A task has a client of its own, named after the group and its number, in all
// that shows it, before it starts and while it runs.
//
// Rules 24, 28 and 39.
func TestGroupNamesItsTasks(t *testing.T) {
	gtBubble(t, 2, func(s *gtScene) {
		x1 := s.free()
		x2, x3, x4 := s.lock("k"), s.lock("k"), s.lock("slot")
		assert.Equal(s, map[string][2][]string{`["k"]`: {{"g-2*"}, {"g-3"}}, `["slot"]`: {{"g-4"}, nil}}, gtLocks(s.c))
		// What a task asks for goes by its name too.
		require.NoError(s, s.c.WithLock(x2.ctx, "more", func(context.Context) error {
			assert.Equal(s, [2][]string{{"g-2*"}, nil}, gtLocks(s.c)[`["more"]`])
			return nil
		}))
		x2.open()
		assert.Equal(s, map[string][2][]string{`["k"]`: {{"g-3"}, nil}, `["slot"]`: {{"g-4*"}, nil}}, gtLocks(s.c))
		for _, x := range []*gtTask{x4, x3, x1} {
			x.open()
		}
	})
	for _, name := range []string{"", "two words"} {
		gtBubble(t, 0, func(s *gtScene) {
			g, _ := processlock.NewGroup(s.root, name)
			x := gtNew(s, ltNop)
			g.GoLocked("k", x.fn)
			synctest.Wait()
			assert.Equal(s, [2][]string{{name + "-1*"}, nil}, gtLocks(s.c)[`["k"]`])
			x.open()
			require.NoError(s, g.Wait())
		})
	}
}

// The client is closed when fn ends in any way: its context ends with ErrClosed as
// the cause, and its calls are refused.
//
// Rules 25 and 28.
func TestGroupClosesATasksClient(t *testing.T) {
	for name, last := range map[string]func(context.Context) error{
		"nil":    ltNop,
		"error":  func(context.Context) error { return errGt },
		"Goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		for _, key := range []any{nil, "k", processlock.All("k", "l"), processlock.All()} {
			t.Run(name, func(t *testing.T) {
				gtBubble(t, 0, func(s *gtScene) {
					var x *gtTask
					if key == nil {
						x = s.freeLast(last)
					} else {
						x = s.lockLast(key, last)
					}
					other := s.lock("other")
					assert.NoError(s, x.ctx.Err())
					x.open()
					assert.Equal(s, context.Canceled, x.ctx.Err())
					assert.Equal(s, processlock.ErrClosed, context.Cause(x.ctx))
					ctRequireClosed(s, s.c.WithLock(context.WithoutCancel(x.ctx), "free", ctNever(s)))
					assert.Equal(s, name == "error", other.ctx.Err() != nil, "another task's is not concerned")
					assert.True(s, ltFree(s.c, "k"))
					other.open()
					assert.Equal(s, name == "error", s.g.Wait() != nil)
				})
			})
		}
	}
}

// Goexit ends a task as if it had returned nil.
//
// Rule 15.
func TestGroupGoexitCountsAsNil(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		exit := func(context.Context) error { runtime.Goexit(); return errGt }
		a, b := s.lockLast("k", exit), s.freeLast(exit)
		d := s.lock("k")
		s.states([]string{"runs", "waits", "waits"}, a, b, d)
		a.open()
		s.states([]string{"over", "runs", "waits"}, a, b, d)
		b.open()
		s.states([]string{"over", "over", "runs"}, a, b, d)
		d.open()
		assert.NoError(s, s.g.Wait())
	})
}

// A client of another coordinator, and one further out, keep their part in what
// the task does with their coordinators.
//
// Rule 24.
func TestGroupTaskKeepsTheClientsAround(t *testing.T) {
	for _, inner := range []bool{false, true} {
		gtBubble(t, 0, func(s *gtScene) {
			other := processlock.New(processlock.Options{})
			ctx, mine := s.c.WithClient(s.root, "mine")
			ctx, theirs := other.WithClient(ctx, "theirs")
			g, _ := processlock.NewGroup(ctx, "g")
			x := gtNew(s, ltNop)
			if inner {
				g.GoLocked("k", x.fn)
			} else {
				g.Go(x.fn)
			}
			synctest.Wait()
			hold := ltGo(context.WithoutCancel(x.ctx), other, "k")
			assert.Equal(s, [2][]string{{"theirs*"}, nil}, gtLocks(other)[`["k"]`])
			theirs.Close()
			synctest.Wait()
			assert.Empty(s, other.Snapshot().Locks, "it belonged to theirs")
			assert.Equal(s, processlock.ErrClosed, context.Cause(x.ctx))
			hold.open()
			assert.Equal(s, processlock.ErrLost, hold.err)
			x.open()
			assert.NoError(s, g.Wait())
			mine.Close()
			ctRequireIdle(s, other)
		})
	}
}

// Until it starts, a task's request counts under the client of NewGroup's context.
//
// Rule 24.
func TestGroupUsesTheCoordinatorOfItsContext(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		x := s.lock("k")
		assert.True(s, ltFree(processlock.Default(), "k"))
		// And so does the task's own package-level call.
		require.NoError(s, processlock.WithLock(x.ctx, "more", func(context.Context) error {
			assert.Contains(s, gtLocks(s.c), `["more"]`)
			return nil
		}))
		x.open()
	})
	g, _ := processlock.NewGroup(t.Context(), "default")
	g.GoLocked("gt default", func(context.Context) error {
		assert.Contains(t, gtLocks(processlock.Default()), `["gt default"]`)
		return nil
	})
	require.NoError(t, g.Wait())
}

// A task runs under the pprof labels of NewGroup's context, whoever's release
// started it, and so does a task that was dropped or started at once.
func TestGroupTasksHaveTheLabelsOfTheGroup(t *testing.T) {
	var c processlock.Coordinator
	with := func(ctx context.Context, who string) context.Context {
		return pprof.WithLabels(ctx, pprof.Labels("gt", who))
	}
	for _, labels := range []bool{true, false} {
		root := processlock.WithCoordinator(t.Context(), &c)
		want := ""
		if labels {
			root, want = with(root, "group's"), `{"gt":"group's"}`
		}
		g, _ := processlock.NewGroup(root, "g")
		g.SetLimit(2)
		var seen sync.Map
		look := func(name string) func(context.Context) error {
			return func(context.Context) error {
				seen.Store(name, gtLabels())
				return nil
			}
		}
		// All that starts tasks is done under other labels.
		pprof.Do(t.Context(), pprof.Labels("gt", "caller's"), func(ctx context.Context) {
			err := c.WithLock(ctx, "k", func(context.Context) error {
				g.GoLocked("k", look("released"))
				g.GoLocked(processlock.All("j", "k"), look("several"))
				g.GoLocked("free", look("at once"))
				g.Go(look("no key"))
				return nil
			})
			assert.NoError(t, err)
		})
		require.NoError(t, g.Wait())
		for _, name := range []string{"released", "several", "at once", "no key"} {
			got, ok := seen.Load(name)
			assert.True(t, ok, name)
			assert.Equal(t, want, got, name)
		}
	}
}

// Wait may be called from many goroutines and again, each returns the same.
func TestGroupWaitFromManyGoroutines(t *testing.T) {
	for _, want := range []error{nil, errGt} {
		gtBubble(t, 0, func(s *gtScene) {
			x := s.lockLast("k", func(context.Context) error { return want })
			var waits []*gtWait
			for range 10 {
				waits = append(waits, gtWaits(s.g))
			}
			synctest.Wait()
			for _, w := range waits {
				assert.False(s, w.isOver())
			}
			x.open()
			for _, w := range waits {
				require.True(s, w.isOver())
				assert.True(s, w.err == want)
			}
			assert.True(s, s.g.Wait() == want)
			if want == nil {
				want = context.Canceled
			}
			assert.Equal(s, want, context.Cause(s.ctx))
		})
	}
}
