package processlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rule 19.
func TestIfAvailableNeverWaits(t *testing.T) {
	rows := []struct {
		name  string
		held  string // arrivals before the try, as in the queue tests
		mode  byte
		works bool
	}{
		{"free", "", 'X', true},
		{"free, shared", "", 'S', true},
		{"held", "X", 'X', false},
		{"held, shared try", "X", 'S', false},
		{"shared, exclusive try", "S", 'X', false},
		{"shared, shared try", "S", 'S', true},
		{"shared by many", "SSS", 'S', true},
		{"exclusive queued in front", "SX", 'S', false},
		{"shared queued in front", "SXS", 'S', false},
		{"exclusive try behind a queue", "SX", 'X', false},
	}
	for _, row := range rows {
		for _, try := range []processlock.Option{processlock.IfAvailable, processlock.MaxWait(0), processlock.MaxWait(-time.Second)} {
			for _, key := range []any{"k", processlock.All("a", "k", "z")} {
				t.Run(fmt.Sprintf("%s/%T/%T", row.name, try, key), func(t *testing.T) {
					ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
						var calls []*ltCall
						for _, letter := range []byte(row.held) {
							calls = append(calls, ltGo(t.Context(), c, "k", ltMode(letter)...))
						}
						locks, waited := c.Snapshot().Locks, c.Stats().Waited
						start := time.Now()
						ran := false
						err := c.WithLock(t.Context(), key, func(context.Context) error {
							ran = true
							return nil
						}, append(ltMode(row.mode), try)...)
						assert.Equal(t, row.works, ran)
						if row.works {
							assert.NoError(t, err)
						} else {
							assert.ErrorIs(t, err, processlock.ErrUnavailable)
							assert.NotErrorIs(t, err, processlock.ErrWaitTimeout)
							assert.NotErrorIs(t, err, processlock.ErrQueueFull)
							assert.Equal(t, int64(1), c.Stats().Unavailable)
						}
						assert.Equal(t, start, time.Now(), "it waited")
						assert.Equal(t, waited, c.Stats().Waited)
						assert.Equal(t, locks, c.Snapshot().Locks, "the try left a trace")
						for _, call := range calls {
							close(call.gate)
						}
						synctest.Wait()
						for _, call := range calls {
							ltServed(t, call)
						}
					})
				})
			}
		}
	}
}

// Rule 20.
func TestMaxWaitBoundsTheWait(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k")
		start := time.Now()
		err := c.WithLock(t.Context(), "k", ltNop, processlock.MaxWait(90*time.Second))
		assert.Equal(t, 90*time.Second, time.Since(start))
		assert.ErrorIs(t, err, processlock.ErrWaitTimeout)
		assert.ErrorIs(t, err, processlock.ErrUnavailable)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, c.Stats().Waiting)
		assert.Equal(t, int64(1), c.Stats().Unavailable)
		holder.open()
	})
}

// Rule 20.
func TestMaxWaitDoesNotBoundFn(t *testing.T) {
	for _, waits := range []bool{false, true} {
		for _, key := range []any{"k", processlock.All("j", "k")} {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				holder := ltGo(t.Context(), c, "k")
				if !waits {
					holder.open()
				}
				call := ltGo(t.Context(), c, key, processlock.MaxWait(time.Minute))
				if waits {
					time.Sleep(time.Minute - 1)
					holder.open()
				}
				time.Sleep(time.Hour)
				assert.Equal(t, "runs", call.state())
				assert.NoError(t, call.ctx.Err())
				_, bounded := call.ctx.Deadline()
				assert.False(t, bounded, "MaxWait became a deadline")
				call.open()
				ltServed(t, call)
			})
		}
	}
}

