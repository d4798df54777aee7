package pglock_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cancelWaits has calls wait for key and give up at random moments.
func cancelWaits(b *bed, l processlock.Locker, key any, calls int) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range calls / 8 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.Int64N(int64(10*time.Millisecond))))
				err := l.WithLock(ctx, key, nop)
				cancel()
				assert.ErrorIs(b, err, context.DeadlineExceeded)
			}
		})
	}
	wg.Wait()
}

// A cancel request may hit the next statement of its session.
func TestTrap_7_NoCancelRequestIsSent(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	other := b.session()
	b.take(other, "k")
	l := b.lockerAt(p.Addr(), pglock.Options{Slice: 10 * time.Millisecond})
	cancelWaits(b, l, "k", 400)
	b.unlock(other, "k")
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
	wire := p.Wire()
	assert.Zero(t, wire.Cancels)
	assert.Less(t, wire.Conns, 8, "a wait that ends costs no connection")
}

// PgBouncer up to 1.20 ends when it gets one.
func TestTrap_7_PoolerSurvivesCanceledWaits(t *testing.T) {
	b := newBed(t)
	p := b.pooler("session")
	other := b.session()
	b.take(other, "k")
	l := b.lockerAt(p.Addr(), pglock.Options{Slice: 10 * time.Millisecond})
	cancelWaits(b, l, "k", 400)
	b.unlock(other, "k")
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
	assert.True(t, p.Alive(), p.Log())
}

// pooler starts a PgBouncer in front of the server.
func (b *bed) pooler(mode string) *pgtest.Pooler { return b.poolerOf(mode, 20) }

// poolerOf is pooler with so many sessions on the server.
func (b *bed) poolerOf(mode string, size int) *pgtest.Pooler {
	b.Helper()
	p, err := b.db.Server.Pool(mode, size)
	require.NoError(b, err)
	b.Cleanup(func() { assert.NoError(b, p.Close()) })
	return p
}

// Waits for what others hold must not take all connections.
func TestTrap_8_FreeKeysAreToBeHadWhileOthersWait(t *testing.T) {
	b := newBed(t)
	other := b.session()
	l := b.locker(pglock.Options{MaxConns: 2})
	var waits []*call
	for i := range 10 {
		b.take(other, i)
		waits = append(waits, b.start(t.Context(), l, i))
	}
	waits[0].b.eventually(func() bool { return len(b.sessions()) == 2 }, "MaxConns 2 are not used")
	for i := range 100 {
		begin := time.Now()
		require.NoError(t, l.WithLock(t.Context(), "free"+strconv.Itoa(i), nop))
		require.Less(t, time.Since(begin), 5*time.Second)
	}
	assert.LessOrEqual(t, len(b.sessions()), 2)
	for i := range 10 {
		b.unlock(other, i)
	}
	for _, c := range waits {
		c.runs().ok()
	}
}

// Two that hold a key each and ask for another must not wait for each other's
// connection.
func TestTrap_8_NestedCallsNeedNoFreeConnection(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{MaxConns: 2})
	const holders = 4
	conns := func(ctx context.Context, key string, fn func(context.Context) error) error {
		return l.WithConn(ctx, key, func(ctx context.Context, conn *pgx.Conn) error {
			if _, err := conn.Exec(ctx, "select 1"); err != nil {
				return err
			}
			return fn(ctx)
		})
	}
	var wg, all sync.WaitGroup
	all.Add(holders)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range holders {
		wg.Go(func() {
			once := sync.OnceFunc(all.Done)
			defer once()
			assert.NoError(t, conns(ctx, "outer"+strconv.Itoa(i), func(ctx context.Context) error {
				once()
				all.Wait() // all of them hold, then all of them ask
				return conns(ctx, "inner"+strconv.Itoa(i), nop)
			}))
		})
	}
	wg.Wait()

	// The same where the inner key is busy: its holder holds nothing else.
	other := b.session()
	outer := []*call{b.hold(l, "a"), b.hold(l, "b"), b.hold(l, "c")}
	inner := make([]*call, 3)
	for i := range inner {
		b.take(other, i)
		inner[i] = b.start(outer[i].ctx, l, i)
	}
	for i, c := range inner {
		b.unlock(other, i)
		c.runs().ok()
	}
}

// A connection that nothing refers to is collected, and its socket closed.
func TestTrap_10_SessionsAreNotCollected(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	other := b.session()
	collect := func(ctx context.Context) {
		t.Helper()
		for range 5 {
			runtime.GC()
		}
		assert.Len(t, b.held("k"), 1)
		assert.NoError(t, ctx.Err())
	}
	require.NoError(t, l.WithLock(t.Context(), "k", func(ctx context.Context) error { collect(ctx); return nil }))
	require.NoError(t, l.WithConn(t.Context(), "k", func(ctx context.Context, _ *pgx.Conn) error { collect(ctx); return nil }))
	b.take(other, "k")
	waits := b.start(t.Context(), l, "k").queued(1)
	for range 5 {
		runtime.GC()
	}
	b.unlock(other, "k")
	waits.runs()
	collect(waits.ctx)
	waits.ok()
}

// The driver sends nothing under a context that is done, and leaves the
// connection in good health.
func TestTrap_11_UnlockInsideAnEndedContext(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	other := b.session()
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, l.WithTx(ctx, "k", pgx.TxOptions{}, func(context.Context, pgx.Tx) error { return nil }))
	require.True(t, b.free(other, "k"))
	outer := b.start(ctx, l, "outer").runs()
	err := l.WithConn(outer.ctx, "k", func(context.Context, *pgx.Conn) error { cancel(); return nil })
	assert.NoError(t, err, "once fn runs its context is its own business")
	require.True(t, b.free(other, "k"))
	outer.ok()
	require.True(t, b.free(other, "outer"))
}
