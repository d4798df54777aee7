package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// fn may close the client that it runs under, as often as it likes. The key is
// somebody else's before Close returns, and fn goes on.
//
// Rules 25 and 27.
func TestCloseInsideFn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		ctx, client := c.WithClient(t.Context(), "w")
		var next *ctCall
		err := c.WithLock(ctx, "k", func(ctx context.Context) error {
			next = ctStart(t, &c, t.Context(), "k")
			synctest.Wait()
			client.Close()
			require.Equal(t, processlock.ErrClosed, context.Cause(ctx))
			synctest.Wait()
			require.True(t, next.running())
			client.Close()
			for _, opts := range [][]processlock.Option{nil, {processlock.Reentrant}, {processlock.IfAvailable}} {
				ctRequireClosed(t, c.WithLock(ctx, "k", ctNever(t), opts...))
				ctRequireClosed(t, c.WithLock(context.WithoutCancel(ctx), "k", ctNever(t), opts...))
			}
			return nil
		})
		require.Equal(t, processlock.ErrLost, err)
		require.True(t, next.running())
		require.NoError(t, next.finish())
		ctRequireIdle(t, &c)
	})
}

// Rule 25.
func TestCloseFromManyGoroutinesTakesEachHoldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		ctx, client := c.WithClient(t.Context(), "w")
		var holds, nexts []*ctCall
		for k := range 20 {
			holds = append(holds, ctHold(t, &c, ctx, k))
			nexts = append(nexts, ctStart(t, &c, t.Context(), k))
		}
		synctest.Wait()
		var all sync.WaitGroup
		for range 8 {
			all.Go(client.Close)
		}
		all.Wait()
		synctest.Wait()
		for i := range holds {
			require.True(t, nexts[i].running())
			require.Equal(t, processlock.ErrLost, holds[i].finish())
			require.True(t, nexts[i].running())
			require.NoError(t, nexts[i].finish())
		}
		require.EqualValues(t, 20, c.Stats().Lost)
		ctRequireIdle(t, &c)
	})
}

// Rules 14 and 27.
func TestLostHoldJoinsFnsErrorAndKeepsItsValue(t *testing.T) {
	why := errors.New("why\nin two lines")
	for _, row := range []struct {
		name string
		err  error
	}{{"nil", nil}, {"an error", why}} {
		for _, queued := range []bool{false, true} {
			t.Run(row.name+map[bool]string{true: ", after a wait"}[queued], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c processlock.Coordinator
					ctx, client := c.WithClient(t.Context(), "w")
					ctx = processlock.WithCoordinator(ctx, &c)
					if queued {
						busy := ctHold(t, &c, t.Context(), "k")
						go func() {
							synctest.Wait()
							_ = busy.finish()
						}()
					}
					v, err := processlock.WithLockValue(ctx, "k", func(context.Context) (int, error) {
						client.Close()
						return 7, row.err
					})
					require.Equal(t, 7, v)
					require.ErrorIs(t, err, processlock.ErrLost)
					require.NotErrorIs(t, err, processlock.ErrClosed)
					require.False(t, errors.As(err, new(*processlock.AcquireError)), "fn did run")
					if row.err == nil {
						require.Equal(t, processlock.ErrLost, err)
					} else {
						require.ErrorIs(t, err, row.err)
						require.NotContains(t, err.Error(), "\n")
					}
					ctRequireIdle(t, &c)
				})
			})
		}
	}
}

// An fn that fails for its context's end says so itself; both facts are there.
//
// Rule 27.
func TestLostHoldWhoseFnReturnsItsContextsError(t *testing.T) {
	var c processlock.Coordinator
	ctx, client := c.WithClient(t.Context(), "w")
	err := c.WithLock(ctx, "k", func(ctx context.Context) error {
		client.Close()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, processlock.ErrLost)
	require.ErrorIs(t, err, processlock.ErrClosed)
}

// Rules 15 and 27.
func TestLostHoldWhosePanicGoesOnUnchanged(t *testing.T) {
	for _, value := range []any{"text", errors.New("an error"), 7} {
		var c processlock.Coordinator
		ctx, client := c.WithClient(t.Context(), "w")
		var stack string
		func() {
			defer func() {
				require.Equal(t, value, recover())
				buf := make([]byte, 1<<16)
				stack = string(buf[:runtime.Stack(buf, false)])
			}()
			_ = c.WithLock(ctx, "k", func(context.Context) error {
				client.Close()
				ctPanicHere(value)
				return nil
			})
		}()
		require.True(t, strings.Contains(stack, "ctPanicHere"), "the stack is fn's")
		ctRequireIdle(t, &c)
	}
}

//go:noinline
func ctPanicHere(value any) { panic(value) }

// Rules 15 and 27.
func TestLostHoldWhoseGoroutineExits(t *testing.T) {
	var c processlock.Coordinator
	ctx, client := c.WithClient(t.Context(), "w")
	returned := true
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned = false
		_ = c.WithLock(ctx, "k", func(context.Context) error {
			client.Close()
			runtime.Goexit()
			return nil
		})
		returned = true
	}()
	<-done
	require.False(t, returned)
	require.EqualValues(t, 1, c.Stats().Lost)
	ctRequireIdle(t, &c)
}

