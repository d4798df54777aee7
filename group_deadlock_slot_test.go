package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dbx-tools/processlock"
)

// The search sees what a task holds that waits for its slot: one call of g-1 has
// got its key x and waits for the slot to come back, another waits for y, and
// y's holder asks for the key k of the task.
//
// Rule 31.
func TestGroupTaskThatWaitsForItsSlotIsOnACycle(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		x := s.call("x")
		var err error
		y := ltGoLast(s.root, s.c, "y", func(ctx context.Context) error {
			err = s.c.WithLock(ctx, "k", ctNever(s))
			return nil
		})
		first, second := &ltCall{gate: make(chan struct{}), last: ltNop}, &ltCall{gate: make(chan struct{}), last: ltNop}
		a := s.lockLast("k", func(ctx context.Context) error {
			over := make(chan struct{}, 2)
			for key, call := range map[string]*ltCall{"x": first, "y": second} {
				go func() {
					call.run(func() error { return s.c.WithLock(ctx, key, call.fn) })
					over <- struct{}{}
				}()
			}
			<-over
			<-over
			return nil
		})
		busy := s.free()
		a.open()
		x.open()
		assert.Equal(s, "runs", busy.state(), "it has the slot")
		assert.Equal(s, map[string][2][]string{`["k"]`: {{"g-1*"}, nil}, `["x"]`: {{"g-1"}, nil}, `["y"]`: {{"*"}, {"g-1"}}}, gtLocks(s.c))

		y.open()
		assert.Equal(s, []string{`["k"] of "g-1"`, `["y"] of ""`}, gtCycle(s, err))
		assert.Equal(s, "over", y.state())
		assert.Equal(s, []string{"waits", "waits"}, ltStates(first, second), "for the slot, both")
		busy.open()
		assert.Equal(s, []string{"runs", "runs"}, ltStates(first, second))
		first.open()
		second.open()
		assert.EqualValues(s, 1, s.c.Stats().Deadlocks)
	})
}

// What a task holds that has not started, since it waits for a slot, is on no
// cycle. A hold is on one only if a request waits whose lineage it is in, and
// lineage comes with the context that fn is given: before fn has that, nobody
// but the task itself asks under its holds, for the next key of All, and it has
// them all. Nor does the search take the wait for the slot for one: that ends
// when running code ends or waits with its task's context.
//
// What is left is the call that is made in a task with another context. It keeps
// the slot, so that here g-1, g-2 and the call wait for each other, and nobody is
// told, as the doc of Group says, until one is ended from outside. With the
// task's context nobody waits for long.
//
// Rule 31.
func TestGroupTaskThatHasNotStartedIsOnNoCycle(t *testing.T) {
	for _, way := range []struct {
		name string
		own  bool // the call in the task is made with the task's context
		fn   bool // the group is made in an fn, whose lineage the other context has
	}{
		{"another context", false, false},
		{"another context, with lineage", false, true},
		{"the task's", true, false},
		{"the task's, with lineage", true, true},
	} {
		t.Run(way.name, func(t *testing.T) {
			gtBubble(t, 1, func(s *gtScene) {
				var stop context.CancelFunc
				scene := func(ctx context.Context) error {
					ctx, stop = context.WithCancel(ctx)
					defer stop()
					g, _ := processlock.NewGroup(processlock.WithCoordinator(ctx, s.c), "in")
					g.SetLimit(1)
					var errs [2]error
					first := gtNew(s, func(own context.Context) error {
						if !way.own {
							own = ctx
						}
						errs[0] = s.c.WithLock(own, "x", ltNop)
						return nil
					})
					g.Go(first.fn)
					synctest.Wait()
					second := gtNew(s, ltNop)
					g.GoLocked("k", second.fn)
					x := ltGoLast(s.root, s.c, "x", func(ctx context.Context) error {
						errs[1] = s.c.WithLock(ctx, "k", ltNop)
						return nil
					})
					x.open()
					first.open()
					if way.own {
						assert.Equal(s, "runs", second.state())
						second.open()
						assert.NoError(s, errs[0])
					} else {
						time.Sleep(time.Hour)
						synctest.Wait()
						assert.Equal(s, []string{"runs", "waits"}, gtStates(first, second))
						locks := gtLocks(s.c)
						assert.Equal(s, [2][]string{{"in-2"}, {""}}, locks[`["k"]`])
						assert.Equal(s, [2][]string{{"*"}, {""}}, locks[`["x"]`])
						second.let()
						stop()
					}
					_ = g.Wait()
					synctest.Wait()
					assert.Equal(s, []string{"over"}, gtStates(first))
					assert.Equal(s, "over", x.state())
					assert.NoError(s, errs[1])
					return nil
				}
				if way.fn {
					assert.NoError(s, s.c.WithLock(s.root, "h", scene))
				} else {
					assert.NoError(s, scene(s.root))
				}
				assert.Zero(s, s.c.Stats().Deadlocks)
			})
		})
	}
}
