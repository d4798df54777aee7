package processlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// Waits that ran out of time leave no node in the queue, one or a thousand: the
// key is free once its holder is gone.
//
// Rules 5, 9, 20 and 34.
func TestField_A4_TimedOutWaitsLeaveNothingInTheQueue(t *testing.T) {
	for _, attempts := range []int{1, 1000} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			holder := ltGo(t.Context(), c, "k")
			var wg sync.WaitGroup
			for i := range attempts {
				wg.Go(func() {
					if i%2 == 1 {
						assert.ErrorIs(t, c.WithLock(t.Context(), "k", ctNever(t), processlock.MaxWait(time.Millisecond)), processlock.ErrWaitTimeout)
						return
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					defer cancel()
					assert.ErrorIs(t, c.WithLock(ctx, "k", ctNever(t)), context.DeadlineExceeded)
				})
			}
			wg.Wait()
			assert.Equal(t, "X/", pfShape(c, "k"))
			holder.open()
			assert.NoError(t, c.WithLock(t.Context(), "k", ltNop))
			assert.EqualValues(t, attempts, c.Stats().Waited, "the free key was waited for")
		})
	}
}

// Whatever counts waiters goes back when they leave: the queue's bound admits
// as many again, and the free key is taken without a wait.
//
// Rules 5, 21, 34 and 41.
func TestField_A6_CountOfWaitersGoesBack(t *testing.T) {
	const n = 100
	ltBubbleWith(t, processlock.Options{MaxWaiters: n}, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k")
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() { assert.ErrorIs(t, c.WithLock(ctx, "k", ctNever(t)), context.Canceled) })
			}
			synctest.Wait()
			assert.EqualValues(t, n, c.Stats().Waiting)
			assert.ErrorIs(t, c.WithLock(t.Context(), "k", ctNever(t)), processlock.ErrQueueFull)
			cancel()
			wg.Wait()
			assert.Zero(t, c.Stats().Waiting)
		}
		holder.open()
		assert.NoError(t, processlock.CTLeft(c))
		waited := c.Stats().Waited
		assert.NoError(t, c.WithLock(t.Context(), "k", ltNop))
		assert.Equal(t, waited, c.Stats().Waited)
	})
}

// No failure looks like a success: each is an error of its own kind with fn not
// run, also where Reentrant makes "already mine" an answer.
//
// Rules 8, 9, 13, 17, 19, 20, 25, 29 and 30.
func TestField_B6_NoFailureLooksLikeASuccess(t *testing.T) {
	why := errors.New("why")
	type scene struct {
		t *testing.T
		c *processlock.Coordinator
	}
	rows := map[string]struct {
		is   error
		call func(s scene, fn func(context.Context) error) error
	}{
		"canceled before": {why, func(s scene, fn func(context.Context) error) error {
			ctx, cancel := context.WithCancelCause(s.t.Context())
			cancel(why)
			return s.c.WithLock(ctx, "free", fn, processlock.Reentrant)
		}},
		"canceled meanwhile": {why, func(s scene, fn func(context.Context) error) error {
			ctx, cancel := context.WithCancelCause(s.t.Context())
			time.AfterFunc(time.Second, func() { cancel(why) })
			return s.c.WithLock(ctx, "busy", fn, processlock.Reentrant)
		}},
		"deadline": {context.DeadlineExceeded, func(s scene, fn func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
			defer cancel()
			return s.c.WithLock(ctx, "busy", fn, processlock.Reentrant)
		}},
		"MaxWait": {processlock.ErrWaitTimeout, func(s scene, fn func(context.Context) error) error {
			return s.c.WithLock(s.t.Context(), "busy", fn, processlock.Reentrant, processlock.MaxWait(time.Second))
		}},
		"try": {processlock.ErrUnavailable, func(s scene, fn func(context.Context) error) error {
			return s.c.WithLock(s.t.Context(), "busy", fn, processlock.Reentrant, processlock.IfAvailable)
		}},
		"bad key": {processlock.ErrKey, func(s scene, fn func(context.Context) error) error {
			return s.c.WithLock(s.t.Context(), func() {}, fn, processlock.Reentrant)
		}},
		"client closed": {processlock.ErrClosed, func(s scene, fn func(context.Context) error) error {
			ctx, cl := s.c.WithClient(s.t.Context(), "w")
			time.AfterFunc(time.Second, cl.Close)
			return s.c.WithLock(ctx, "busy", fn, processlock.Reentrant)
		}},
		"shut down": {processlock.ErrClosed, func(s scene, fn func(context.Context) error) error {
			other := processlock.New(processlock.Options{})
			assert.NoError(s.t, other.Shutdown(s.t.Context()))
			return other.WithLock(s.t.Context(), "free", fn, processlock.Reentrant)
		}},
		"own key": {processlock.ErrDeadlock, func(s scene, fn func(context.Context) error) (err error) {
			assert.NoError(s.t, s.c.WithLock(s.t.Context(), "own", func(ctx context.Context) error {
				err = s.c.WithLock(ctx, "own", fn, processlock.Reentrant)
				return nil
			}, processlock.Shared))
			return err
		}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				busy := ltGo(t.Context(), c, "busy")
				ran := 0
				err := row.call(scene{t, c}, func(context.Context) error {
					ran++
					return nil
				})
				assert.Zero(t, ran, "fn ran")
				assert.ErrorIs(t, err, row.is)
				assert.ErrorAs(t, err, new(*processlock.AcquireError), "could be fn's own")
				assert.NotErrorIs(t, err, processlock.ErrLost)
				busy.open()
			})
		})
	}
}

