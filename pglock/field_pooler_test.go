package pglock_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestField_P7_TransactionPoolingIsRefused(t *testing.T) {
	for name, lock := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			p := b.pooler("transaction")
			for _, busy := range []int{0, 6} {
				// Others who use the pooler, so that sessions change hands.
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{}, busy)
				for range busy {
					conn, err := pgx.Connect(t.Context(), b.db.DSNAt(p.Addr()))
					require.NoError(t, err)
					go func() {
						defer func() { _ = conn.Close(context.Background()); ended <- struct{}{} }()
						for ctx.Err() == nil {
							_, _ = conn.Exec(ctx, "select 1", pgx.QueryExecModeSimpleProtocol)
						}
					}()
				}
				for range 3 {
					l := b.lockerAt(p.Addr(), pglock.Options{})
					err := lock(l, t.Context(), "k", func(context.Context) error {
						t.Error("fn ran")
						return nil
					})
					e := b.refused(err, pglock.ErrPooler)
					assert.Equal(t, processlock.MustKey("k"), e.Key)
					assert.ErrorContains(t, e, "session")
				}
				cancel()
				for range busy {
					<-ended
				}
				b.nothingHeld()
			}
		})
	}
}

func TestField_P7_SessionPoolingIsNot(t *testing.T) {
	b := newBed(t)
	p := b.pooler("session")
	direct := b.locker(pglock.Options{})
	for name, lock := range ways {
		l := b.lockerAt(p.Addr(), pglock.Options{})
		require.NoError(t, lock(l, t.Context(), "k", func(context.Context) error {
			b.refused(direct.WithLock(t.Context(), "k", nop, processlock.MaxWait(20*time.Millisecond)), processlock.ErrWaitTimeout)
			return nil
		}), name)
		require.NoError(t, direct.WithLock(t.Context(), "k", nop), name)
	}
}

// A pooler accepts whom it has no session for, and lets him wait.
func TestFullPoolIsToldAsOne(t *testing.T) {
	b := newBed(t)
	for name, lock := range ways {
		l := b.lockerAt(b.poolerOf("session", 1).Addr(), pglock.Options{Probe: 4 * time.Second})
		assert.ErrorContains(t, b.refused(lock(l, t.Context(), "k", nop)), "default_pool_size", name)
	}
	p := b.poolerOf("session", 2)
	l := b.lockerAt(p.Addr(), pglock.Options{Probe: 4 * time.Second})
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
	held := b.startWith(t.Context(), "own", func(ctx context.Context, fn func(context.Context) error) error {
		return ways["WithConn"](l, ctx, "own", fn)
	}).runs()
	assert.ErrorContains(t, b.refused(l.WithConn(t.Context(), "other", connNop)), "default_pool_size")

	// Who waits for others goes on without a session of his own.
	other := b.session()
	b.take(other, "busy")
	waits := b.start(t.Context(), l, "busy")
	outer := b.hold(l, "outer")
	assert.ErrorContains(t, b.refused(l.WithLock(outer.ctx, "busy", nop)), "default_pool_size")
	outer.ok()
	waits.pending()
	b.unlock(other, "busy")
	waits.runs().ok()
	held.ok()
}

// A lock of a transaction is where the transaction is, and goes with it.
func TestLockTxGoesThroughTransactionPooling(t *testing.T) {
	b := newBed(t)
	p := b.pooler("transaction")
	l := b.locker(pglock.Options{})
	conn, err := pgx.Connect(t.Context(), b.db.DSNAt(p.Addr()))
	require.NoError(t, err)
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.LockTx(t.Context(), tx, "k"))
	b.refused(l.WithLock(t.Context(), "k", nop, processlock.IfAvailable), processlock.ErrUnavailable)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
}

// A lock on a standby is a lock of the standby's own.
func TestStandbyIsRefusedUntilItIsPromoted(t *testing.T) {
	b := ownBed(t, nil)
	standby, err := b.db.Server.Standby()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, standby.Close()) })
	for name, lock := range ways {
		l := b.lockerAt(standby.Addr(), pglock.Options{})
		e := b.refused(lock(l, t.Context(), "k", nop), pglock.ErrStandby)
		assert.ErrorContains(t, e, "primary", name)
	}
	conn, err := pgx.Connect(t.Context(), b.db.DSNAt(standby.Addr()))
	require.NoError(t, err)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	for _, opts := range [][]processlock.Option{nil, {processlock.IfAvailable}, {processlock.MaxWait(time.Second)}} {
		b.refused(b.locker(pglock.Options{}).LockTx(t.Context(), tx, "k", opts...), pglock.ErrStandby)
	}
	require.NoError(t, tx.Rollback(t.Context()), "it has not failed")
	require.NoError(t, conn.Close(t.Context()))
	l := b.lockerAt(standby.Addr(), pglock.Options{})
	b.refused(l.WithLock(t.Context(), "k", nop), pglock.ErrStandby)
	require.NoError(t, standby.Promote(t.Context()))
	require.NoError(t, l.WithLock(t.Context(), "k", nop), "it is a primary now")
}
