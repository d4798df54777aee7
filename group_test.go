package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
	for name, do := range map[string]func(g *processlock.Group){
		"nil context":                         func(*processlock.Group) { processlock.NewGroup(nil, "g") }, //nolint:staticcheck // that is the test
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

// A key without identity is the group's error; nothing is queued for it.
//
// Rules 17 and 18.
func TestGroupBadKeyIsTheGroupsError(t *testing.T) {
	for name, key := range map[string]any{
		"func":        func() {},
		"deep":        []any{"a", map[string]any{"b": make(chan int)}},
		"zero Key":    processlock.Key{},
		"Keys inside": []any{processlock.All("a")},
		"in All":      processlock.All("a", func() {}),
	} {
		t.Run(name, func(t *testing.T) {
			gtBubble(t, 0, func(s *gtScene) {
				running := s.lock("k")
				behind := s.lock("k")
				s.g.GoLocked(key, ctNever(s))
				synctest.Wait()
				assert.Error(s, s.ctx.Err(), "as any first error")
				running.open()
				s.states([]string{"waits"}, behind)
				err := s.g.Wait()
				require.ErrorIs(s, err, processlock.ErrKey)
				var ae *processlock.AcquireError
				require.ErrorAs(s, err, &ae)
				assert.Equal(s, processlock.Key{}, ae.Key)
				want := s.c.WithLock(s.Context(), key, ltNop)
				assert.Equal(s, want.Error(), err.Error(), "as WithLock's")
				assert.Equal(s, processlock.Stats{Acquired: 1, Waited: 1, Canceled: 1}, s.stats())
			})
		})
	}
	gtBubble(t, 0, func(s *gtScene) { // a done context comes first
		s.cancel(nil)
		s.g.GoLocked(func() {}, ctNever(s))
		assert.NotErrorIs(s, s.g.Wait(), processlock.ErrKey)
	})
	gtBubble(t, 0, func(s *gtScene) { // user code that panics adds nothing
		assert.PanicsWithValue(s, errGt, func() { s.g.GoLocked(gtBadText{}, ctNever(s)) })
		assert.NoError(s, s.g.Wait())
	})
}

type gtBadText struct{}

func (gtBadText) MarshalText() ([]byte, error) { panic(errGt) }

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

// IfAvailable, MaxWait and a full queue keep a task from starting; that is counted
// and is no error.
//
// Rules 19, 20, 21 and 41.
func TestGroupSkips(t *testing.T) {
	gtBubbleWith(t, processlock.Options{MaxWaiters: 2}, 0, func(s *gtScene) {
		busy := s.call("k")
		never := func(key any, opts ...processlock.Option) {
			s.g.GoLocked(key, ctNever(s), opts...)
			synctest.Wait()
		}
		never("k", processlock.IfAvailable)
		assert.Equal(s, 1, s.g.Skipped())
		never("k", processlock.MaxWait(0))
		never("k", processlock.MaxWait(-1))
		never(processlock.All("f", "k"), processlock.IfAvailable)
		assert.Equal(s, 4, s.g.Skipped())
		assert.True(s, ltFree(s.c, "f"), "nothing is kept of a failed try")
		never("k", processlock.MaxWait(time.Second), processlock.MaxWait(time.Hour))
		x := s.lock("k")
		assert.EqualValues(s, 2, s.c.Stats().Waiting)
		never("k")
		never(processlock.All("f", "k"))
		assert.Equal(s, 6, s.g.Skipped())
		assert.True(s, ltFree(s.c, "f"))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(s, 7, s.g.Skipped())
		assert.NoError(s, s.ctx.Err())
		busy.open()
		s.states([]string{"runs"}, x)
		x.open()
		require.NoError(s, s.g.Wait())
		assert.Equal(s, 7, s.g.Skipped(), "after Wait too")
		// f was granted twice for All, and three times for a look.
		assert.Equal(s, processlock.Stats{Acquired: 2 + 2 + 2, Waited: 2, Unavailable: 7}, s.stats())
	})
}

// IfAvailable on a free key runs; with All, on free keys.
//
// Rule 19.
func TestGroupIfAvailableRuns(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		x, y := s.lock("k", processlock.IfAvailable), s.lock(processlock.All("l", "m"), processlock.MaxWait(0))
		s.states([]string{"runs", "runs"}, x, y)
		x.open()
		y.open()
		assert.Zero(s, s.g.Skipped())
	})
}

