package pglock_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The server goes away in each of the states that a call can be in, and comes
// back. Holders are told; nobody hangs; afterwards the same Locker works.
func TestServerIsKilledAndComesBack(t *testing.T) {
	b := ownBed(t, nil)
	l := b.locker(pglock.Options{})
	second := b.locker(pglock.Options{})
	for _, end := range []func(){func() { require.NoError(t, b.db.Server.Kill9()) }, b.db.Server.Stop} {
		held := b.hold(l, "k")
		conn := b.startWith(t.Context(), "conn", func(ctx context.Context, fn func(context.Context) error) error {
			return l.WithConn(ctx, "conn", func(ctx context.Context, _ *pgx.Conn) error { return fn(ctx) })
		}).runs()
		waits := b.start(t.Context(), second, "k").queued(1)
		time.Sleep(young)
		begin := time.Now()
		end()
		took := held.loses(begin, patience/2) // an orderly stop may take its time
		t.Logf("told after %v", took)
		conn.loses(begin, patience/2)
		held.let()
		assert.ErrorIs(t, held.returns(), processlock.ErrLost)
		conn.let()
		assert.ErrorIs(t, conn.returns(), processlock.ErrLost)
		b.refused(l.WithLock(t.Context(), "k", nop))

		require.NoError(t, b.db.Server.Start())
		// The wait has failed with the server, or it has outlived it.
		if err := waits.let().returns(); err != nil {
			b.refused(err)
		}
		require.NoError(t, l.WithLock(t.Context(), "k", nop))
		require.NoError(t, second.WithConn(t.Context(), "k", connNop))
	}
}

// pg_terminate_backend at random moments: in waits, holds and releases.
func TestSessionsAreKilledAtRandom(t *testing.T) {
	b := newBed(t)
	lockers := []*pglock.Locker{b.locker(pglock.Options{Slice: 50 * time.Millisecond}), b.locker(pglock.Options{})}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	var ran, lost, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		l := lockers[i%2]
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				lock := ways[[]string{"WithLock", "WithConn", "WithTx"}[n%3]]
				began := false
				err := lock(l, ctx, n%4, func(context.Context) error {
					began = true
					time.Sleep(time.Millisecond)
					return nil
				})
				var acquire *processlock.AcquireError
				switch {
				case err == nil:
					ran.Add(1)
				case errors.As(err, &acquire):
					refused.Add(1)
					assert.False(t, began, "an AcquireError says that fn did not run: %v", err)
				default:
					lost.Add(1)
					assert.True(t, began, "%v", err)
					assert.ErrorIs(t, err, processlock.ErrLost)
				}
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
			if sessions := b.sessions(); len(sessions) > 0 {
				_ = b.db.Terminate(context.Background(), sessions[int(ran.Load())%len(sessions)].PID)
			}
		}
	})
	wg.Wait()
	t.Logf("%d ran, %d lost, %d refused", ran.Load(), lost.Load(), refused.Load())
	assert.Positive(t, ran.Load())
	assert.Positive(t, lost.Load())
	for _, l := range lockers {
		require.NoError(t, l.WithLock(t.Context(), "after", nop))
	}
}

// No connection is to be had: calls are told what to raise, and once there is
// room they are served.
func TestMaxConnectionsIsReached(t *testing.T) {
	b := ownBed(t, pgtest.Settings{"max_connections": "8", "superuser_reserved_connections": "3", "max_wal_senders": "0"})
	require.NoError(t, b.db.Server.Exec(t.Context(), "create role app login"))
	require.NoError(t, b.db.Server.Exec(t.Context(), "grant all on database "+b.db.Name+" to app"))
	app := func(c *pgx.ConnConfig) { c.User = "app" }
	fill := func() (taken []*pgx.Conn) {
		for {
			config, err := pgx.ParseConfig(b.db.DSN())
			require.NoError(t, err)
			app(config)
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				require.ErrorContains(t, err, "53300")
				return taken
			}
			b.hand = append(b.hand, int(conn.PgConn().PID()))
			taken = append(taken, conn)
		}
	}
	l := b.lockerAs("app", pglock.Options{})
	taken := fill()
	for _, lock := range ways {
		e := b.refused(lock(l, t.Context(), "k", nop))
		assert.ErrorContains(t, e, "max_connections")
	}
	require.NoError(t, taken[0].Close(t.Context()))
	b.eventually(func() bool { return l.WithLock(t.Context(), "k", nop) == nil }, "there is room again")

	// Who waits for others needs no connection: he asks through the hub.
	taken = append(taken[1:], fill()...)
	b.take(taken[0], "busy")
	refusals := func() int { return strings.Count(b.db.Server.Log(), "remaining connection slots") }
	before := refusals()
	waits := b.start(t.Context(), l, "busy")
	b.eventually(func() bool { waits.pending(); return refusals() > before }, "no session to wait on is asked for")
	b.unlock(taken[0], "busy")
	waits.runs().ok()

	// Nor does he fail beside one who needs it, to be found on a deadlock or to
	// work on, and once there is room he has one.
	b.take(taken[0], "busy")
	waits = b.start(t.Context(), l, "busy")
	outer := b.hold(l, "outer")
	for _, lock := range ways {
		err := b.bounded(func() error { return lock(l, outer.ctx, "busy", nop) })
		assert.ErrorContains(t, b.refused(err), "max_connections")
	}
	assert.ErrorContains(t, b.refused(l.WithConn(t.Context(), "free", connNop)), "max_connections")
	require.NoError(t, l.WithLock(outer.ctx, "free", nop))
	waits.pending()
	require.NoError(t, taken[1].Close(t.Context()))
	waits.queued(1)
	b.unlock(taken[0], "busy")
	waits.runs().ok()
	outer.ok()
	for _, conn := range taken {
		_ = conn.Close(t.Context())
	}
}

