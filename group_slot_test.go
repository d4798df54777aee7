package processlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// A nested wait that ends without a grant leaves its queue at once, and goes on
// with a slot like any other.
//
// Rules 5, 9, 20 and 25.
func TestGroupSlotIsTakenAgainAfterAWaitInVain(t *testing.T) {
	for _, way := range []struct {
		name string
		opts []processlock.Option
		with func(ctx context.Context) (context.Context, func()) // what the call is made with, and what ends it
		want error
	}{
		{"MaxWait", []processlock.Option{processlock.MaxWait(time.Second)},
			func(ctx context.Context) (context.Context, func()) { return ctx, func() { time.Sleep(time.Second) } },
			processlock.ErrWaitTimeout},
		{"cancel", nil, func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }, context.Canceled},
		{"Client.Close", nil, func(ctx context.Context) (context.Context, func()) {
			ctx, client := processlock.WithClient(ctx, "inner")
			return ctx, client.Close
		}, processlock.ErrClosed},
		{"Client.Close, WithoutCancel", nil, func(ctx context.Context) (context.Context, func()) {
			ctx, client := processlock.WithClient(ctx, "inner")
			return context.WithoutCancel(ctx), client.Close
		}, processlock.ErrClosed},
	} {
		t.Run(way.name, func(t *testing.T) {
			gtBubble(t, 1, func(s *gtScene) {
				busy := s.call("k")
				var stop func()
				var err error
				back := false
				a := s.freeLast(func(ctx context.Context) error {
					ctx, stop = way.with(ctx)
					err = s.c.WithLock(ctx, "k", ctNever(s), way.opts...)
					back = true
					return nil
				})
				b, d := s.free(), s.free()
				a.open()
				behind := s.call("k")
				stop()
				synctest.Wait()
				assert.EqualValues(s, 1, s.c.Stats().Waiting, "it is out of the queue")
				assert.False(s, back, "b has the slot")
				s.states([]string{"runs", "waits"}, b, d)
				b.open()
				assert.True(s, back)
				assert.ErrorIs(s, err, way.want)
				s.states([]string{"over", "runs"}, a, d)
				d.open()
				busy.open()
				behind.open()
			})
		})
	}
}

// A nested call that was granted its key while there is no slot for it does not
// keep the key from others once its context is done.
//
// Rules 9, 10 and 25.
func TestGroupCallWithoutASlotGivesItsKeyUpWhenItsContextEnds(t *testing.T) {
	for _, close := range []bool{false, true} {
		gtBubble(t, 1, func(s *gtScene) {
			busy := s.call("k")
			var stop func()
			var err error
			a := s.freeLast(func(ctx context.Context) error {
				if close {
					var client *processlock.Client
					ctx, client = processlock.WithClient(ctx, "inner")
					stop = client.Close
				} else {
					ctx, stop = context.WithCancel(ctx)
				}
				err = s.c.WithLock(ctx, "k", ctNever(s))
				return nil
			})
			b := s.free()
			a.open()
			behind := s.call("k")
			busy.open()
			assert.Equal(s, "waits", behind.state(), "a has the key")
			stop()
			synctest.Wait()
			assert.Equal(s, "runs", behind.state())
			s.states([]string{"runs", "runs"}, a, b)
			b.open()
			s.states([]string{"over"}, a)
			assert.Equal(s, close, errors.Is(err, processlock.ErrClosed))
			assert.ErrorIs(s, err, context.Canceled)
			behind.open()
			want := processlock.Stats{Acquired: 2, Waited: 2, Canceled: 1}
			if close {
				want = processlock.Stats{Acquired: 2, Waited: 2, Closed: 1}
			}
			assert.Equal(s, want, s.stats())
		})
	}
}

