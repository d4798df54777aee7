package pglock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A lock_timeout that meets the grant fails a statement that has taken the lock,
// more often than not. Each round lets the slice of a waiter end as it is
// granted; what the session then holds, and how often, shows in whether another
// can have the key when the call has returned.
func TestTrap_1_FailedAcquireMayHoldTheLock(t *testing.T) {
	b := newBed(t)
	const slice = 5 * time.Millisecond
	l := b.locker(pglock.Options{Slice: slice})
	other := b.session()
	for round := range 150 {
		b.take(other, "k")
		ctx, cancel := context.WithCancel(t.Context())
		c := b.start(ctx, l, "k")
		b.eventually(func() bool { return len(b.waiting("k")) == 1 }, "nobody waits")
		time.Sleep(slice + time.Duration(rand.Int64N(int64(slice))))
		if round%3 == 0 {
			cancel() // with nobody left the wait ends with its slice
		}
		b.unlock(other, "k")
		if err := c.let().returns(); err == nil {
			require.True(t, b.free(other, "k"), "round %d: the call has returned and its session holds on", round)
		} else {
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel()
		b.nothingHeld()
	}
}

// A session that holds a key and builds an index concurrently waits for the
// snapshot of whoever waits for the key. The server ends that by telling the
// innocent waiter of a deadlock.
func TestTrap_2_ServersDeadlockIsNotPassedOn(t *testing.T) {
	b := newBed(t)
	b.set("deadlock_timeout", "700ms")
	conn := b.session()
	b.exec(conn, "create table t (x int)")
	holder := b.locker(pglock.Options{})
	waiter := b.locker(pglock.Options{Slice: time.Second})
	deadlocks := func() int64 {
		return ask[int64](b, conn, "select deadlocks from pg_stat_database where datname = current_database()")
	}
	var waits *call
	err := holder.WithConn(t.Context(), "k", func(ctx context.Context, conn *pgx.Conn) error {
		// Of those on a cycle the first to look is the victim: not the builder.
		if _, err := conn.Exec(ctx, "set deadlock_timeout = '1h'"); err != nil {
			return err
		}
		waits = b.start(context.Background(), waiter, "k").queued(1)
		// A build that meets the end of a slice waits for nobody.
		for end := time.Now().Add(patience); deadlocks() == 0; {
			if time.Now().After(end) {
				return errors.New("the server finds no deadlock")
			}
			waits.queued(1)
			if _, err := conn.Exec(ctx, "drop index if exists i"); err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, "create index concurrently i on t (x)"); err != nil {
				return err
			}
		}
		waits.pending()
		return nil
	})
	require.NoError(t, err)
	waits.runs().ok()
}

// Each slice that failed but won adds one to what the session holds.
func TestTrap_3_SessionLocksCount(t *testing.T) {
	b := newBed(t)
	const lockers = 6
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var (
		turns  [lockers]int // under the lock
		all    int
		inside atomic.Int32
		wg     sync.WaitGroup
	)
	// When one has had hundreds, or all have had a few, it is told.
	enough := func() bool { return all >= 100*lockers && slices.Min(turns[:]) > 3 || slices.Max(turns[:]) > 1000 }
	for i := range lockers {
		l := b.locker(pglock.Options{Slice: 8 * time.Millisecond, Handoff: pglock.Handoff{Max: 1}})
		wg.Go(func() {
			for ctx.Err() == nil {
				err := l.WithLock(ctx, "k", func(context.Context) error {
					if inside.Add(1) != 1 {
						return errors.New("two are inside")
					}
					defer inside.Add(-1)
					turns[i]++
					all++
					if enough() {
						cancel()
					}
					time.Sleep(2 * time.Millisecond)
					return nil
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, n := range turns {
		assert.Greater(t, n, 3, "turns of locker %d of %v: a session that holds a lock twice starves the others", i, turns)
	}
}

// The driver returns no error for a statement that succeeded although its
// context was done meanwhile.
func TestTrap_12_SuccessUnderADoneContextIsGivenBack(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	l := b.lockerAt(p.Addr(), pglock.Options{})
	require.NoError(t, l.WithLock(t.Context(), "warm", nop))
	const delay = 100 * time.Millisecond
	p.Delay(delay)
	end := time.Now().Add(patience)
	for early := 0; early < 3; {
		require.True(t, time.Now().Before(end), "the grant is seen too late each time")
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		c := b.start(ctx, l, "k")
		b.eventually(func() bool { return len(b.held("k")) == 1 }, "the server does not grant")
		cancel() // the answer is still on its way, unless it took long to see the grant
		took := time.Since(begin)
		err := c.let().returns()
		if took < 2*delay {
			early++
			b.refused(err, context.Canceled)
			assert.False(t, isClosed(c.entered), "fn ran under a context that was done before the grant was known")
		}
		b.nothingHeld()
	}
}