// Shared holders whose time is up hold on through the hub, which can't ask for
// those who come next, and there is no session that can. They come in beside them.
func TestSharedTurnsWithoutASession(t *testing.T) {
	b := ownBed(t, pgtest.Settings{"max_connections": "8", "superuser_reserved_connections": "3", "max_wal_senders": "0"})
	require.NoError(t, b.db.Server.Exec(t.Context(), "create role app login connection limit 1"))
	l := b.lockerAs("app", pglock.Options{Handoff: pglock.Handoff{For: time.Nanosecond}})
	first := b.hold(l, "k", processlock.Shared)
	second := b.start(t.Context(), l, "k", processlock.Shared)
	b.eventually(func() bool { return strings.Contains(b.db.Server.Log(), "too many connections for role") }, "no session is asked for")
	second.runs()
	require.NoError(t, first.ctx.Err())
	third := b.hold(l, "k", processlock.Shared)
	third.ok()
	second.ok()
	first.ok()
}

func TestManyKeysOnTwoConnections(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{MaxConns: 2})
	agent := b.agent(pglock.Options{})
	var busy, waits []*call
	for i := range 20 {
		busy = append(busy, agent.hold("busy"+strconv.Itoa(i)))
		waits = append(waits, b.start(t.Context(), l, "busy"+strconv.Itoa(i)))
	}
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() { assert.NoError(t, l.WithLock(t.Context(), i, nop)) })
	}
	wg.Wait()
	assert.LessOrEqual(t, len(b.sessions()), 2+4, "two, and the agent's")
	for i := range busy {
		waits[i].pending()
		busy[i].ok()
		waits[i].runs().ok()
	}
}

func TestThousandWaitersUseOneConnection(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	other := b.session()
	b.take(other, "k")
	var wg sync.WaitGroup
	var order []int
	for i := range 1000 {
		wg.Go(func() {
			assert.NoError(t, l.WithLock(t.Context(), "k", func(context.Context) error { order = append(order, i); return nil }))
		})
	}
	b.eventually(func() bool { return len(b.waiting("k")) == 1 }, "nobody waits")
	assert.LessOrEqual(t, len(b.sessions()), 2, "one waits, and the hub")
	b.unlock(other, "k")
	begin := time.Now()
	wg.Wait()
	t.Logf("1000 turns in %v", time.Since(begin))
	assert.Len(t, order, 1000)
}

// Who works on a session of his own, inside another fn, has it, and keeps nobody
// beside him from going without.
func TestNestedSessionBesideOneThatHasNone(t *testing.T) {
	b := ownBed(t, pgtest.Settings{"max_connections": "8", "superuser_reserved_connections": "3", "max_wal_senders": "0"})
	require.NoError(t, b.db.Server.Exec(t.Context(), "create role app login connection limit 2"))
	l := b.lockerAs("app", pglock.Options{})
	outer, other := b.hold(l, "outer"), b.session()
	b.take(other, "k")
	own := b.startWith(outer.ctx, "k", func(ctx context.Context, fn func(context.Context) error) error {
		return l.WithConn(ctx, "k", func(ctx context.Context, _ *pgx.Conn) error { return fn(ctx) }, processlock.Shared)
	}).queued(1)
	refusals := func() int { return strings.Count(b.db.Server.Log(), "too many connections for role") }
	beside := b.start(t.Context(), l, "k", processlock.Shared)
	b.eventually(func() bool { beside.pending(); return refusals() > 0 }, "no session is asked for")
	begin, before := time.Now(), refusals()
	const tries = 50 // time enough to ask again
	for range tries {
		assert.ErrorContains(t, b.refused(l.WithConn(t.Context(), "free", connNop)), "max_connections")
	}
	often := int(time.Since(begin)/time.Second) + 2
	assert.LessOrEqual(t, refusals()-before-tries, often, "sessions are asked for without a pause")
	own.pending()
	b.unlock(other, "k")
	own.runs().ok()
	beside.runs().ok()
	outer.ok()
}

// A session that is idle makes way where there is room for no more.
func TestIdleSessionMakesWay(t *testing.T) {
	b := ownBed(t, pgtest.Settings{"max_connections": "8", "superuser_reserved_connections": "3", "max_wal_senders": "0"})
	require.NoError(t, b.db.Server.Exec(t.Context(), "create role app login connection limit 2"))
	l := b.lockerAs("app", pglock.Options{})
	outer, other := b.hold(l, "outer"), b.session()
	for range 3 {
		require.NoError(t, l.WithConn(t.Context(), "own", connNop))
		b.take(other, "k")
		inner := b.start(outer.ctx, l, "k").queued(1)
		b.unlock(other, "k")
		inner.runs().ok()
	}
	outer.ok()
}

// Refusals of a session are no sessions that have ended: who polled for long waits
// on when the one that he has got at last ends.
func TestWaitOutlivesItsSessionAfterRefusals(t *testing.T) {
	b := ownBed(t, pgtest.Settings{"max_connections": "8", "superuser_reserved_connections": "3", "max_wal_senders": "0"})
	require.NoError(t, b.db.Server.Exec(t.Context(), "create role app login connection limit 1"))
	l := b.lockerAs("app", pglock.Options{Slice: patience})
	other := b.session()
	b.take(other, "k")
	waits := b.start(t.Context(), l, "k")
	b.eventually(func() bool {
		return strings.Count(b.db.Server.Log(), "too many connections for role") >= 3
	}, "no session is asked for again and again")
	require.NoError(t, b.db.Server.Exec(t.Context(), "alter role app connection limit 5"))
	waits.queued(1)
	b.terminate(b.waiting("k")...)
	waits.queued(1)
	b.unlock(other, "k")
	waits.runs().ok()
}
