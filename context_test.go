package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A thousand calls each, since a select that looks at both sides at once goes
// wrong only in half of the cases.
//
// Rule 8.
func TestDoneContextNeverRunsFn(t *testing.T) {
	rows := map[string][]processlock.Option{
		"exclusive":    nil,
		"shared":       {processlock.Shared},
		"if available": {processlock.IfAvailable},
		"max wait":     {processlock.MaxWait(time.Hour)},
		"reentrant":    {processlock.Reentrant},
	}
	for name, opts := range rows {
		for _, key := range []any{"k", 7, []any{"k", 7}, processlock.MustKey("k"), processlock.All("k", "l"), processlock.All()} {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				ran := 0
				for range 1000 {
					err := c.WithLock(ctx, key, func(context.Context) error {
						ran++
						return nil
					}, opts...)
					if !errors.Is(err, context.Canceled) {
						t.Fatalf("%s: error is %v, want context.Canceled", name, err)
					}
				}
				assert.Zero(t, ran, "%s: fn ran", name)
				assert.Equal(t, processlock.Stats{}, c.Stats(), "%s: a trace in Stats", name)
				assert.True(t, ltFree(c, "k"))
			})
		}
	}
}

// The done context counts even where Reentrant would run at once, and where the
// key is shared by those who are in.
//
// Rule 8.
func TestDoneContextNeverJoinsAHold(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		for _, opts := range [][]processlock.Option{{processlock.Shared}, {processlock.Shared, processlock.Reentrant}} {
			assert.NoError(t, c.WithLock(t.Context(), "k", func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				before := c.Stats()
				assert.ErrorIs(t, c.WithLock(ctx, "k", ltNop, opts...), context.Canceled)
				assert.ErrorIs(t, c.WithLock(ctx, processlock.All("k"), ltNop, opts...), context.Canceled)
				assert.Equal(t, before, c.Stats())
				return nil
			}, processlock.Shared))
		}
	})
}

// Rules 8 and 12.
func TestWithoutCancelLocksDuringCleanUp(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		holder := ltGo(t.Context(), c, "k")
		cleanup := ltGo(context.WithoutCancel(dead), c, "k")
		assert.Equal(t, "waits", cleanup.state())
		holder.open()
		assert.Equal(t, "runs", cleanup.state())
		cleanup.open()
	})
}

// Rule 9.
func TestDoneContextEndsTheWait(t *testing.T) {
	cause := errors.New("shutting down")
	rows := []struct {
		name string
		with func(context.Context) (context.Context, func())
		is   []error
	}{
		{"cancel", func(ctx context.Context) (context.Context, func()) {
			return context.WithCancel(ctx)
		}, []error{context.Canceled}},
		{"cause", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(cause) }
		}, []error{context.Canceled, cause}},
		{"cause of the parent", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			ctx, inner := context.WithCancel(ctx)
			context.AfterFunc(ctx, inner)
			return ctx, func() { cancel(cause) }
		}, []error{context.Canceled, cause}},
		{"cause around the error", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(errors.Join(cause, context.Canceled)) }
		}, []error{context.Canceled, cause}},
		{"deadline", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			context.AfterFunc(ctx, cancel)
			return ctx, func() { time.Sleep(time.Minute) }
		}, []error{context.DeadlineExceeded}},
		{"deadline with a cause", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, cause)
			context.AfterFunc(ctx, cancel)
			return ctx, func() { time.Sleep(time.Minute) }
		}, []error{context.DeadlineExceeded, cause}},
	}
	keys := map[string]any{"string": "k", "list": []any{"k"}, "all": processlock.All("j", "k")}
	for _, row := range rows {
		for kind, key := range keys {
			t.Run(row.name+"/"+kind, func(t *testing.T) {
				ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
					ctx, end := row.with(t.Context())
					holder := ltGo(t.Context(), c, "k")
					waiter := ltGo(ctx, c, key)
					behind := ltGo(t.Context(), c, "k")
					assert.Equal(t, "waits", waiter.state())
					end()
					synctest.Wait()
					for _, want := range row.is {
						ltRefused(t, waiter, want)
					}
					assert.ErrorIs(t, waiter.err, ctx.Err())
					var refusal *processlock.AcquireError
					require.ErrorAs(t, waiter.err, &refusal)
					assert.Equal(t, processlock.MustKey("k").Canonical(), refusal.Key.Canonical())
					assert.Equal(t, int64(1), c.Stats().Waiting, "it is still in the queue")
					assert.True(t, ltFree(c, "j"), "what All had taken is held")

					// And the same reasons where the call comes too late.
					late := c.WithLock(ctx, key, ltNop)
					for _, want := range row.is {
						assert.ErrorIs(t, late, want)
					}
					holder.open()
					behind.open()
					ltServed(t, behind)
				})
			})
		}
	}
}

