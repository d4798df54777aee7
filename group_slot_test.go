package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/dbx-tools/processlock"
)

// gtNested is a task's fn that asks for key with its own context, and holds it
// until the inner gate opens.
type gtNested struct {
	*gtTask
	inner *ltCall
}

// nested adds a task that, once its gate is open, calls WithLock for inner and
// then returns what that returned.
func (s *gtScene) nested(key, inner any, opts ...processlock.Option) *gtNested {
	n := &gtNested{inner: &ltCall{gate: make(chan struct{}), last: ltNop}}
	last := func(ctx context.Context) error {
		n.inner.run(func() error { return s.c.WithLock(ctx, inner, n.inner.fn, opts...) })
		return nil
	}
	if key == nil {
		n.gtTask = s.freeLast(last)
	} else {
		n.gtTask = s.lockLast(key, last)
	}
	return n
}

// While a call of the task waits, another task has its slot; it goes on only
// when it has a slot again, before tasks that have not started.
func TestGroupSlotIsGivenBackWhileACallWaits(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		a := s.nested(nil, "k")
		b, d := s.lock("b"), s.free()
		s.states([]string{"runs", "waits", "waits"}, a.gtTask, b, d)
		a.open()
		assert.Equal(s, "waits", a.inner.state())
		s.states([]string{"runs", "waits"}, b, d)

		busy.open()
		assert.Equal(s, "waits", a.inner.state(), "the slot is b's")
		b.open()
		assert.Equal(s, "runs", a.inner.state(), "before d, though d came first")
		s.states([]string{"over", "waits"}, b, d)
		a.inner.open()
		s.states([]string{"over", "runs"}, a.gtTask, d)
		assert.NoError(s, a.inner.err)
		d.open()
	})
}

// Two tasks, one slot, and each wants the key of the other's: were slots kept,
// they would wait for ever.
func TestGroupTaskWaitsForTheKeyOfOneThatWaitsForASlot(t *testing.T) {
	for limit := 1; limit <= 2; limit++ {
		gtBubble(t, limit, func(s *gtScene) {
			var running []*gtNested
			for range limit {
				running = append(running, s.nested(nil, "k"))
			}
			x := s.lock("k")
			s.states([]string{"waits"}, x)
			for _, r := range running {
				r.open()
				assert.Equal(s, "waits", r.inner.state())
			}
			s.states([]string{"runs"}, x)
			x.open()
			for _, r := range running {
				assert.Equal(s, "runs", r.inner.state())
				r.inner.open()
				s.states([]string{"over"}, r.gtTask)
			}
		})
	}
}

// A call that need not wait keeps the slot.
func TestGroupSlotIsKeptByACallThatDoesNotWait(t *testing.T) {
	for _, opts := range [][]processlock.Option{nil, {processlock.IfAvailable}, {processlock.MaxWait(0)}} {
		gtBubble(t, 1, func(s *gtScene) {
			a, b := s.nested(nil, "k", opts...), s.free()
			a.open()
			assert.Equal(s, "runs", a.inner.state())
			s.states([]string{"waits"}, b)
			a.inner.open()
			s.states([]string{"over", "runs"}, a.gtTask, b)
			b.open()
		})
	}
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		a, b := s.nested(nil, "k", processlock.IfAvailable), s.free()
		a.open()
		assert.ErrorIs(s, a.inner.err, processlock.ErrUnavailable)
		s.states([]string{"over", "runs"}, a.gtTask, b)
		b.open()
		busy.open()
	})
}

// Those that take their slots again are served in the order in which their waits
// ended, all of them before a task that was granted its key before.
func TestGroupSlotsComeBackInOrder(t *testing.T) {
	gtBubble(t, 2, func(s *gtScene) {
		k1, k2 := s.call("k1"), s.call("k2")
		a, b := s.nested("a", "k1"), s.nested("b", "k2")
		a.open()
		b.open()
		x, y := s.free(), s.free()
		next := s.lock("next")
		s.states([]string{"runs", "runs", "waits"}, x, y, next)
		k2.open()
		k1.open()
		assert.Equal(s, []string{"waits", "waits"}, ltStates(a.inner, b.inner))
		x.open()
		assert.Equal(s, []string{"waits", "runs"}, ltStates(a.inner, b.inner))
		y.open()
		assert.Equal(s, []string{"runs", "runs"}, ltStates(a.inner, b.inner))
		s.states([]string{"waits"}, next)
		a.inner.open()
		s.states([]string{"runs"}, next)
		b.inner.open()
		next.open()
	})
}

