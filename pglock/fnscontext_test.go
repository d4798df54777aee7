package pglock_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/require"
)

// A detached context has no lineage, also below a lock of the core's that was
// taken after.
func TestDetachedBelowAnotherLock(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	var elsewhere processlock.Coordinator
	held := b.hold(l, "k")
	tx, err := b.session().Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	lock := func(ctx context.Context) error {
		return elsewhere.WithLock(ctx, "x", func(ctx context.Context) error {
			return l.LockTx(ctx, tx, "k", processlock.MaxWait(50*time.Millisecond))
		})
	}
	require.ErrorIs(t, lock(held.ctx), processlock.ErrDeadlock)
	require.ErrorIs(t, lock(processlock.Detach(held.ctx)), processlock.ErrWaitTimeout)
	held.ok()
}

// What a cancelled context leaves of fn's: it ends with its parent, after the
// call too, and the parent keeps nothing.
func TestFnsContextOutlivesTheCall(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var fns context.Context
	var done <-chan struct{}
	require.NoError(t, l.WithLock(ctx, "k", func(ctx context.Context) error {
		fns, done = ctx, ctx.Done()
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		return child.Err()
	}))
	require.NoError(t, fns.Err())
	cancel()
	<-done
	require.ErrorIs(t, fns.Err(), context.Canceled)
}

// registry counts what is registered on it.
type registry struct {
	context.Context
	done       chan struct{} // which the context package knows nothing of
	registered *atomic.Int64
}

func (r registry) Done() <-chan struct{} { return r.done }

func (r registry) AfterFunc(f func()) func() bool {
	r.registered.Add(1)
	stop := context.AfterFunc(r.Context, f)
	return func() bool { r.registered.Add(-1); return stop() }
}

// What fn's context has registered on the caller's goes when nobody waits for it
// any more, and at once if it was only for contexts derived from it.
func TestFnsContextLeavesItsParent(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := registry{parent, make(chan struct{}), new(atomic.Int64)}
	require.NoError(t, l.WithLock(ctx, "k", func(ctx context.Context) error {
		return l.WithLock(ctx, "inner", nop)
	}))
	require.Zero(t, ctx.registered.Load(), "a nested lock stays registered")
	var done <-chan struct{} // of the last call
	for range 10 {
		require.NoError(t, l.WithLock(ctx, "k", func(ctx context.Context) error {
			done = ctx.Done()
			return nil
		}))
	}
	runtime.GC()
	require.NotZero(t, ctx.registered.Load(), "who waits for a finished call's context is forgotten")
	require.False(t, isClosed(done))
	runtime.KeepAlive(done)
	done = nil
	b.eventually(func() bool { runtime.GC(); return ctx.registered.Load() == 0 }, "the parent keeps finished calls")
}