// Rule 20.
func TestShortestMaxWaitCounts(t *testing.T) {
	second, minute := processlock.MaxWait(time.Second), processlock.MaxWait(time.Minute)
	rows := []struct {
		name   string
		opts   []processlock.Option
		waited time.Duration
		is     error
	}{
		{"ascending", []processlock.Option{second, minute}, time.Second, processlock.ErrWaitTimeout},
		{"descending", []processlock.Option{minute, second}, time.Second, processlock.ErrWaitTimeout},
		{"twice", []processlock.Option{second, second}, time.Second, processlock.ErrWaitTimeout},
		{"zero last", []processlock.Option{second, processlock.MaxWait(0)}, 0, processlock.ErrUnavailable},
		{"zero first", []processlock.Option{processlock.MaxWait(0), second}, 0, processlock.ErrUnavailable},
		{"negative", []processlock.Option{minute, processlock.MaxWait(-1), second}, 0, processlock.ErrUnavailable},
		{"beside IfAvailable", []processlock.Option{processlock.IfAvailable, second}, 0, processlock.ErrUnavailable},
	}
	for _, row := range rows {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			holder := ltGo(t.Context(), c, "k")
			start := time.Now()
			err := c.WithLock(t.Context(), "k", ltNop, row.opts...)
			assert.Equal(t, row.waited, time.Since(start), row.name)
			assert.ErrorIs(t, err, row.is, row.name)
			assert.Equal(t, row.waited > 0, c.Stats().Waited == 1, row.name)
			holder.open()
		})
	}
}

// Rule 20.
func TestMeetingOfGrantAndMaxWaitIsNeverBothAndNeverNeither(t *testing.T) {
	for range 300 {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			holder := ltGo(t.Context(), c, "k")
			time.AfterFunc(time.Second, func() { close(holder.gate) })
			waiter := ltGo(t.Context(), c, "k", processlock.MaxWait(time.Second))
			time.Sleep(2 * time.Second)
			if waiter.state() == "runs" {
				waiter.open()
				ltServed(t, waiter)
			} else {
				ltRefused(t, waiter, processlock.ErrWaitTimeout)
			}
			assert.True(t, ltFree(c, "k"))
		})
	}
}

// ltLate is a context whose Done takes its time in the n'th call, so that what a
// wait is for and what ends it are both there when the wait begins.
func ltLate(ctx context.Context, n int, pause func()) context.Context {
	calls := 0
	h := &ltHooked{Context: context.WithoutCancel(ctx)}
	done := make(chan struct{})
	h.done = func() <-chan struct{} {
		if calls++; calls == n {
			pause()
		}
		return done
	}
	return h
}

// ltDoneCalls is how many times a call that waits twice, for a and for b of
// All(a, b), asks Done up to and with its second wait.
func ltDoneCalls(t *testing.T) (n int) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		a, b := ltGo(t.Context(), c, "a"), ltGo(t.Context(), c, "b")
		ctx := &ltHooked{Context: context.WithoutCancel(t.Context())}
		done := make(chan struct{})
		ctx.done = func() <-chan struct{} {
			n++
			return done
		}
		call := ltGo(ctx, c, processlock.All("a", "b"))
		a.open()
		seen := n
		b.open()
		call.open()
		ltServed(t, call)
		n = seen
	})
	return n
}

// The timer of All's first wait has run out, and the second key has been
// granted, by the time the request looks.
//
// Rule 20.
func TestGrantWinsOverMaxWait(t *testing.T) {
	n := ltDoneCalls(t)
	for range 50 {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			a, b := ltGo(t.Context(), c, "a"), ltGo(t.Context(), c, "b")
			ctx := ltLate(t.Context(), n, func() {
				close(b.gate)
				time.Sleep(time.Hour)
			})
			call := ltGo(ctx, c, processlock.All("a", "b"), processlock.MaxWait(time.Minute))
			a.open()
			time.Sleep(2 * time.Hour)
			assert.Equal(t, "runs", call.state())
			call.open()
			ltServed(t, call)
		})
	}
}

// As above, and then a third key is not free: time that has run out stays run
// out, though the grant of the second key won against it.
//
// Rule 20.
func TestMaxWaitThatLostToAGrantStillBoundsTheNextWait(t *testing.T) {
	n := ltDoneCalls(t)
	for range 50 {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			a, b, d := ltGo(t.Context(), c, "a"), ltGo(t.Context(), c, "b"), ltGo(t.Context(), c, "d")
			ctx := ltLate(t.Context(), n, func() {
				close(b.gate)
				time.Sleep(time.Hour)
			})
			call := ltGo(ctx, c, processlock.All("a", "b", "d"), processlock.MaxWait(time.Minute))
			a.open()
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if call.state() == "waits" {
				t.Error("the third key is waited for without end")
				d.open()
				call.open()
				return
			}
			ltRefused(t, call, processlock.ErrWaitTimeout)
			d.open()
		})
	}
}

