package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// Rule 12.
func TestContextsThatNeverEndCanWait(t *testing.T) {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	rows := map[string]context.Context{
		"Background":    context.Background(),
		"TODO":          context.TODO(),
		"WithoutCancel": context.WithoutCancel(dead),
		"WithValue":     context.WithValue(context.Background(), ltContextKey{}, 1),
		"nil Done":      &ltHooked{Context: context.Background(), done: func() <-chan struct{} { return nil }},
	}
	for name, ctx := range rows {
		for _, opts := range [][]processlock.Option{nil, {processlock.MaxWait(time.Hour)}} {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				assert.NoError(t, c.WithLock(ctx, "k", ltNop, opts...), name)
				holder := ltGo(ctx, c, "k")
				one := ltGo(ctx, c, "k", opts...)
				several := ltGo(ctx, c, processlock.All("j", "k"), opts...)
				assert.Equal(t, []string{"waits", "waits"}, ltStates(one, several), name)
				holder.open()
				one.open()
				assert.Equal(t, "runs", several.state(), name)
				several.open()
			})
		}
	}
}

type ltContextKey struct{}

// ltSilent closes Done and keeps Err nil.
func ltSilent(ctx context.Context) (*ltHooked, func()) {
	done := make(chan struct{})
	return &ltHooked{
		Context: context.WithoutCancel(ctx),
		done:    func() <-chan struct{} { return done },
		err:     func() error { return nil },
	}, func() { close(done) }
}

// Rules 8, 9 and 12.
func TestClosedDoneWithoutErrIsCanceled(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx, end := ltSilent(t.Context())
		holder := ltGo(t.Context(), c, "k")
		waiter := ltGo(ctx, c, "k")
		assert.Equal(t, "waits", waiter.state())
		end()
		synctest.Wait()
		ltRefused(t, waiter, context.Canceled)
		holder.open()
		for range 100 {
			assert.ErrorIs(t, c.WithLock(ctx, "k", ltNop), context.Canceled)
			assert.ErrorIs(t, c.WithLock(ctx, processlock.All("k"), ltNop, processlock.IfAvailable), context.Canceled)
		}
	})
}

// The same where the context is below others: whichever the library believes at
// their word, it must not believe what stands on a foreign one.
//
// Rules 8 and 12.
func TestClosedDoneWithoutErrIsSeenThroughOtherContexts(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx, end := ltSilent(t.Context())
		outer := ltGo(ctx, c, "outer")
		several := ltGo(ctx, c, processlock.All("a", "b"))
		end()
		wraps := map[string]context.Context{
			"value":       context.WithValue(ctx, ltContextKey{}, 1),
			"coordinator": processlock.WithCoordinator(ctx, c),
			"fn":          outer.ctx,
			"fn of All":   several.ctx,
			"Detach":      processlock.Detach(outer.ctx),
			"value of fn": context.WithValue(outer.ctx, ltContextKey{}, 1),
		}
		for name, wrapped := range wraps {
			for _, key := range []any{"k", processlock.All("k")} {
				assert.ErrorIs(t, c.WithLock(wrapped, key, ltNop), context.Canceled, name)
			}
		}
		outer.open()
		several.open()
	})
}

// ltRegistry is a parent that counts what children ask it to remember.
type ltRegistry struct {
	context.Context
	registered atomic.Int64
}

// AfterFunc is what the context package calls, instead of starting a goroutine,
// to hang a child onto a foreign parent.
func (r *ltRegistry) AfterFunc(func()) func() bool {
	r.registered.Add(1)
	return func() bool { return true }
}

// Rule 12.
func TestNothingIsRegisteredOnTheParent(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		parent := &ltRegistry{Context: ctx}
		holder := ltGo(parent, c, "k")
		waiters := []*ltCall{
			ltGo(parent, c, "k"),
			ltGo(parent, c, processlock.All("j", "k")),
			ltGo(parent, c, "k", processlock.Shared, processlock.MaxWait(time.Hour)),
		}
		timedOut := ltGo(parent, c, "k", processlock.MaxWait(time.Second))
		assert.ErrorIs(t, c.WithLock(parent, "k", ltNop, processlock.IfAvailable), processlock.ErrUnavailable)
		assert.NoError(t, c.WithLock(parent, "free", func(ctx context.Context) error {
			assert.NoError(t, c.WithLock(processlock.Detach(ctx), "free too", ltNop))
			return c.WithLock(ctx, "free", ltNop, processlock.Reentrant)
		}))
		time.Sleep(time.Second)
		synctest.Wait()
		ltRefused(t, timedOut, processlock.ErrWaitTimeout)
		holder.open()
		for _, w := range waiters {
			w.open()
			ltServed(t, w)
		}
		assert.Zero(t, parent.registered.Load())
	})
}