// Rules 22 and 27.
func TestReentrantCallUnderALostHoldIsLostToo(t *testing.T) {
	why := errors.New("why")
	var c processlock.Coordinator
	ctx, client := c.WithClient(t.Context(), "w")
	err := c.WithLock(ctx, "k", func(ctx context.Context) error {
		err := c.WithLock(ctx, "k", func(context.Context) error {
			client.Close()
			return why
		}, processlock.Reentrant)
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, processlock.ErrLost)
		return nil
	})
	require.Equal(t, processlock.ErrLost, err)
	require.EqualValues(t, 1, c.Stats().Lost, "one hold, however many calls under it")
	ctRequireIdle(t, &c)
}

// Rules 23 and 27.
func TestLostHoldsOfAllAreOneErrLost(t *testing.T) {
	why := errors.New("why")
	var c processlock.Coordinator
	ctx, client := c.WithClient(t.Context(), "w")
	err := c.WithLock(ctx, processlock.All(1, 2, 3), func(context.Context) error {
		client.Close()
		require.Empty(t, c.Snapshot().Locks)
		return why
	})
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, processlock.ErrLost)
	require.EqualValues(t, 3, c.Stats().Lost)
	ctRequireIdle(t, &c)
}

// What All has taken while it waits is handed on; no fn ran, so nothing is lost.
//
// Rules 23, 25 and 41.
func TestCloseTakesWhatAllHasSoFar(t *testing.T) {
	for _, cancelable := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var c processlock.Coordinator
			ctx, client := c.WithClient(t.Context(), "w")
			if !cancelable {
				ctx = context.WithoutCancel(ctx)
			}
			busy := ctHold(t, &c, t.Context(), 2)
			all := ctStart(t, &c, ctx, processlock.All(1, 2, 3))
			synctest.Wait()
			next := ctStart(t, &c, t.Context(), 1)
			synctest.Wait()
			require.False(t, next.ran())

			client.Close()
			synctest.Wait()
			require.True(t, next.running())
			err := all.finish()
			ctRequireClosed(t, err)
			require.Equal(t, cancelable, errors.Is(err, context.Canceled))
			var ae *processlock.AcquireError
			require.ErrorAs(t, err, &ae)
			require.Equal(t, processlock.MustKey(2), ae.Key)
			require.NoError(t, next.finish())
			require.NoError(t, busy.finish())
			require.Zero(t, c.Stats().Lost)
			require.EqualValues(t, 1, c.Stats().Closed)
			ctRequireIdle(t, &c)
		})
	}
}

// Close comes after the context has been asked and before the table is: the
// request is refused by the table, and by then its context is done too.
//
// Rule 25.
func TestRequestRefusedInTheTableSatisfiesItsContextsErrorToo(t *testing.T) {
	for _, row := range []struct {
		name string
		key  any
	}{{"one key", "k"}, {"All", processlock.All("k")}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c processlock.Coordinator
				ctx, client := c.WithClient(t.Context(), "w")
				between := &ctBetweenCtx{Context: ctx, call: client.Close}
				busy := ctHold(t, &c, t.Context(), "k")
				err := c.WithLock(between, "outer", func(ctx context.Context) error {
					between.armed.Store(true)
					err := c.WithLock(ctx, row.key, ctNever(t), processlock.MaxWait(time.Hour))
					require.Error(t, ctx.Err(), "closed meanwhile")
					ctRequireClosed(t, err)
					require.ErrorIs(t, err, context.Canceled)
					return nil
				})
				require.Equal(t, processlock.ErrLost, err)
				require.NoError(t, busy.finish())
				ctRequireIdle(t, &c)
			})
		})
	}
}

// ctBetweenCtx runs call, once armed, in the first Value that comes after an
// Err: when a request has found its context alive and reads its lineage.
type ctBetweenCtx struct {
	context.Context
	call         func()
	armed, asked atomic.Bool
}

func (c *ctBetweenCtx) Err() error {
	c.asked.Store(c.armed.Load())
	return c.Context.Err()
}

func (c *ctBetweenCtx) Value(key any) any {
	if c.asked.CompareAndSwap(true, false) {
		c.armed.Store(false)
		c.call()
	}
	return c.Context.Value(key)
}
