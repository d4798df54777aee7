package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestField_P8_HoldersDoNotStarveTheCallersPool(t *testing.T) {
	b := newBed(t)
	pool := b.pool(b.db.DSN(), func(c *pgxpool.Config) { c.MaxConns = 4 })
	l := pglock.New(pool, pglock.Options{})
	t.Cleanup(func() { assert.NoError(t, l.Close(context.Background())) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	var wg, all sync.WaitGroup
	all.Add(4)
	for i := range 4 {
		wg.Go(func() {
			assert.NoError(t, l.WithLock(ctx, i, func(ctx context.Context) error {
				all.Done()
				all.Wait()
				_, err := pool.Exec(ctx, "select pg_sleep(0.01)")
				return err
			}))
		})
	}
	wg.Wait()

	held := b.hold(l, "k")
	for range 100 {
		wg.Go(func() { assert.NoError(t, l.WithLock(ctx, "k", nop)) })
	}
	for range 20 {
		_, err := pool.Exec(ctx, "select 1")
		require.NoError(t, err)
	}
	held.ok()
	wg.Wait()
}

// Nothing of the Locker is in the caller's pool, and Close waits for holders
// only.
func TestField_P30_NobodyWaitsForALockedConnection(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	pool := b.pool(b.db.DSNAt(p.Addr()))
	l := pglock.New(pool, pglock.Options{Release: 100 * time.Millisecond, Probe: time.Hour})
	held := b.hold(l, "k")
	closed := make(chan struct{})
	go func() { defer close(closed); pool.Close() }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("pool.Close waits for a lock")
	}
	require.NoError(t, held.ctx.Err())
	require.Len(t, b.held("k"), 1)

	// Close waits for the holder, and admits nobody.
	closing := make(chan error, 1)
	go func() { closing <- l.Close(context.Background()) }()
	b.eventually(func() bool {
		return errors.Is(l.WithLock(t.Context(), "other", nop, processlock.IfAvailable), processlock.ErrClosed)
	}, "a closing Locker admits calls")
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	assert.ErrorIs(t, l.Close(short), context.DeadlineExceeded)
	cancel()
	select {
	case err := <-closing:
		t.Fatalf("Close has returned before the holder: %v", err)
	default:
	}
	p.BlackHole()
	begin := time.Now()
	held.let()
	assert.Error(t, held.returns(), "its unlock was never answered")
	require.NoError(t, <-closing)
	assert.Less(t, time.Since(begin), patience/2)
	p.Heal()
	b.eventually(func() bool { return len(b.sessions()) == 0 }, "a closed Locker keeps a session")
}

func TestField_P32_PollingBacksOff(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	other := b.session()
	b.take(other, "k")
	l := b.lockerAt(p.Addr(), pglock.Options{Wait: pglock.Poll})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { assert.NoError(t, l.WithLock(t.Context(), "k", nop)) })
	}
	b.eventually(func() bool { return p.Wire().Count("pg_try_advisory_lock") > 0 }, "nobody asks")
	const span = 3 * time.Second
	time.Sleep(span)
	wire := p.Wire()
	t.Logf("50 waiters: %d statements in %v", wire.Executes, span)
	assert.Less(t, wire.Executes, 120, "50 waiters are one poller, and it backs off")
	assert.Greater(t, wire.Executes, 2, "it goes on asking")
	assert.Len(t, b.sessions(), 1, "polling needs no connection but the hub's")
	b.unlock(other, "k")
	wg.Wait()
}

func TestField_P33_WaitStopsNoOtherKey(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{Slice: patience})
	other := b.session()
	b.take(other, "a")
	waits := b.start(t.Context(), l, "a").queued(1)
	var slowest time.Duration
	for i := range 50 {
		begin := time.Now()
		require.NoError(t, l.WithLock(t.Context(), "b"+strconv.Itoa(i), nop))
		slowest = max(slowest, time.Since(begin))
	}
	waits.pending()
	t.Logf("slowest of 50: %v", slowest)
	assert.Less(t, slowest, patience/2, "the wait would have ended with its slice")
	b.unlock(other, "a")
	waits.runs().ok()
}

func TestField_P34_UnusedLockerCostsNothing(t *testing.T) {
	b := newBed(t)
	pool := b.pool(b.db.DSN())
	l := pglock.New(pool, pglock.Options{})
	_, err := l.LockID("k")
	require.NoError(t, err)
	assert.Empty(t, b.sessions())
	assert.Zero(t, pool.Stat().TotalConns())
	b.refused(l.WithLock(t.Context(), func() {}, nop), processlock.ErrKey)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	b.refused(l.WithLock(done, "k", nop), context.Canceled)
	assert.Empty(t, b.sessions(), "calls that fail before the server is needed")
	require.NoError(t, l.Close(t.Context()))
	assert.Empty(t, b.sessions())

	// Goroutines are counted in a process that has no others.
	out, err := b.child("unused", pglock.Options{}).Output()
	require.NoError(t, err)
	assert.Equal(t, "unused 0, used 0, closed 0", strings.TrimSpace(string(out)))
}

// oddContext is a context of a kind that package context does not know: to be
// told of its end there takes a goroutine.
type oddContext struct{ context.Context }

func (c oddContext) Done() <-chan struct{} {
	done := make(chan struct{})
	return done
}

// unusedRole counts the goroutines of a Locker before its first call, those that
// a hundred calls add to what one has left, and those that stay when it is closed.
func unusedRole() error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv(dsnVariable))
	if err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	l := pglock.New(pool, pglock.Options{})
	if _, err := l.LockID("k"); err != nil {
		return err
	}
	unused := runtime.NumGoroutine() - before
	if err := l.WithLock(ctx, "k", nop); err != nil {
		return err
	}
	settled := func(most int) int {
		end := time.Now().Add(patience)
		for runtime.NumGoroutine() > most && time.Now().Before(end) {
			time.Sleep(time.Millisecond)
		}
		return max(0, runtime.NumGoroutine()-most)
	}
	once := runtime.NumGoroutine()
	for range 100 {
		if err := l.WithLock(oddContext{ctx}, "k", nop); err != nil {
			return err
		}
	}
	used := settled(once)
	if err := l.Close(ctx); err != nil {
		return err
	}
	fmt.Printf("unused %d, used %d, closed %d\n", unused, used, settled(before))
	return nil
}

func TestField_P36_EveryLockAsksTheServer(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	l := b.lockerAt(p.Addr(), pglock.Options{})
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
	p.Wire()
	const n = 50
	for range n {
		require.NoError(t, l.WithLock(t.Context(), "k", nop))
	}
	wire := p.Wire()
	assert.GreaterOrEqual(t, wire.Executes, 2*n, "each locks and unlocks")
	assert.LessOrEqual(t, wire.RoundTrips, 2*n+5, "in two round trips")
	assert.Zero(t, wire.Conns)
	texts := strings.Join(wire.Statements, "\n")
	assert.NotContains(t, texts, "deallocate")
}