// A parent that lives as long as the process, with many calls below it.
//
// Rule 12.
func TestLongLivedParentKeepsNothing(t *testing.T) {
	c := processlock.New(processlock.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	use := func(n int) {
		for i := range n {
			_ = c.WithLock(ctx, i, func(ctx context.Context) error {
				return c.WithLock(ctx, "inner", ltNop, processlock.Shared)
			})
		}
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	use(1000)
	before := heap()
	use(50_000)
	// 50 000 registrations would be several MB.
	assert.Less(t, heap()-before, int64(1<<20))
	runtime.KeepAlive(ctx)
	ltIdle(t, c)
}

// Rule 12.
func TestFnsContextIsTheCallers(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), ltContextKey{}, "v"))
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		call := ltGo(ctx, c, "k")
		several := ltGo(ctx, c, processlock.All("a", "b"))
		for _, call := range []*ltCall{call, several} {
			assert.Equal(t, "v", call.ctx.Value(ltContextKey{}))
			want, _ := ctx.Deadline()
			got, ok := call.ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, want, got)
			assert.Equal(t, ctx.Done(), call.ctx.Done())
			assert.NoError(t, call.ctx.Err())
		}
		call.open()
		several.open()
		assert.NoError(t, call.ctx.Err(), "fn's context ended with fn")
		assert.NoError(t, several.ctx.Err(), "fn's context ended with fn")
		cancel(cause)
		assert.ErrorIs(t, call.ctx.Err(), context.Canceled)
		assert.Equal(t, cause, context.Cause(several.ctx))
	})
}

// After fn has returned its context is like any other: it queues, it may have
// the key, and it is nobody's inside.
//
// Rule 12.
func TestKeptContextHasNoLineage(t *testing.T) {
	for _, key := range []any{"k", processlock.All("j", "k")} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			first := ltGo(t.Context(), c, key)
			first.open()
			kept := first.ctx
			assert.NoError(t, c.WithLock(kept, "k", ltNop))
			assert.NoError(t, c.WithLock(kept, "k", ltNop, processlock.Reentrant))

			holder := ltGo(t.Context(), c, "k")
			waiters := []*ltCall{
				ltGo(kept, c, "k"),
				ltGo(kept, c, "k", processlock.Reentrant),
			}
			assert.Equal(t, []string{"waits", "waits"}, ltStates(waiters...))
			holder.open()
			for _, w := range waiters {
				w.open()
				ltServed(t, w)
			}
		})
	}
}

// Rule 12.
func TestWithoutCancelKeepsTheLineage(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		assert.NoError(t, c.WithLock(t.Context(), "k", func(ctx context.Context) error {
			ctx = context.WithoutCancel(ctx)
			assert.ErrorIs(t, c.WithLock(ctx, "k", ltNop), processlock.ErrDeadlock)
			return c.WithLock(ctx, "k", ltNop, processlock.Reentrant)
		}))
	})
}

// The lineage is found below, and through, any number of contexts of others.
//
// Rules 12 and 22.
func TestDeepContexts(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		bury := func(ctx context.Context) context.Context {
			for i := range 10_000 {
				ctx = context.WithValue(ctx, ltContextKey{}, i)
			}
			return ctx
		}
		outermost := ltGoLast(t.Context(), c, "outermost", func(ctx context.Context) error {
			return c.WithLock(bury(ctx), "inner", func(ctx context.Context) error {
				ctx = bury(ctx)
				assert.ErrorIs(t, c.WithLock(ctx, "outermost", ltNop), processlock.ErrDeadlock)
				assert.ErrorIs(t, c.WithLock(ctx, "inner", ltNop), processlock.ErrDeadlock)
				return c.WithLock(ctx, "outermost", ltNop, processlock.Reentrant)
			})
		})
		outermost.open()
		ltServed(t, outermost)

		// A context that is handed on from one fn to the next call for ever.
		ctx := t.Context()
		for range 1000 {
			assert.NoError(t, c.WithLock(ctx, "k", func(fnCtx context.Context) error {
				ctx = fnCtx
				return nil
			}))
		}
		assert.NoError(t, ctx.Err())
		assert.Nil(t, ctx.Value(ltContextKey{}))
	})
}