// What such a call holds shows with the time of its grant, and its wait for the
// slot is none for the key.
//
// Rules 39, 40 and 41.
func TestGroupCallWithoutASlotShowsSinceItsGrant(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		a := s.nested("a", "k")
		b := s.free()
		a.open()
		time.Sleep(3 * time.Second)
		granted := time.Now()
		busy.open()
		time.Sleep(5 * time.Second)
		locks := s.c.Snapshot().Locks
		require.Len(s, locks, 2)
		h := locks[1].Holders[0]
		assert.Equal(s, "g-1", h.Client)
		assert.False(s, h.Running)
		assert.True(s, granted.Equal(h.Since), "since %v, granted %v", h.Since, granted)
		b.open()
		h = s.c.Snapshot().Locks[1].Holders[0]
		assert.True(s, h.Running)
		assert.True(s, granted.Equal(h.Since), "since %v, granted %v", h.Since, granted)
		assert.Equal(s, 3*time.Second, s.c.Stats().WaitDuration)
		a.inner.open()
	})
}

// A task that waits for a slot shows as a holder that does not run, since its
// grant.
//
// Rules 39 and 40.
func TestGroupTaskWithoutASlotShowsSinceItsGrant(t *testing.T) {
	for _, track := range []bool{false, true} {
		for _, key := range []any{"k", processlock.All("k", "l")} {
			gtBubbleWith(t, processlock.Options{TrackHolds: track}, 1, func(s *gtScene) {
				busy := s.call("k")
				running := s.free()
				x := s.lock(key)
				_, several := key.(processlock.Keys)
				asked := time.Now()
				row := func() processlock.LockState { return s.c.Snapshot().Locks[0] }
				w := row().Waiters[0]
				assert.Equal(s, "g-2", w.Client)
				assert.True(s, asked.Equal(w.Since))
				assert.Contains(s, w.Func, "gtTask")
				time.Sleep(time.Second)
				granted := time.Now()
				busy.open()
				time.Sleep(time.Second)
				for _, l := range s.c.Snapshot().Locks {
					h := l.Holders[0]
					assert.Equal(s, "g-2", h.Client)
					assert.False(s, h.Running)
					if l.Key == processlock.MustKey("k") {
						assert.True(s, granted.Equal(h.Since), "since %v, granted %v", h.Since, granted)
					} else {
						assert.Equal(s, track, !h.Since.IsZero(), "it was free")
					}
				}
				running.open()
				h := row().Holders[0]
				assert.True(s, h.Running)
				assert.True(s, granted.Equal(h.Since))
				assert.Equal(s, time.Second, s.c.Stats().WaitDuration)
				x.open()
				want := processlock.Stats{Acquired: 2, Waited: 1}
				if several {
					want.Acquired++
				}
				assert.Equal(s, want, s.stats())
			})
		}
	}
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

// The slot follows the task's context through WithClient, WithCoordinator,
// WithoutCancel and fn's context; a detached one is not the task's, nor is
// another.
func TestGroupSlotFollowsTheContext(t *testing.T) {
	for _, way := range []struct {
		name string
		with func(s *gtScene, ctx context.Context) context.Context
		back bool
	}{
		{"task", func(_ *gtScene, ctx context.Context) context.Context { return ctx }, true},
		{"WithoutCancel", func(_ *gtScene, ctx context.Context) context.Context { return context.WithoutCancel(ctx) }, true},
		{"WithClient", func(_ *gtScene, ctx context.Context) context.Context {
			ctx, _ = processlock.WithClient(ctx, "inner")
			return ctx
		}, true},
		{"WithCoordinator", func(_ *gtScene, ctx context.Context) context.Context {
			return processlock.WithCoordinator(ctx, processlock.New(processlock.Options{}))
		}, true},
		{"Detach", func(_ *gtScene, ctx context.Context) context.Context { return processlock.Detach(ctx) }, false},
		{"Detach, WithClient", func(_ *gtScene, ctx context.Context) context.Context {
			ctx, _ = processlock.WithClient(processlock.Detach(ctx), "inner")
			return ctx
		}, false},
		{"another", func(s *gtScene, _ context.Context) context.Context { return s.root }, false},
		{"the group's", func(s *gtScene, _ context.Context) context.Context { return s.ctx }, false},
	} {
		for _, key := range []any{nil, "key"} {
			t.Run(way.name, func(t *testing.T) {
				gtBubble(t, 1, func(s *gtScene) {
					busy := s.call("k")
					last := func(ctx context.Context) error { return s.c.WithLock(way.with(s, ctx), "k", ltNop) }
					var a *gtTask
					if key == nil {
						a = s.freeLast(last)
					} else {
						a = s.lockLast(key, last)
					}
					b := s.free()
					a.open()
					assert.Equal(s, way.back, b.state() == "runs")
					busy.open()
					b.open()
					s.states([]string{"over", "over"}, a, b)
				})
			})
		}
	}
}

// Wait in a task of another group gives the slot back, so that nested groups work
// at a limit of 1.
func TestGroupSlotIsGivenBackWhileWaitWaits(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		inner := gtNew(s, ltNop)
		var err error
		a := s.freeLast(func(ctx context.Context) error {
			g, _ := processlock.NewGroup(ctx, "inner")
			g.SetLimit(1)
			g.GoLocked("k", inner.fn)
			err = g.Wait()
			return nil
		})
		b, d := s.lock("k"), s.free()
		a.open()
		s.states([]string{"waits", "runs", "waits"}, inner, b, d)
		b.open()
		s.states([]string{"runs", "runs"}, inner, d)
		inner.open()
		s.states([]string{"runs"}, a)
		d.open()
		s.states([]string{"over"}, a)
		assert.NoError(s, err)
	})
}