// What ends one request's wait ends nobody's hold: a contender runs out of time
// at 10 ms, and the next is still kept out at 50 ms and let in at 100 ms.
//
// Rules 1, 5 and 20.
func TestField_E11_TimerOfALoserTouchesNoHold(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		start := time.Now()
		holder := ltGo(t.Context(), c, "k")
		time.AfterFunc(100*time.Millisecond, func() { close(holder.gate) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		byDeadline := ltGo(ctx, c, "k")
		byMaxWait := ltGo(t.Context(), c, "k", processlock.MaxWait(10*time.Millisecond))
		time.Sleep(50 * time.Millisecond)
		ltRefused(t, byDeadline, context.DeadlineExceeded)
		ltRefused(t, byMaxWait, processlock.ErrWaitTimeout)
		assert.False(t, ltFree(c, "k"))
		assert.NoError(t, c.WithLock(t.Context(), "k", func(context.Context) error {
			assert.Equal(t, 100*time.Millisecond, time.Since(start))
			return nil
		}))
	})
}

// A helper that locks its caller's key with a context from elsewhere can't be
// told from anybody else: its own deadline ends the wait, and the outer call is
// none the worse. With fn's context it is refused at once.
//
// Rules 9, 30 and 32.
func TestField_H1_OwnKeyWithAForeignContextEndsByItsDeadline(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		start := time.Now()
		assert.NoError(t, c.WithLock(t.Context(), "k", func(ctx context.Context) error {
			assert.ErrorIs(t, c.WithLock(ctx, "k", ctNever(t)), processlock.ErrDeadlock)
			assert.Equal(t, start, time.Now())
			foreign, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			assert.ErrorIs(t, c.WithLock(foreign, "k", ctNever(t)), context.DeadlineExceeded)
			assert.Equal(t, 100*time.Millisecond, time.Since(start))
			return nil
		}))
	})
}

// No time left and no time wanted are two things: a deadline that has passed
// refuses a free key, and MaxWait(0) takes it.
//
// Rules 8, 19 and 20.
func TestField_M3_NoTimeLeftIsNotATry(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		for _, passed := range []time.Duration{0, -time.Hour} {
			ctx, cancel := context.WithTimeout(t.Context(), passed)
			defer cancel()
			assert.ErrorIs(t, c.WithLock(ctx, "k", ctNever(t)), context.DeadlineExceeded)
			ran := false
			assert.NoError(t, c.WithLock(t.Context(), "k", func(context.Context) error {
				ran = true
				return nil
			}, processlock.MaxWait(passed)))
			assert.True(t, ran)
		}
	})
}