// Several goroutines of one task wait: the first to go on passes through a slot,
// but does not keep it while another of them still waits.
func TestGroupSlotIsNotHeldWhileAnyCallOfTheTaskWaits(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		k1, k2 := s.call("k1"), s.call("k2")
		var x, y *ltCall
		over := make(chan struct{})
		a := s.freeLast(func(ctx context.Context) error {
			x, y = &ltCall{gate: make(chan struct{}), last: ltNop}, &ltCall{gate: make(chan struct{}), last: ltNop}
			go x.run(func() error { return s.c.WithLock(ctx, "k1", x.fn) })
			go y.run(func() error { return s.c.WithLock(ctx, "k2", y.fn) })
			<-over
			return nil
		})
		b, d, e := s.free(), s.free(), s.free()
		a.open()
		s.states([]string{"runs", "runs", "waits"}, a, b, d)
		k1.open()
		assert.Equal(s, []string{"waits", "waits"}, ltStates(x, y), "b has the slot")
		b.open()
		assert.Equal(s, []string{"runs", "waits"}, ltStates(x, y))
		s.states([]string{"runs", "waits"}, d, e)
		k2.open()
		assert.Equal(s, []string{"runs", "waits"}, ltStates(x, y), "d has the slot")
		x.open()
		assert.Equal(s, []string{"over", "waits"}, ltStates(x, y))
		d.open()
		assert.Equal(s, []string{"over", "runs"}, ltStates(x, y))
		s.states([]string{"waits"}, e)
		y.open()
		s.states([]string{"waits"}, e)
		close(over)
		synctest.Wait()
		s.states([]string{"over", "runs"}, a, e)
		e.open()
	})
}

// Two waits of one task that end at one time take one slot.
func TestGroupSlotIsTakenOnceForTwoCalls(t *testing.T) {
	gtBubble(t, 2, func(s *gtScene) {
		busy := s.call("k")
		var calls [2]*ltCall
		a := s.freeLast(func(ctx context.Context) error {
			over := make(chan struct{}, 2)
			for i := range calls {
				calls[i] = &ltCall{gate: make(chan struct{}), last: ltNop}
				go func() {
					calls[i].run(func() error { return s.c.WithLock(ctx, "k", calls[i].fn, processlock.Shared) })
					over <- struct{}{}
				}()
			}
			<-over
			<-over
			return nil
		})
		a.open()
		x, y, z := s.free(), s.free(), s.free()
		s.states([]string{"runs", "runs", "waits"}, x, y, z)
		busy.open()
		assert.Equal(s, []string{"waits", "waits"}, ltStates(calls[:]...))
		x.open()
		assert.Equal(s, []string{"runs", "runs"}, ltStates(calls[:]...))
		y.open()
		s.states([]string{"runs"}, z)
		w := s.free()
		s.states([]string{"waits"}, w)
		calls[0].open()
		calls[1].open()
		s.states([]string{"over", "runs", "runs"}, a, z, w)
		z.open()
		w.open()
	})
}

// All in a task's call gives the slot back in each wait.
//
// Rule 23.
func TestGroupSlotWithAllInATask(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		k1, k2 := s.call("k1"), s.call("k2")
		a := s.nested(nil, processlock.All("k1", "k2"))
		b := s.free()
		a.open()
		s.states([]string{"runs"}, b)
		b.open()
		d := s.free()
		s.states([]string{"runs"}, d)
		k1.open()
		d.open()
		e := s.free()
		s.states([]string{"runs"}, e)
		k2.open()
		assert.Equal(s, "waits", a.inner.state())
		e.open()
		assert.Equal(s, "runs", a.inner.state())
		a.inner.open()
	})
}
