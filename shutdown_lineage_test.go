package processlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// What a running fn asks for is served as if nothing had happened, until it
// returns.
//
// Rule 29.
func TestShutdownServesTheCallsOfARunningFn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, other processlock.Coordinator
		outer := ctHold(t, &c, t.Context(), "outer")
		busy := ctHold(t, &c, t.Context(), "busy")
		shutdown := ctShut(&c, t.Context())
		synctest.Wait()
		ctx := outer.fnCtx

		for _, row := range []struct {
			name string
			ctx  context.Context
			key  any
			opts []processlock.Option
			want error
		}{
			{"free", ctx, "free", nil, nil},
			{"free, IfAvailable", ctx, "free", []processlock.Option{processlock.IfAvailable}, nil},
			{"free, Shared", ctx, "free", []processlock.Option{processlock.Shared}, nil},
			{"All", ctx, processlock.All(1, 2, 3), nil, nil},
			{"own, Reentrant", ctx, "outer", []processlock.Option{processlock.Reentrant}, nil},
			{"WithoutCancel", context.WithoutCancel(ctx), "free", nil, nil},
			{"a value added", context.WithValue(ctx, ctKey{"v"}, 1), "free", nil, nil},
			{"busy, IfAvailable", ctx, "busy", []processlock.Option{processlock.IfAvailable}, processlock.ErrUnavailable},
			{"busy, MaxWait", ctx, "busy", []processlock.Option{processlock.MaxWait(time.Minute)}, processlock.ErrWaitTimeout},
			{"own", ctx, "outer", nil, processlock.ErrDeadlock},
			{"Detach", processlock.Detach(ctx), "free", nil, processlock.ErrClosed},
			{"no lineage", t.Context(), "free", nil, processlock.ErrClosed},
		} {
			ran := false
			err := c.WithLock(row.ctx, row.key, func(context.Context) error { ran = true; return nil }, row.opts...)
			require.ErrorIs(t, err, row.want, row.name)
			require.Equal(t, row.want == nil, err == nil, row.name)
			require.Equal(t, row.want == nil, ran, row.name)
		}

		// A lineage of another coordinator alone does not count; with one of
		// this further out it does.
		require.NoError(t, other.WithLock(t.Context(), "x", func(ctx context.Context) error {
			ctRequireClosed(t, c.WithLock(ctx, "free", ctNever(t)))
			return nil
		}))
		require.NoError(t, other.WithLock(ctx, "x", func(ctx context.Context) error {
			return c.WithLock(ctx, "free", ctNop)
		}))

		// A nested hold of the running fn serves in its turn.
		nested := ctHold(t, &c, ctx, "nested")
		waits := ctStart(t, &c, ctx, "busy")
		synctest.Wait()
		deep := ctStart(t, &c, nested.fnCtx, "busy")
		synctest.Wait()
		require.False(t, waits.ended() || deep.ended())
		require.NoError(t, busy.finish())
		require.NoError(t, waits.finish())
		require.NoError(t, deep.finish())

		require.False(t, ctClosed(shutdown.over))
		require.NoError(t, outer.finish())
		synctest.Wait()
		require.False(t, ctClosed(shutdown.over), "nested is held by a goroutine that outlives fn")
		ctRequireClosed(t, c.WithLock(ctx, "free", ctNever(t)))
		require.NoError(t, c.WithLock(nested.fnCtx, "free", ctNop))
		require.NoError(t, nested.finish())
		<-shutdown.over
		require.NoError(t, shutdown.err)
		ctRequireIdle(t, &c)
	})
}

