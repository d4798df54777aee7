package pglock_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A statement that waits has a snapshot, and VACUUM keeps what a snapshot may
// see. It can cut a table's end off as soon as no snapshot is older than the
// deletes.
func TestTrap_6_VacuumIsHeldBackByASliceAtMost(t *testing.T) {
	for _, mode := range []pglock.WaitMode{pglock.Queue, pglock.Poll} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBed(t)
			other := b.session()
			b.take(other, "k")
			waits := b.start(t.Context(), b.locker(pglock.Options{Wait: mode, Slice: 100 * time.Millisecond}), "k")
			if mode == pglock.Queue {
				waits.queued(1)
			}
			conn := b.session()
			b.exec(conn, "create table t as select generate_series(1, 500) as x")
			b.exec(conn, "delete from t")
			begin := time.Now()
			b.eventually(func() bool {
				b.exec(conn, "vacuum t")
				return ask[int64](b, conn, "select pg_relation_size('t')") == 0
			}, "VACUUM removes nothing while a call waits")
			waits.pending()
			t.Logf("VACUUM had its way after %v", time.Since(begin))
			b.unlock(other, "k")
			waits.runs().ok()
		})
	}
}

// small is a server whose lock table is soon full.
var small = pgtest.Settings{"max_connections": "12", "max_locks_per_transaction": "10", "max_worker_processes": "0",
	"max_wal_senders": "0", "autovacuum_max_workers": "1"}

func TestTrap_9_FullLockTable(t *testing.T) {
	b := ownBed(t, small)
	l := b.locker(pglock.Options{MaxKeys: 100000})
	inside, fill := context.WithCancel(t.Context())
	defer fill()
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed []error
		ran    int
	)
	kept := b.hold(l, "kept")
	for i := range 2000 {
		wg.Go(func() {
			err := l.WithLock(t.Context(), i, func(context.Context) error {
				<-inside.Done()
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				ran++
				return
			}
			failed = append(failed, err)
			fill() // it is full: the holders make room
		})
	}
	wg.Wait()
	require.NotEmpty(t, failed, "the lock table was not full with 2000 locks")
	for _, err := range failed {
		e := b.refused(err)
		assert.ErrorContains(t, e, "max_locks_per_transaction")
	}
	assert.Greater(t, ran, 50, "what was held stays held")
	kept.ok()
	require.NoError(t, l.WithLock(t.Context(), "again", nop), "there is room again")
}

func TestTrap_9_MaxKeysKeepsTheLockTableFree(t *testing.T) {
	b := ownBed(t, small)
	l := b.locker(pglock.Options{MaxKeys: 50})
	other := b.session()
	done, seen := make(chan error), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			err := l.WithLock(ctx, i, func(context.Context) error {
				<-seen
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	// All that there is room for is held until it was seen.
	b.eventually(func() bool { return len(b.locks()) >= 50 }, "keys are not held side by side")
	time.Sleep(young)
	most := len(b.locks())
	close(seen)
	for n := 0; ; n++ {
		b.exec(other, "create table t"+strconv.Itoa(n)+" (x int)")
		most = max(most, len(b.locks()))
		select {
		case <-done:
			assert.LessOrEqual(t, most, 50)
			return
		default:
		}
	}
}

// The server takes back what was locked after a savepoint, and says so to
// nobody.
func TestTrap_14_RollbackToASavepointDropsTheLock(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	conn := b.session()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.LockTx(t.Context(), tx, "outer"))
	nested, err := tx.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.LockTx(t.Context(), nested, "inner"))
	assert.Len(t, b.held("inner"), 1)
	require.NoError(t, nested.Rollback(t.Context()))
	assert.Empty(t, b.held("inner"))
	assert.Len(t, b.held("outer"), 1, "locked before the savepoint")
	// It was dropped for good: the same transaction can ask for it again.
	require.NoError(t, l.LockTx(t.Context(), tx, "inner"))
	assert.Len(t, b.held("inner"), 1)
	require.NoError(t, tx.Commit(t.Context()))
	assert.Empty(t, b.locks())
	require.NoError(t, errors.Join(l.WithLock(t.Context(), "inner", nop), l.WithLock(t.Context(), "outer", nop)))
}
