package processlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// gtCycle is the cycle of err as texts: key and holder's client.
func gtCycle(t testing.TB, err error) (steps []string) {
	t.Helper()
	var de *processlock.DeadlockError
	require.ErrorAs(t, err, &de)
	for _, w := range de.Cycle {
		steps = append(steps, fmt.Sprintf("%v of %q", w.Key, w.Client))
	}
	return steps
}

// A group made inside fn belongs to fn's lineage: a task that asks for fn's key
// is a deadlock, at once, and the group's error.
//
// Rule 30.
func TestGroupInsideFnAsksForFnsKey(t *testing.T) {
	for _, key := range []any{"k", processlock.All("a", "k"), processlock.All("k", "z")} {
		gtBubble(t, 0, func(s *gtScene) {
			require.NoError(s, s.c.WithLock(s.root, "k", func(ctx context.Context) error {
				g, gctx := processlock.NewGroup(ctx, "in")
				g.GoLocked(key, ctNever(s))
				synctest.Wait()
				assert.Error(s, gctx.Err())
				err := g.Wait()
				assert.ErrorIs(s, err, processlock.ErrDeadlock)
				var ae *processlock.AcquireError
				require.ErrorAs(s, err, &ae)
				assert.Equal(s, processlock.MustKey("k"), ae.Key)
				assert.Equal(s, []string{`["k"] of ""`}, gtCycle(s, err))
				assert.Contains(s, err.Error(), "Detach(ctx) is for")
				return nil
			}))
			st := s.stats()
			assert.EqualValues(s, 1, st.Deadlocks)
			assert.Zero(s, st.Canceled)
		})
	}
	gtBubble(t, 0, func(s *gtScene) { // IfAvailable never waits
		require.NoError(s, s.c.WithLock(s.root, "k", func(ctx context.Context) error {
			g, _ := processlock.NewGroup(ctx, "in")
			g.GoLocked("k", ctNever(s), processlock.IfAvailable)
			assert.NoError(s, g.Wait())
			assert.Equal(s, 1, g.Skipped())
			return nil
		}))
	})
}

// A task that asks for its own key, in its own call.
//
// Rule 30.
func TestGroupTaskAsksForItsOwnKey(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		var err error
		x := s.lockLast("k", func(ctx context.Context) error {
			err = s.c.WithLock(ctx, "k", ctNever(s))
			return s.c.WithLock(ctx, "k", ltNop, processlock.Reentrant)
		})
		x.open()
		assert.Equal(s, []string{`["k"] of "g-1"`}, gtCycle(s, err))
		assert.NoError(s, s.g.Wait())
	})
}

// The way out: a group of a detached context, which may outlive fn.
//
// Rule 32.
func TestGroupOfADetachedContextOutlivesFn(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		var g *processlock.Group
		x := gtNew(s, ltNop)
		require.NoError(s, s.c.WithLock(s.root, "k", func(ctx context.Context) error {
			g, _ = processlock.NewGroup(processlock.Detach(ctx), "out")
			g.GoLocked("k", x.fn)
			synctest.Wait()
			assert.Equal(s, "waits", x.state())
			return nil
		}))
		synctest.Wait()
		assert.Equal(s, "runs", x.state())
		x.open()
		assert.NoError(s, g.Wait())
	})
	// Once fn has returned its hold is no part of the lineage any more.
	gtBubble(t, 0, func(s *gtScene) {
		var g *processlock.Group
		require.NoError(s, s.c.WithLock(s.root, "k", func(ctx context.Context) error {
			g, _ = processlock.NewGroup(ctx, "late")
			return nil
		}))
		x, y := gtNew(s, ltNop), gtNew(s, ltNop)
		g.GoLocked("k", x.fn)
		g.GoLocked("k", y.fn)
		synctest.Wait()
		s.states([]string{"runs", "waits"}, x, y)
		x.open()
		y.open()
		assert.NoError(s, g.Wait())
	})
}

// fn(h) waits for its group; a task of that waits for k; whoever holds k asks for
// h. The last to arrive is told, whether that is the call or the task.
//
// Rule 31.
func TestGroupTaskOnACycle(t *testing.T) {
	for _, key := range []any{"k", processlock.All("a", "k")} {
		gtBubble(t, 1, func(s *gtScene) { // the call is last
			var werr error
			waiting := gtNew(s, ltNop)
			h := ltGoLast(s.root, s.c, "h", func(ctx context.Context) error {
				g, _ := processlock.NewGroup(ctx, "in")
				g.GoLocked(key, waiting.fn)
				werr = g.Wait()
				return nil
			})
			var err error
			k := ltGoLast(s.root, s.c, "k", func(ctx context.Context) error {
				err = s.c.WithLock(ctx, "h", ctNever(s))
				return nil
			})
			close(h.gate)
			synctest.Wait()
			assert.EqualValues(s, 1, s.c.Stats().Waiting)
			k.open()
			assert.Equal(s, []string{`["h"] of ""`, `["k"] of ""`}, gtCycle(s, err))
			assert.Equal(s, "runs", waiting.state())
			waiting.open()
			assert.NoError(s, werr)
			assert.Equal(s, "over", h.state())
		})
		gtBubble(t, 1, func(s *gtScene) { // the task is last
			var werr, err error
			h := ltGoLast(s.root, s.c, "h", func(ctx context.Context) error {
				g, _ := processlock.NewGroup(ctx, "in")
				g.GoLocked(key, ctNever(s))
				werr = g.Wait()
				return nil
			})
			k := ltGoLast(s.root, s.c, "k", func(ctx context.Context) error {
				err = s.c.WithLock(ctx, "h", ltNop)
				return nil
			})
			k.open()
			assert.Equal(s, "runs", k.state())
			h.open()
			assert.Equal(s, []string{`["k"] of ""`, `["h"] of ""`}, gtCycle(s, werr))
			assert.NoError(s, err)
			assert.Equal(s, "over", k.state())
			assert.EqualValues(s, 1, s.c.Stats().Deadlocks)
		})
	}
}