// So does Shutdown: it may wait for tasks that hold their keys and wait for a
// slot.
//
// Rule 29.
func TestGroupSlotIsGivenBackWhileShutdownWaits(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		var err error
		a := s.freeLast(func(ctx context.Context) error {
			err = s.c.Shutdown(ctx)
			return nil
		})
		b := s.lock("k")
		s.states([]string{"runs", "waits"}, a, b)
		a.open()
		s.states([]string{"runs", "runs"}, a, b)
		b.open()
		s.states([]string{"over", "over"}, a, b)
		assert.NoError(s, err)
	})
}

// What a task leaves behind when it ends has no slot to wait for.
func TestGroupSlotIsNothingToWhatATaskLeavesBehind(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		left, other := &ltCall{gate: make(chan struct{}), last: ltNop}, &ltCall{}
		over := make(chan struct{})
		a := s.freeLast(func(ctx context.Context) error {
			go left.run(func() error { return s.c.WithLock(context.WithoutCancel(ctx), "l", left.fn) })
			go other.run(func() error { return s.c.WithLock(ctx, "k", ltNop) })
			<-over
			return nil
		})
		b, d := s.free(), s.free()
		a.open()
		s.states([]string{"runs", "runs", "waits"}, a, b, d)
		assert.Equal(s, []string{"runs", "waits"}, ltStates(left, other))
		close(over)
		synctest.Wait()
		s.states([]string{"over", "runs", "waits"}, a, b, d)
		ltRefused(s, other, processlock.ErrClosed)
		assert.Equal(s, "runs", left.state())
		left.open()
		assert.Equal(s, "over", left.state())
		assert.Equal(s, processlock.ErrLost, left.err, "its client was closed with the task")
		b.open()
		d.open()
		busy.open()
	})
}

// Nor when it is waiting for one just then.
func TestGroupTaskEndsWhileACallOfItsWaitsForTheSlot(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		left, over := &ltCall{}, make(chan struct{})
		a := s.freeLast(func(ctx context.Context) error {
			go left.run(func() error { return s.c.WithLock(context.WithoutCancel(ctx), "k", ctNever(s)) })
			<-over
			return nil
		})
		b, d := s.free(), s.free()
		a.open()
		busy.open()
		assert.Equal(s, "waits", left.state())
		s.states([]string{"runs", "runs", "waits"}, a, b, d)
		close(over)
		synctest.Wait()
		s.states([]string{"over", "runs", "waits"}, a, b, d)
		ltRefused(s, left, processlock.ErrClosed)
		b.open()
		d.open()
	})
}
