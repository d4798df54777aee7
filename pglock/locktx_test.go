package pglock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// begins begins a transaction of a session by hand.
func (b *bed) begins() pgx.Tx {
	b.Helper()
	tx, err := b.session().Begin(b.Context())
	require.NoError(b, err)
	return tx
}

// lockTx has LockTx wait beside the test until it is in the server's queue.
func (b *bed) lockTx(ctx context.Context, l *pglock.Locker, tx pgx.Tx, key any) (done chan error) {
	b.Helper()
	done = make(chan error, 1)
	before := len(b.waiting(key))
	go func() { done <- l.LockTx(ctx, tx, key) }()
	b.eventually(func() bool { return len(b.waiting(key)) > before }, "LockTx does not wait")
	return done
}

func TestLockTxWaits(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	held := b.hold(l, "k")
	tx := b.begins()
	done := b.lockTx(t.Context(), l, tx, "k")
	held.ok()
	require.NoError(t, <-done)
	b.refused(l.WithLock(t.Context(), "k", nop, processlock.IfAvailable), processlock.ErrUnavailable)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
}

func TestLockTxTakesItsOptions(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	one, two := b.begins(), b.begins()
	require.NoError(t, l.LockTx(t.Context(), one, "k", processlock.Shared))
	require.NoError(t, l.LockTx(t.Context(), two, "k", processlock.Shared))
	b.refused(l.WithLock(t.Context(), "k", nop, processlock.IfAvailable), processlock.ErrUnavailable)
	require.NoError(t, l.LockTx(t.Context(), one, processlock.All("x", "y", "x")))
	assert.Len(t, b.held("x"), 1)
	assert.Len(t, b.held("y"), 1)
	e := b.refused(l.LockTx(t.Context(), two, processlock.All("y", "x"), processlock.IfAvailable), processlock.ErrUnavailable)
	assert.Equal(t, processlock.MustKey("x"), e.Key)
	require.NoError(t, one.Rollback(t.Context()))
	require.NoError(t, two.Rollback(t.Context()))

	held := b.hold(l, "k")
	tx := b.begins()
	require.NoError(t, l.LockTx(held.ctx, tx, "k", processlock.Reentrant))
	assert.Len(t, b.held("k"), 1, "that of the hold")
	require.NoError(t, tx.Rollback(t.Context()))
	held.ok()
}

// A deadlock that the server finds is known as one.
func TestLockTxDeadlockOfTransactions(t *testing.T) {
	b := newBed(t)
	b.set("deadlock_timeout", "100ms")
	l := b.locker(pglock.Options{})
	one, two := b.begins(), b.begins()
	require.NoError(t, l.LockTx(t.Context(), one, "a"))
	require.NoError(t, l.LockTx(t.Context(), two, "b"))
	first := b.lockTx(t.Context(), l, one, "b")
	second := make(chan error, 1)
	go func() { second <- l.LockTx(t.Context(), two, "a") }()
	// What the victim has locked is free as soon as it is told, or before.
	errs := []error{<-first, <-second}
	if errs[0] == nil {
		slices.Reverse(errs)
	}
	b.refused(errs[0], processlock.ErrDeadlock)
	assert.NoError(t, errs[1])
	require.NoError(t, one.Rollback(t.Context()))
	require.NoError(t, two.Rollback(t.Context()))
}

// A context that is done while LockTx waits costs the transaction.
func TestLockTxUnderAContextThatEnds(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	held := b.hold(l, "k")
	tx := b.begins()
	ctx, cancel := context.WithCancel(t.Context())
	done := b.lockTx(ctx, l, tx, "k")
	cancel()
	b.refused(<-done, context.Canceled)
	assert.True(t, tx.Conn().IsClosed())
	b.eventually(func() bool { return len(b.waiting("k")) == 0 }, "it waits on")
	held.ok()
	b.refused(l.LockTx(ctx, b.begins(), "k"), context.Canceled)
}

// Close under a hold of the Locker's own would wait for itself; what is called
// under it is served to the end.
func TestCloseInsideFn(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	require.NoError(t, l.WithLock(t.Context(), "k", func(ctx context.Context) error {
		require.ErrorIs(t, l.Close(ctx), processlock.ErrDeadlock)
		b.refused(l.WithLock(t.Context(), "other", nop), processlock.ErrClosed)
		b.refused(l.LockTx(t.Context(), b.begins(), "other"), processlock.ErrClosed)
		require.NoError(t, l.LockTx(ctx, b.begins(), "another"))
		return l.WithLock(ctx, "other", nop)
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, l.Close(ctx))
	b.refused(l.WithConn(t.Context(), "k", connNop), processlock.ErrClosed)
	b.eventually(func() bool { return len(b.sessions()) == 0 }, "a connection is left")
}