// MaxWait bounds the wait for the key, of several the waits together. What comes
// after the grant, for the slot, does not count; if time is up when the grant
// comes, the grant wins.
//
// Rule 20.
func TestGroupMaxWait(t *testing.T) {
	t.Run("runs out", func(t *testing.T) {
		gtBubble(t, 1, func(s *gtScene) {
			busy := s.call("k")
			x, behind := s.lock("k", processlock.MaxWait(time.Second)), s.lock("k")
			time.Sleep(time.Second - 1)
			synctest.Wait()
			assert.EqualValues(s, 2, s.c.Stats().Waiting)
			time.Sleep(1)
			synctest.Wait()
			assert.EqualValues(s, 1, s.c.Stats().Waiting)
			assert.Equal(s, 1, s.g.Skipped())
			busy.open()
			s.states([]string{"waits", "runs"}, x, behind)
			behind.open()
			assert.Equal(s, processlock.Stats{Acquired: 2, Waited: 2, Unavailable: 1}, s.stats())
			assert.Equal(s, 2*time.Second, s.c.Stats().WaitDuration)
		})
	})
	t.Run("counts no wait for a slot", func(t *testing.T) {
		for _, key := range []any{"k", processlock.All("j", "k")} {
			gtBubble(t, 1, func(s *gtScene) {
				busy, running := s.call("k"), s.free()
				x := s.lock(key, processlock.MaxWait(time.Second))
				time.Sleep(time.Second / 2)
				busy.open()
				time.Sleep(time.Hour)
				running.open()
				s.states([]string{"runs"}, x)
				x.open()
				assert.Zero(s, s.g.Skipped())
			})
		}
	})
	t.Run("of several together", func(t *testing.T) {
		gtBubble(t, 0, func(s *gtScene) {
			j, k := s.call("j"), s.call("k")
			x := s.lock(processlock.All("j", "k"), processlock.MaxWait(time.Second))
			time.Sleep(600 * time.Millisecond)
			j.open()
			time.Sleep(400 * time.Millisecond)
			synctest.Wait()
			assert.Equal(s, 1, s.g.Skipped())
			assert.True(s, ltFree(s.c, "j"), "it gave j up")
			k.open()
			s.states([]string{"waits"}, x)
			assert.Equal(s, processlock.Stats{Acquired: 4, Waited: 2, Unavailable: 1}, s.stats())
		})
	})
	t.Run("meets the grant", func(t *testing.T) {
		// Both happen in one instant of the bubble's clock, in either order.
		for range 50 {
			gtBubble(t, 0, func(s *gtScene) {
				ran := 0
				s.g.GoLocked("k", func(context.Context) error { time.Sleep(time.Second); return nil })
				s.g.GoLocked("k", func(context.Context) error { ran++; return nil }, processlock.MaxWait(time.Second))
				s.g.GoLocked("k", ltNop)
				require.NoError(s, s.g.Wait())
				assert.Equal(s, 1, ran+s.g.Skipped())
				st := s.stats()
				assert.Equal(s, processlock.Stats{Acquired: 2 + int64(ran), Waited: 2, Unavailable: 1 - int64(ran)}, st)
			})
		}
	})
}

// Reentrant takes over what NewGroup's lineage holds; then the inner return
// releases nothing, and who outlives the hold is told.
//
// Rules 22 and 27.
func TestGroupReentrant(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		var x, y, z *gtTask
		var g *processlock.Group
		err := s.c.WithLock(s.root, "k", func(ctx context.Context) error {
			behind := s.call("k")
			g, _ = processlock.NewGroup(ctx, "in")
			x, y, z = gtNew(s, ltNop), gtNew(s, ltNop), gtNew(s, ltNop)
			g.GoLocked("k", x.fn, processlock.Reentrant)
			g.GoLocked(processlock.All("j", "k", "l"), y.fn, processlock.Reentrant)
			g.GoLocked("k", z.fn, processlock.Reentrant)
			synctest.Wait()
			s.states([]string{"runs", "runs", "runs"}, x, y, z)
			assert.Equal(s, map[string][2][]string{`["j"]`: {{"in-2*"}, nil}, `["k"]`: {{"*"}, {""}}, `["l"]`: {{"in-2*"}, nil}}, gtLocks(s.c))
			x.open()
			y.open()
			assert.Equal(s, "waits", behind.state())
			close(behind.gate)
			return nil
		})
		require.NoError(s, err)
		synctest.Wait()
		z.open()
		assert.Equal(s, processlock.ErrLost, g.Wait(), "z outlived the hold")
		assert.Equal(s, processlock.Stats{Acquired: 7, Waited: 1}, s.stats())
	})
	gtBubble(t, 0, func(s *gtScene) { // without a hold it changes nothing
		x, y := s.lock("k", processlock.Reentrant), s.lock("k", processlock.Reentrant)
		s.states([]string{"runs", "waits"}, x, y)
		x.open()
		s.states([]string{"over", "runs"}, x, y)
		y.open()
		assert.NoError(s, s.g.Wait())
	})
}

