package pglock_test

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A *big.Int is its own lock id, so it can meet that of another key: two keys,
// one lock.
func TestTrap_4_TwoKeysOfOneId(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	name, number := "schema-install", big.NewInt(8391191540082855336)

	held := b.hold(l, name)
	b.refused(l.WithLock(t.Context(), number, nop, processlock.IfAvailable), processlock.ErrUnavailable)
	waits := b.start(t.Context(), l, number)
	b.refused(l.WithLock(held.ctx, number, nop), processlock.ErrDeadlock)
	require.NoError(t, l.WithLock(held.ctx, number, nop, processlock.Reentrant))
	assert.Len(t, b.held(name), 1)
	waits.pending()
	held.ok()
	waits.runs().ok()

	require.NoError(t, l.WithLock(t.Context(), processlock.All(name, number, "other"), func(context.Context) error {
		assert.Len(t, b.locks(), 2)
		return nil
	}))
}

// 7n and [7n] are one lock in the process and two in the database, for
// TypeScript's sake.
func TestTrap_4_OneKeyOfTwoIds(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	bare, list := big.NewInt(7), []any{big.NewInt(7)}
	first, err := l.LockID(bare)
	require.NoError(t, err)
	second, err := l.LockID(list)
	require.NoError(t, err)
	require.Equal(t, int64(7), first)
	require.NotEqual(t, first, second)

	outer := b.hold(l, bare)
	inner := b.start(outer.ctx, l, list).runs()
	for _, id := range []int64{first, second} {
		held, err := b.db.Held(t.Context(), id)
		require.NoError(t, err)
		assert.Len(t, held, 1, "of id %d", id)
	}
	// Who gets one of them from the queue has that one.
	waits := b.start(t.Context(), l, list)
	inner.ok()
	waits.runs()
	held, err := b.db.Held(t.Context(), second)
	require.NoError(t, err)
	assert.Len(t, held, 1)
	waits.ok()
	outer.ok()
}

func TestTrap_5_NamespaceIsOneForAllMethods(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{Namespace: "billing"})
	id, err := l.LockID("k")
	require.NoError(t, err)
	require.NotEqual(t, idOf("k"), id)
	isHeld := func() {
		t.Helper()
		held, err := b.db.Held(t.Context(), id)
		require.NoError(t, err)
		assert.Len(t, held, 1)
		assert.Empty(t, b.held("k"), "without the namespace")
	}
	require.NoError(t, l.WithLock(t.Context(), "k", func(context.Context) error { isHeld(); return nil }))
	require.NoError(t, l.WithConn(t.Context(), "k", func(context.Context, *pgx.Conn) error { isHeld(); return nil }))
	require.NoError(t, l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(context.Context, pgx.Tx) error { isHeld(); return nil }))

	conn := b.session()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.LockTx(t.Context(), tx, "k"))
	isHeld()
	b.refused(l.WithLock(t.Context(), "k", nop, processlock.MaxWait(10*time.Millisecond)), processlock.ErrWaitTimeout)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
}
