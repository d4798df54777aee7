package pglock_test

import (
	"context"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rows that fn leaves open cost the session, but are no loss: the lock was held
// till then. A transaction is rolled back, which is known.
func TestRowsLeftOpenAreNoLoss(t *testing.T) {
	b := newBed(t)
	other := b.session()
	b.exec(other, "create table t (n int)")
	l := b.locker(pglock.Options{})
	require.NoError(t, l.WithConn(t.Context(), "k", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Query(ctx, "select generate_series(1, 100000)")
		return err
	}))
	b.eventually(func() bool { return b.free(other, "k") }, "the lock is left")
	err := l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into t values (1)")
		require.NoError(t, err)
		_, err = tx.Query(ctx, "select generate_series(1, 100000)")
		return err
	})
	require.ErrorContains(t, err, "rows were left open")
	assert.NotErrorIs(t, err, processlock.ErrLost)
	b.eventually(func() bool { return b.free(other, "k") }, "the lock is left")
	assert.Zero(t, ask[int](b, other, "select count(*) from t"))
}

// A transaction that is over has no connection any more: LockTx must not lock in
// whatever goes on there.
func TestLockTxRefusesATransactionThatIsOver(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	conn := b.session()
	over, err := conn.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, over.Commit(t.Context()))
	next, err := conn.Begin(t.Context())
	require.NoError(t, err)
	b.refused(l.LockTx(t.Context(), over, "k"), pgx.ErrTxClosed)
	assert.Empty(t, b.held("k"))
	require.NoError(t, l.LockTx(t.Context(), next, "k"))
	assert.NotEmpty(t, b.held("k"))
	require.NoError(t, next.Rollback(t.Context()))
}