// All takes each key once, one after the other, in canonical order, each in its
// own queue, and holds what it has.
//
// Rule 23.
func TestGroupAll(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		b, d := s.call("b"), s.call("d")
		x := s.lock(processlock.All("d", "a", "b", "c", "b", processlock.All("a", "d")))
		assert.Equal(s, map[string][2][]string{`["a"]`: {{"g-1"}, nil}, `["b"]`: {{"*"}, {"g-1"}}, `["d"]`: {{"*"}, nil}}, gtLocks(s.c))
		var holding []string
		for _, k := range s.c.Snapshot().Locks[1].Waiters[0].Holding {
			holding = append(holding, k.String())
		}
		assert.Equal(s, []string{`["a"]`}, holding)
		behindB, behindA := s.lock("b"), s.lock("a")
		b.open()
		assert.Equal(s, map[string][2][]string{
			`["a"]`: {{"g-1"}, {"g-3"}}, `["b"]`: {{"g-1"}, {"g-2"}}, `["c"]`: {{"g-1"}, nil}, `["d"]`: {{"*"}, {"g-1"}},
		}, gtLocks(s.c))
		d.open()
		s.states([]string{"runs", "waits", "waits"}, x, behindB, behindA)
		assert.Equal(s, [2][]string{{"g-1*"}, nil}, gtLocks(s.c)[`["c"]`])
		x.open()
		s.states([]string{"over", "runs", "runs"}, x, behindB, behindA)
		behindA.open()
		behindB.open()
		assert.Equal(s, processlock.Stats{Acquired: 2 + 4 + 2, Waited: 4}, s.stats())
	})
	gtBubble(t, 1, func(s *gtScene) { // of no keys: fn runs
		x := s.lock(processlock.All())
		s.states([]string{"runs"}, x)
		y := s.lock(processlock.All(), processlock.Shared)
		s.states([]string{"waits"}, y)
		x.open()
		y.open()
		assert.Equal(s, processlock.Stats{}, s.stats())
	})
	gtBubble(t, 0, func(s *gtScene) { // Shared
		r := s.call("b", processlock.Shared)
		x, y := s.lock(processlock.All("a", "b"), processlock.Shared), s.lock(processlock.All("b", "a"), processlock.Shared)
		s.states([]string{"runs", "runs"}, x, y)
		w := s.lock(processlock.All("a", "b"))
		s.states([]string{"waits"}, w)
		x.open()
		y.open()
		s.states([]string{"waits"}, w)
		r.open()
		s.states([]string{"runs"}, w)
		w.open()
	})
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

// What a task wrote is seen by the next under its key, and after Wait by all.
//
// Rules 7 and 38.
func TestGroupTaskSeesWhatTheOneBeforeWrote(t *testing.T) {
	var c processlock.Coordinator
	ctx := processlock.WithCoordinator(t.Context(), &c)
	g, _ := processlock.NewGroup(ctx, "g")
	g.SetLimit(3)
	sums, order := make([]int, 4), make([][]int, 4)
	for i := range 2000 {
		key := i % 4
		add := func(context.Context) error {
			sums[key] += i
			order[key] = append(order[key], i)
			return nil
		}
		if i%50 == 0 {
			g.GoLocked(processlock.All(key, key+100), add)
		} else {
			g.GoLocked(key, add)
		}
	}
	require.NoError(t, g.Wait())
	total := 0
	for key, sum := range sums {
		total += sum
		assert.Len(t, order[key], 500)
	}
	assert.Equal(t, 1999*1000, total)
}

// ErrLost and fn's error come joined, as WithLock's do.
//
// Rule 27.
func TestGroupJoinsErrLostWithTheError(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		var g *processlock.Group
		x := gtNew(s, func(context.Context) error { return errGt })
		require.NoError(s, s.c.WithLock(s.root, "k", func(ctx context.Context) error {
			g, _ = processlock.NewGroup(ctx, "in")
			g.GoLocked("k", x.fn, processlock.Reentrant)
			synctest.Wait()
			return nil
		}))
		x.open()
		err := g.Wait()
		assert.True(s, errors.Is(err, processlock.ErrLost) && errors.Is(err, errGt))
	})
}