// Tasks that hold one key and ask for each other's; the holds of a task that
// waits for a slot, or for another of its keys, are seen too.
//
// Rule 31.
func TestGroupTasksInACycle(t *testing.T) {
	t.Run("two tasks", func(t *testing.T) {
		gtBubble(t, 2, func(s *gtScene) {
			var errs [2]error
			a := s.lockLast("a", func(ctx context.Context) error {
				errs[0] = s.c.WithLock(ctx, "b", ltNop)
				return nil
			})
			b := s.lockLast("b", func(ctx context.Context) error {
				errs[1] = s.c.WithLock(ctx, "a", ltNop)
				return nil
			})
			a.open()
			b.open()
			assert.NoError(s, errs[0])
			assert.Equal(s, []string{`["a"] of "g-1"`, `["b"] of "g-2"`}, gtCycle(s, errs[1]))
		})
	})
	t.Run("with a task that waits for All", func(t *testing.T) {
		// g-1 has a and waits for b, whose holder asks for a.
		gtBubble(t, 0, func(s *gtScene) {
			var err error
			b := ltGoLast(s.root, s.c, "b", func(ctx context.Context) error {
				err = s.c.WithLock(ctx, "a", ctNever(s))
				return nil
			})
			x := s.lock(processlock.All("a", "b"))
			s.states([]string{"waits"}, x)
			b.open()
			assert.Equal(s, []string{`["a"] of "g-1"`, `["b"] of ""`}, gtCycle(s, err))
			s.states([]string{"runs"}, x)
			x.open()
		})
	})
	t.Run("closed by a task that waits for All", func(t *testing.T) {
		// The call has b and waits for a; g-1 gets a after that, and asks for b.
		gtBubble(t, 0, func(s *gtScene) {
			a := s.call("a")
			x := s.lock(processlock.All("a", "b"))
			var err error
			b := ltGoLast(s.root, s.c, "b", func(ctx context.Context) error {
				err = s.c.WithLock(ctx, "a", ltNop)
				return nil
			})
			b.open()
			a.open()
			assert.NoError(s, err)
			assert.Equal(s, "over", b.state())
			s.states([]string{"waits"}, x)
			werr := s.g.Wait()
			assert.Equal(s, []string{`["b"] of ""`, `["a"] of "g-1"`}, gtCycle(s, werr))
			var ae *processlock.AcquireError
			require.ErrorAs(s, werr, &ae)
			assert.Equal(s, processlock.MustKey("b"), ae.Key)
			assert.EqualValues(s, 1, s.c.Stats().Deadlocks)
		})
	})
	t.Run("through a task that waits for a slot", func(t *testing.T) {
		// That is no deadlock: the slot comes back when its holder waits.
		gtBubble(t, 1, func(s *gtScene) {
			a := s.nested("a", "b")
			b := s.nested("b", "c")
			a.open()
			b.open()
			assert.Equal(s, "runs", b.inner.state())
			b.inner.open()
			assert.Equal(s, "runs", a.inner.state())
			a.inner.open()
			assert.NoError(s, a.inner.err)
			assert.Zero(s, s.c.Stats().Deadlocks)
		})
	})
}

// What such a task holds shows in the snapshot of who waits for it.
//
// Rules 31 and 39.
func TestGroupTaskWithoutASlotIsNoWaiter(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		// in-1 holds k and waits for a slot that in-0's running fn has.
		var err error
		require.NoError(s, s.c.WithLock(s.root, "h", func(ctx context.Context) error {
			g, _ := processlock.NewGroup(ctx, "in")
			g.SetLimit(1)
			run := gtNew(s, ltNop)
			g.Go(run.fn)
			slot := gtNew(s, ltNop)
			g.GoLocked("k", slot.fn)
			g.GoLocked("k", ltNop)
			synctest.Wait()
			assert.Equal(s, [2][]string{{"in-2"}, {"in-3"}}, gtLocks(s.c)[`["k"]`])
			var holding []string
			for _, l := range s.c.Snapshot().Locks {
				for _, w := range l.Waiters {
					for _, k := range w.Holding {
						holding = append(holding, k.String())
					}
				}
			}
			assert.Equal(s, []string{`["h"]`}, holding)
			run.open()
			slot.open()
			err = g.Wait()
			return nil
		}))
		assert.NoError(s, err)
	})
}

// A request whose context is done is no part of a deadlock.
//
// Rule 32.
func TestGroupOfADoneContextIsInNoCycle(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		var werr, err error
		var cancel context.CancelFunc
		h := ltGoLast(s.root, s.c, "h", func(ctx context.Context) error {
			ctx, cancel = context.WithCancel(ctx)
			g, _ := processlock.NewGroup(ctx, "in")
			g.GoLocked("k", ctNever(s))
			werr = g.Wait()
			return nil
		})
		k := ltGoLast(s.root, s.c, "k", func(ctx context.Context) error {
			cancel() // and before anybody has noticed:
			err = s.c.WithLock(ctx, "h", ltNop)
			return nil
		})
		h.open()
		assert.EqualValues(s, 1, s.c.Stats().Waiting)
		k.open()
		assert.Equal(s, "over", h.state())
		assert.NoError(s, err)
		assert.ErrorIs(s, werr, context.Canceled)
		assert.Zero(s, s.c.Stats().Deadlocks)
	})
}