// ltHooked is a context whose methods a test can replace. Those that are nil
// are the embedded context's.
type ltHooked struct {
	context.Context
	done  func() <-chan struct{}
	err   func() error
	value func(key any) any
}

func (h *ltHooked) Done() <-chan struct{} {
	if h.done != nil {
		return h.done()
	}
	return h.Context.Done()
}

func (h *ltHooked) Err() error {
	if h.err != nil {
		return h.err()
	}
	return h.Context.Err()
}

func (h *ltHooked) Value(key any) any {
	if h.value != nil {
		return h.value(key)
	}
	return h.Context.Value(key)
}

// The context ends between the grant and the moment in which the request looks
// at it: its Done never wakes the request, so only the grant can.
//
// Rule 10.
func TestContextWinsOverTheGrant(t *testing.T) {
	for _, key := range []any{"k", processlock.All("k"), processlock.All("j", "k")} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			dead := false
			ctx := &ltHooked{
				Context: t.Context(),
				done:    func() <-chan struct{} { return make(chan struct{}) },
				err: func() error {
					if dead {
						return context.Canceled
					}
					return nil
				},
			}
			holder := ltGo(t.Context(), c, "k")
			waiter := ltGo(ctx, c, key)
			behind := ltGo(t.Context(), c, "k")
			dead = true
			holder.open()
			ltRefused(t, waiter, context.Canceled)
			assert.Equal(t, "runs", behind.state(), "the grant was not passed on")
			assert.Equal(t, int64(1), c.Stats().Canceled)
			behind.open()
		})
	}
}

// The second key of All is free, so nothing but the look before it can see that
// the context ended while the first was waited for.
//
// Rules 10 and 23.
func TestContextWinsBetweenTheKeysOfAll(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		looks := 0
		ctx := &ltHooked{Context: t.Context(), err: func() error {
			if looks++; looks > 1 {
				return context.Canceled
			}
			return nil
		}}
		call := ltGo(ctx, c, processlock.All("a", "b"))
		ltRefused(t, call, context.Canceled)
		assert.True(t, ltFree(c, "a"))
	})
}

// Rule 10.
func TestMeetingOfGrantAndCancelIsNeverBothAndNeverNeither(t *testing.T) {
	for i := range 300 {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			ran := false
			var err error
			go func() {
				_ = c.WithLock(t.Context(), "k", func(context.Context) error {
					time.Sleep(time.Second)
					return nil
				})
			}()
			synctest.Wait()
			go func() {
				if i%2 == 0 { // lets either side be the first to wake
					runtime.Gosched()
				}
				err = c.WithLock(ctx, "k", func(context.Context) error {
					ran = true
					return nil
				})
			}()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if ran {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
			assert.True(t, ltFree(c, "k"))
		})
	}
}

// Rule 11.
func TestContextThatEndsDuringFnIsFnsBusiness(t *testing.T) {
	fnErr := &ltFnError{"fn's own"}
	for _, want := range []error{nil, fnErr} {
		for _, wait := range []bool{false, true} {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				holder := ltGo(t.Context(), c, "k")
				if !wait {
					holder.open()
				}
				call := ltGoLast(ctx, c, "k", func(context.Context) error { return want })
				if wait {
					holder.open()
				}
				time.Sleep(time.Hour)
				assert.ErrorIs(t, call.ctx.Err(), context.DeadlineExceeded)
				assert.Equal(t, "runs", call.state(), "the call returned before fn")
				assert.False(t, ltFree(c, "k"), "the lock was taken from fn")
				call.open()
				assert.Equal(t, want, call.err)
				assert.Zero(t, c.Stats().Canceled)
			})
		}
	}
}