// Rules 20 and 23.
func TestMaxWaitBoundsTheWaitsOfAllTogether(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		a, b := ltGo(t.Context(), c, "a"), ltGo(t.Context(), c, "b")
		time.AfterFunc(40*time.Second, func() { close(a.gate) })
		start := time.Now()
		err := c.WithLock(t.Context(), processlock.All("b", "a"), ltNop, processlock.MaxWait(time.Minute))
		assert.Equal(t, time.Minute, time.Since(start))
		assert.ErrorIs(t, err, processlock.ErrWaitTimeout)
		var refusal *processlock.AcquireError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, processlock.MustKey("b"), refusal.Key)
		assert.True(t, ltFree(c, "a"), "a was kept")
		b.open()
	})
}

// A context that is done counts first, whatever else has happened by then.
//
// Rules 10 and 20.
func TestDoneContextWinsOverMaxWait(t *testing.T) {
	for range 100 {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			dead := make(chan struct{})
			ctx := &ltHooked{
				Context: context.WithoutCancel(t.Context()),
				done:    func() <-chan struct{} { return make(chan struct{}) },
				err: func() error {
					select {
					case <-dead:
						return context.Canceled
					default:
						return nil
					}
				},
			}
			holder := ltGo(t.Context(), c, "k")
			waiter := ltGo(ctx, c, "k", processlock.MaxWait(time.Second))
			close(dead)
			time.Sleep(time.Second)
			synctest.Wait()
			ltRefused(t, waiter, context.Canceled)
			assert.NotErrorIs(t, waiter.err, processlock.ErrWaitTimeout)
			assert.Equal(t, int64(1), c.Stats().Canceled)
			holder.open()
		})
	}
}

// Rule 21.
func TestMaxWaiters(t *testing.T) {
	ltBubbleWith(t, processlock.Options{MaxWaiters: 2}, func(t *testing.T, c *processlock.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		holder, other := ltGo(t.Context(), c, "k"), ltGo(t.Context(), c, "other")
		waiters := []*ltCall{ltGo(ctx, c, "k"), ltGo(t.Context(), c, "k", processlock.Shared)}

		full := ltGo(t.Context(), c, "k")
		ltRefused(t, full, processlock.ErrQueueFull)
		assert.ErrorIs(t, full.err, processlock.ErrUnavailable)
		for _, opt := range []processlock.Option{processlock.Shared, processlock.Reentrant, processlock.MaxWait(time.Second)} {
			ltRefused(t, ltGo(t.Context(), c, "k", opt), processlock.ErrQueueFull)
		}
		several := ltGo(t.Context(), c, processlock.All("a", "k"))
		ltRefused(t, several, processlock.ErrQueueFull)
		assert.True(t, ltFree(c, "a"))
		try := ltGo(t.Context(), c, "k", processlock.IfAvailable)
		ltRefused(t, try, processlock.ErrUnavailable)
		assert.NotErrorIs(t, try.err, processlock.ErrQueueFull)
		assert.Equal(t, int64(6), c.Stats().Unavailable)
		assert.Equal(t, int64(2), c.Stats().Waited)

		// The bound is each key's own, and a place that is given up is free.
		elsewhere := ltGo(t.Context(), c, "other")
		assert.Equal(t, "waits", elsewhere.state())
		cancel()
		synctest.Wait()
		ltRefused(t, waiters[0], context.Canceled)
		later := ltGo(t.Context(), c, "k")
		assert.Equal(t, "waits", later.state())
		ltRefused(t, ltGo(t.Context(), c, "k"), processlock.ErrQueueFull)

		for _, call := range []*ltCall{holder, waiters[1], later, other, elsewhere} {
			call.open()
			ltServed(t, call)
		}
	})
}

// Holders don't count, and without the option nothing is bounded.
//
// Rule 21.
func TestMaxWaitersCountsOnlyThoseWhoWait(t *testing.T) {
	ltBubbleWith(t, processlock.Options{MaxWaiters: 1}, func(t *testing.T, c *processlock.Coordinator) {
		var calls []*ltCall
		for range 5 {
			calls = append(calls, ltGo(t.Context(), c, "k", processlock.Shared))
		}
		assert.Equal(t, []int{0, 1, 2, 3, 4}, ltRunning(calls))
		for _, call := range calls {
			call.open()
		}
	})
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var calls []*ltCall
		for range 200 {
			calls = append(calls, ltGo(t.Context(), c, "k"))
		}
		assert.Equal(t, int64(199), c.Stats().Waiting)
		for _, call := range calls {
			close(call.gate)
		}
	})
}