// Which of those that wait belong to a running fn is known when Shutdown comes.
//
// Rule 29.
func TestShutdownKeepsTheWaitsOfARunningFn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, other processlock.Coordinator
		outer := ctHold(t, &c, t.Context(), "outer")
		foreign := ctHold(t, &other, t.Context(), "foreign")
		busy := ctHold(t, &c, t.Context(), "busy")

		start := func(ctx context.Context, key any) *ctCall {
			defer synctest.Wait()
			return ctStart(t, &c, ctx, key)
		}
		ended := []*ctCall{
			start(t.Context(), "busy"),
			start(foreign.fnCtx, "busy"),
			start(processlock.Detach(outer.fnCtx), "busy"),
		}
		kept := []*ctCall{
			start(outer.fnCtx, "busy"),
			start(context.WithoutCancel(outer.fnCtx), "busy"),
		}
		ended = append(ended, start(t.Context(), "busy"))
		kept = append(kept, start(outer.fnCtx, processlock.All("a", "busy", "z")))

		shutdown := ctShut(&c, t.Context())
		synctest.Wait()
		for _, w := range ended {
			require.True(t, w.ended())
			ctRequireClosed(t, w.err)
			require.False(t, w.ran())
		}
		require.NoError(t, busy.finish())
		for _, w := range kept {
			synctest.Wait()
			require.True(t, w.running(), "in the order in which they came")
			require.NoError(t, w.finish())
		}
		require.NoError(t, outer.finish())
		<-shutdown.over
		require.NoError(t, shutdown.err)
		require.NoError(t, foreign.finish())
		require.EqualValues(t, len(ended), c.Stats().Closed)
		ctRequireIdle(t, &c)
	})
}

// What All has taken so far belongs to no running fn: it is given back.
//
// Rules 23 and 29.
func TestShutdownEndsAllWithPartialHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		busy := ctHold(t, &c, t.Context(), 2)
		all := ctStart(t, &c, t.Context(), processlock.All(1, 2, 3))
		synctest.Wait()
		require.EqualValues(t, 2, c.Stats().Held)

		shutdown := ctShut(&c, t.Context())
		synctest.Wait()
		require.True(t, all.ended())
		ctRequireClosed(t, all.err)
		require.False(t, all.ran())
		var ae *processlock.AcquireError
		require.ErrorAs(t, all.err, &ae)
		require.Equal(t, processlock.MustKey(2), ae.Key)
		require.EqualValues(t, 1, c.Stats().Held)
		require.NoError(t, busy.finish())
		<-shutdown.over
		require.NoError(t, shutdown.err)
		ctRequireIdle(t, &c)
	})
}

// Rule 29.
func TestShutdownInsideAnFnIsADeadlock(t *testing.T) {
	for _, row := range []struct {
		name string
		ctx  func(ctx context.Context) context.Context
	}{
		{"its context", func(ctx context.Context) context.Context { return ctx }},
		{"WithoutCancel", context.WithoutCancel},
		{"done", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c, other processlock.Coordinator
				elsewhere := ctHold(t, &c, t.Context(), "elsewhere")
				waits := ctStart(t, &c, t.Context(), "elsewhere")
				err := c.WithLock(t.Context(), "k", func(ctx context.Context) error {
					return other.WithLock(ctx, "between", func(ctx context.Context) error {
						err := c.Shutdown(row.ctx(ctx))
						require.ErrorIs(t, err, processlock.ErrDeadlock)
						require.False(t, errors.As(err, new(*processlock.AcquireError)))
						ctRequireClosed(t, waits.finish())
						ctRequireClosed(t, c.WithLock(t.Context(), "free", ctNever(t)))
						return c.WithLock(ctx, "free", ctNop)
					})
				})
				require.NoError(t, err)
				require.NoError(t, elsewhere.finish())
				require.NoError(t, c.Shutdown(t.Context()))
				ctRequireIdle(t, &c)
			})
		})
	}
}

// Only what the context's lineage still holds here would be waited for in vain.
//
// Rule 29.
func TestShutdownWithALineageThatHoldsNothingHereWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, other processlock.Coordinator
		busy := ctHold(t, &c, t.Context(), "k")
		gone := ctHold(t, &c, t.Context(), "gone")
		require.NoError(t, gone.finish())
		foreign := ctHold(t, &other, t.Context(), "foreign")
		ctx, client := c.WithClient(t.Context(), "w")
		lost := ctHold(t, &c, context.WithoutCancel(ctx), "lost")
		client.Close()

		for _, ctx := range []context.Context{
			gone.fnCtx, foreign.fnCtx, lost.fnCtx, processlock.Detach(busy.fnCtx),
		} {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded)
			cancel()
		}
		shutdown := ctShut(&c, foreign.fnCtx)
		require.NoError(t, busy.finish())
		<-shutdown.over
		require.NoError(t, shutdown.err)
		require.NoError(t, foreign.finish())
		require.Equal(t, processlock.ErrLost, lost.finish())
	})
}
