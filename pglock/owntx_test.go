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

// fn may end its transaction itself; the lock stays until it returns.
func TestFnEndsItsTransaction(t *testing.T) {
	b := newBed(t)
	conn := b.session()
	b.exec(conn, "create table t (n int primary key deferrable initially deferred)")
	l := b.locker(pglock.Options{})
	rows := func() int { return ask[int](b, conn, "select count(*) from t") }
	insert := func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, "insert into t values (1)")
		require.NoError(t, err)
	}
	var kept pgx.Tx
	require.NoError(t, l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		kept = tx
		insert(ctx, tx)
		require.NoError(t, tx.Rollback(ctx))
		assert.ErrorIs(t, tx.Rollback(ctx), pgx.ErrTxClosed)
		_, err := tx.Exec(ctx, "select 1")
		assert.ErrorIs(t, err, pgx.ErrTxClosed)
		assert.Len(t, b.held("k"), 1)
		return nil
	}))
	assert.Zero(t, rows())
	require.NoError(t, l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := kept.Exec(ctx, "select 1")
		assert.ErrorIs(t, err, pgx.ErrTxClosed, "of the call before")
		insert(ctx, tx)
		require.NoError(t, tx.Commit(ctx))
		assert.ErrorIs(t, tx.Commit(ctx), pgx.ErrTxClosed)
		assert.Equal(t, 1, rows())
		assert.Len(t, b.held("k"), 1)
		return nil
	}))
	err := l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		insert(ctx, tx)
		return tx.Commit(ctx)
	})
	assert.ErrorContains(t, err, "23505")
	err = l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "select 1/0")
		require.Error(t, err)
		return tx.Commit(ctx)
	})
	assert.ErrorIs(t, err, pgx.ErrTxCommitRollback)
	err = l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "select 1/0")
		require.Error(t, err)
		return nil
	})
	assert.ErrorIs(t, err, pgx.ErrTxCommitRollback)
	assert.True(t, b.free(conn, "k"))
}

func TestBeginThatIsRefused(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	for range 3 {
		err := l.WithTx(t.Context(), "k", pgx.TxOptions{IsoLevel: "none"}, func(context.Context, pgx.Tx) error {
			t.Error("fn ran")
			return nil
		})
		b.refused(err)
		assert.ErrorContains(t, err, "42601")
	}
	assert.True(t, b.free(b.session(), "k"))
}

// A client that is closed loses the session that its fn has, and with it the key.
func TestClosedClientLosesItsSession(t *testing.T) {
	for name, lock := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			local := processlock.New(processlock.Options{})
			l := b.locker(pglock.Options{Local: local})
			ctx, client := local.WithClient(t.Context(), "worker")
			held := b.startWith(ctx, "k", func(ctx context.Context, fn func(context.Context) error) error {
				return lock(l, ctx, "k", fn)
			}).runs()
			next := b.startWith(t.Context(), "k", func(ctx context.Context, fn func(context.Context) error) error {
				return lock(l, ctx, "k", fn)
			})
			b.eventually(func() bool { return waitersOf(local, idOf("k")) == 1 }, "nobody waits")
			client.Close()
			next.runs()
			assert.ErrorIs(t, context.Cause(held.ctx), processlock.ErrClosed)
			assert.Len(t, b.held("k"), 1)
			held.let()
			assert.ErrorIs(t, held.returns(), processlock.ErrLost)
			assert.Len(t, b.held("k"), 1, "of the next")
			require.NoError(t, next.ctx.Err())
			next.ok()
		})
	}
}

// So it does where the next is in another process.
func TestClosedClientLeavesItsKeysToOtherProcesses(t *testing.T) {
	for name, lock := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			local := processlock.New(processlock.Options{})
			l := b.locker(pglock.Options{Local: local, Probe: 2 * time.Second})
			other := b.locker(pglock.Options{})
			ctx, client := local.WithClient(t.Context(), "worker")
			held := b.startWith(ctx, "k", func(ctx context.Context, fn func(context.Context) error) error {
				return lock(l, ctx, "k", fn)
			}).runs()
			beside := b.hold(l, "beside")
			next := b.start(t.Context(), other, "k").queued(1)
			client.Close()
			closed := time.Now()
			next.runs()
			assert.Less(t, time.Since(closed), patience/2)
			assert.ErrorIs(t, context.Cause(held.ctx), processlock.ErrClosed)
			held.let()
			assert.ErrorIs(t, held.returns(), processlock.ErrLost)
			assert.Len(t, b.held("k"), 1, "of the next")
			next.ok()
			beside.ok()
		})
	}
}

// And where the call's context had ended before, for a reason of its own, as that
// of a worker who hangs.
func TestClosedClientLeavesItsKeysThoughItsCallHadEnded(t *testing.T) {
	for name, lock := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			local := processlock.New(processlock.Options{})
			l := b.locker(pglock.Options{Local: local, Probe: 2 * time.Second})
			other := b.locker(pglock.Options{})
			ctx, client := local.WithClient(t.Context(), "worker")
			ctx, cancel := context.WithCancel(ctx)
			held := b.startWith(ctx, "k", func(ctx context.Context, fn func(context.Context) error) error {
				return lock(l, ctx, "k", fn)
			}).runs()
			next := b.start(t.Context(), other, "k").queued(1)
			cancel()
			client.Close()
			next.runs()
			assert.ErrorIs(t, held.let().returns(), processlock.ErrLost)
			next.ok()
		})
	}
}

// Who holds on while the Locker is closed is nobody's closed client.
func TestClosedLockerTakesNoKeyAway(t *testing.T) {
	for name, lock := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			l, other := b.locker(pglock.Options{Probe: time.Second}), b.locker(pglock.Options{})
			held := b.startWith(t.Context(), "k", func(ctx context.Context, fn func(context.Context) error) error {
				return lock(l, ctx, "k", fn)
			}).runs()
			next := b.start(t.Context(), other, "k").queued(1)
			closed := make(chan error, 1)
			go func() { closed <- l.Close(context.Background()) }()
			time.Sleep(2 * time.Second) // those who hold are looked at in half of it
			next.pending()
			held.ok()
			next.runs().ok()
			require.NoError(t, <-closed)
		})
	}
}

// Those who need a session of their own come to their turn among those who don't.
func TestMaxKeysOfSessions(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{MaxKeys: 2})
	one, two := b.hold(l, 1), b.hold(l, 2)
	own := b.startWith(t.Context(), "own", func(ctx context.Context, fn func(context.Context) error) error {
		return ways["WithConn"](l, ctx, "own", fn)
	})
	b.refused(l.WithConn(t.Context(), "try", connNop, processlock.IfAvailable), processlock.ErrUnavailable)
	b.refused(l.WithLock(t.Context(), "try", nop, processlock.IfAvailable), processlock.ErrUnavailable)
	require.NoError(t, l.WithConn(one.ctx, "inner", connNop), "who holds something waits for no room")
	own.pending()
	one.ok()
	own.runs()
	require.Len(t, b.locks(), 2)
	own.ok()
	two.ok()
}
