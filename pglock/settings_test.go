package pglock_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a role or a database says of timeouts is meant for its statements, not
// for a lock that is waited for or held.
func TestTimeoutsOfTheRoleEndNeitherWaitsNorHolds(t *testing.T) {
	b := newBed(t)
	other := b.session()
	timeouts := map[string]string{"lock_timeout": "150ms", "statement_timeout": "600ms",
		"idle_in_transaction_session_timeout": "300ms"}
	if version, err := b.db.Server.Version(t.Context()); err == nil && version >= 14 {
		timeouts["idle_session_timeout"] = "300ms"
	}
	for name, value := range timeouts {
		b.set(name, value)
	}
	l := b.locker(pglock.Options{Slice: time.Second})
	b.take(other, "k")
	waits := b.start(t.Context(), l, "k").queued(1)
	time.Sleep(1500 * time.Millisecond)
	waits.pending()
	b.unlock(other, "k")
	waits.runs()
	time.Sleep(800 * time.Millisecond) // idle
	assert.NoError(t, waits.ctx.Err())
	waits.ok()

	require.NoError(t, l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		time.Sleep(800 * time.Millisecond) // idle in a transaction
		_, err := tx.Exec(ctx, "select 1")
		return err
	}))
	// fn's own statements are the role's.
	err := l.WithConn(t.Context(), "k", func(ctx context.Context, conn *pgx.Conn) error {
		for name, value := range map[string]string{"lock_timeout": "150ms", "statement_timeout": "600ms"} {
			assert.Equal(t, value, ask[string](b, conn, "show "+name), name)
		}
		_, err := conn.Exec(ctx, "select pg_sleep(20)")
		return err
	})
	assert.ErrorContains(t, err, "57014")
	assert.NotErrorIs(t, err, processlock.ErrLost)
}

// On a connection that is the caller's, nothing is different afterwards.
func TestLockTxLeavesTheSessionAsItWas(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	conn, other := b.session(), b.session()
	b.exec(conn, "set lock_timeout = '7s'")
	settings := func(q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}) string {
		return ask[string](b, q, "select string_agg(name || '=' || setting, ' ' order by name) from pg_settings where name <> 'transaction_isolation'")
	}
	before := settings(conn)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.LockTx(t.Context(), tx, "free"))
	assert.Equal(t, before, settings(tx))
	b.take(other, "busy")
	// A wait that runs out leaves the transaction usable.
	b.refused(l.LockTx(t.Context(), tx, "busy", processlock.MaxWait(50*time.Millisecond)), processlock.ErrWaitTimeout)
	b.refused(l.LockTx(t.Context(), tx, "busy", processlock.IfAvailable), processlock.ErrUnavailable)
	assert.Equal(t, before, settings(tx))
	assert.Len(t, b.held("free"), 1)
	b.unlock(other, "busy")
	require.NoError(t, l.LockTx(t.Context(), tx, "busy", processlock.MaxWait(time.Minute)))
	assert.Equal(t, before, settings(tx))
	require.NoError(t, tx.Commit(t.Context()))
	assert.Equal(t, before, settings(conn))
	assert.Empty(t, b.held("free"))
	assert.Empty(t, b.held("busy"))
}

// A transaction that asks for what its own caller holds would wait for itself.
func TestLockTxChecksTheLineage(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	held := b.hold(l, "k")
	conn := b.session()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	b.refused(l.LockTx(held.ctx, tx, "k"), processlock.ErrDeadlock)
	require.NoError(t, l.LockTx(held.ctx, tx, "other"))
	require.NoError(t, tx.Rollback(t.Context()))
	held.ok()
}

// The Locker's connections are made as the pool's are.
func TestConnectionsAreMadeAsThePools(t *testing.T) {
	b := newBed(t)
	var before, after atomic.Int32
	pool := b.pool(b.db.DSN(), func(c *pgxpool.Config) {
		user := c.ConnConfig.User
		c.ConnConfig.User = "unknown"
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			before.Add(1)
			c.User = user // a password that is fetched anew comes this way
			return nil
		}
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			after.Add(1)
			_, err := conn.Exec(ctx, "set application_name = 'mine'")
			return err
		}
	})
	l := pglock.New(pool, pglock.Options{})
	b.closes(l)
	require.NoError(t, l.WithConn(t.Context(), "k", func(_ context.Context, conn *pgx.Conn) error {
		assert.Equal(t, "mine", ask[string](b, conn, "show application_name"))
		return nil
	}))
	assert.Positive(t, before.Load())
	assert.Equal(t, before.Load(), after.Load())
	assert.Zero(t, pool.Stat().TotalConns(), "none of the pool's own was used")
}

// A time that is meant for ever is the longest that the server knows.
func TestTimesWithoutEnd(t *testing.T) {
	const ever = time.Duration(math.MaxInt64)
	for name, opts := range map[string]pglock.Options{
		"Slice": {Slice: ever}, "Probe": {Probe: ever}, "Release": {Release: ever}, "Handoff": {Handoff: pglock.Handoff{For: ever}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			l := b.locker(opts)
			other := b.session()
			b.take(other, "k")
			waits := b.start(t.Context(), l, "k", processlock.MaxWait(ever)).queued(1)
			tx, err := b.session().Begin(t.Context())
			require.NoError(t, err)
			inTx := make(chan error, 1)
			go func() { inTx <- l.LockTx(t.Context(), tx, "k", processlock.MaxWait(ever)) }()
			b.eventually(func() bool { return len(b.waiting("k")) == 2 }, "LockTx does not wait")
			b.unlock(other, "k")
			waits.runs().ok()
			require.NoError(t, <-inTx)
			require.NoError(t, tx.Rollback(t.Context()))
			require.NoError(t, l.WithConn(t.Context(), "k", connNop))
		})
	}
}
