package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dbx-tools/processlock"
)

// Rule 28.
func TestWorkerClosesItsClientHoweverFnEnds(t *testing.T) {
	why := errors.New("why")
	for _, row := range []struct {
		name  string
		end   func() error
		err   error // what comes back
		panic any
	}{
		{name: "return", end: func() error { return nil }},
		{name: "error", end: func() error { return why }, err: why},
		{name: "panic", end: func() error { panic("boom") }, panic: "boom"},
		{name: "Goexit", end: func() error { runtime.Goexit(); return nil }},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c processlock.Coordinator
				ctx := processlock.WithCoordinator(t.Context(), &c)
				ctx = context.WithValue(ctx, ctKey{"v"}, 7)
				var (
					inner    context.Context
					left     *ctCall // a goroutine of the worker that outlives it
					err      error
					panicked any
				)
				work := processlock.Worker("w1", func(ctx context.Context) error {
					inner = ctx
					left = ctHold(t, &c, ctx, "k")
					require.Equal(t, "w1", c.Snapshot().Locks[0].Holders[0].Client)
					return row.end()
				})
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { panicked = recover() }()
					err = work(ctx)
				}()
				<-done
				require.Equal(t, row.err, err)
				require.Equal(t, row.panic, panicked)
				require.Equal(t, 7, inner.Value(ctKey{"v"}))
				require.Equal(t, processlock.ErrClosed, context.Cause(inner))
				require.NoError(t, ctx.Err())
				require.NoError(t, c.WithLock(ctx, "k", ctNop), "what it held is free")
				require.Equal(t, processlock.ErrLost, left.finish())
				ctRequireIdle(t, &c)
			})
		})
	}
}

// Each call of the wrapped function is a worker of its own.
//
// Rule 28.
func TestWorkerMakesAClientForEachCall(t *testing.T) {
	var c processlock.Coordinator
	ctx := processlock.WithCoordinator(t.Context(), &c)
	work := processlock.Worker("w", func(ctx context.Context) error {
		return processlock.WithLock(ctx, "k", ctNop)
	})
	g, ctx := errgroup.WithContext(ctx)
	for range 8 {
		g.Go(func() error { return work(ctx) })
	}
	require.NoError(t, g.Wait())
	require.NoError(t, work(t.Context()), "a worker that has ended closes nobody else's client")
	ctRequireIdle(t, &c)
}

// Rules 16 and 28.
func TestWorkerPanicsOnANilFnAtOnce(t *testing.T) {
	require.PanicsWithValue(t, "processlock: nil fn", func() { processlock.Worker("w", nil) })
	work := processlock.Worker("w", ctNop)
	var nowhere context.Context
	require.PanicsWithValue(t, "processlock: nil context", func() { _ = work(nowhere) })
}

// With every shard's mutex taken, Close of a client with nothing in the table
// still ends: it looks at none.
//
// Rule 26.
func TestCloseOfAnIdleClientTouchesNoShard(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(t *testing.T, c *processlock.Coordinator, ctx context.Context)
	}{
		{"never used", func(*testing.T, *processlock.Coordinator, context.Context) {}},
		{"held once", func(t *testing.T, c *processlock.Coordinator, ctx context.Context) {
			require.NoError(t, c.WithLock(ctx, "k", ctNop))
			require.NoError(t, c.WithLock(ctx, processlock.All(1, 2, 3), ctNop))
		}},
		{"failed to get one", func(t *testing.T, c *processlock.Coordinator, ctx context.Context) {
			busy := ctHold(t, c, t.Context(), "k")
			require.Error(t, c.WithLock(ctx, "k", ctNever(t), processlock.IfAvailable))
			require.Error(t, c.WithLock(ctx, "k", ctNever(t), processlock.MaxWait(1)))
			require.NoError(t, busy.finish())
		}},
		{"waited once", func(t *testing.T, c *processlock.Coordinator, ctx context.Context) {
			busy := ctHold(t, c, t.Context(), "k")
			waits := ctStart(t, c, ctx, "k")
			ctAwaitWaiters(t, c, 1)
			require.NoError(t, busy.finish())
			require.NoError(t, waits.finish())
		}},
		{"gave up a wait", func(t *testing.T, c *processlock.Coordinator, ctx context.Context) {
			busy := ctHold(t, c, t.Context(), "k")
			ctx, cancel := context.WithCancel(ctx)
			waits := ctStart(t, c, ctx, "k")
			ctAwaitWaiters(t, c, 1)
			cancel()
			require.Error(t, waits.finish())
			require.NoError(t, busy.finish())
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var c processlock.Coordinator
			ctx, client := c.WithClient(t.Context(), "w")
			row.before(t, &c, ctx)
			release := processlock.CTHoldShards(&c)
			defer release()
			done := make(chan struct{})
			go func() {
				defer close(done)
				client.Close()
			}()
			ctWithin(t, done, "Close of an idle client")
			require.Equal(t, processlock.ErrClosed, context.Cause(ctx))
		})
	}
}
