package pglock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience bounds waits for what must happen, on a machine that is busy with
// other things. What must happen soon is measured, and has bounds of its own.
const patience = 30 * time.Second

// bed is what a test works with: a database of its own on a real server, and
// whoever locks there. At the end of the test nothing may be left of them.
type bed struct {
	*testing.T
	db   *pgtest.Database
	hand []int // sessions that lock by hand
}

// newBed makes a bed on the shared server, beside other tests.
func newBed(t *testing.T) *bed {
	t.Helper()
	t.Parallel()
	server, err := shared()
	require.NoError(t, err)
	return bedOn(t, server)
}

// ownBed makes a bed on a server of its own.
func ownBed(t *testing.T, settings pgtest.Settings) *bed {
	t.Helper()
	t.Parallel()
	server, err := pgtest.Start(settings)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	return bedOn(t, server)
}

func bedOn(t *testing.T, server *pgtest.Server) *bed {
	t.Helper()
	db, err := server.Create(t.Context())
	require.NoError(t, err)
	b := &bed{T: t, db: db}
	t.Cleanup(func() {
		b.eventually(func() bool { return len(b.locks()) == 0 }, "an advisory lock is left")
		assert.NoError(t, db.Drop(context.Background()))
	})
	return b
}

// set gives every session that starts from now on a setting, as an owner of the
// database would.
func (b *bed) set(name, value string) {
	b.Helper()
	require.NoError(b, b.db.Server.Exec(b.Context(), fmt.Sprintf("alter database %s set %s = '%s'", b.db.Name, name, value)))
}

// pool returns a pool of the caller's, as an application has one.
func (b *bed) pool(dsn string, edit ...func(*pgxpool.Config)) *pgxpool.Pool {
	b.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	require.NoError(b, err)
	for _, e := range edit {
		e(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	require.NoError(b, err)
	b.Cleanup(pool.Close)
	return pool
}

// locker returns a Locker, which knows as little of others as if they were in
// another process.
func (b *bed) locker(opts pglock.Options) *pglock.Locker {
	b.Helper()
	return b.lockerAt(b.db.Server.Addr(), opts)
}

// lockerAt is locker by way of a proxy or a pooler.
func (b *bed) lockerAt(addr string, opts pglock.Options) *pglock.Locker {
	b.Helper()
	l := pglock.New(b.pool(b.db.DSNAt(addr)), opts)
	b.closes(l)
	return l
}

// closes closes a Locker at the end of the test, when nothing may be held any
// more.
func (b *bed) closes(l *pglock.Locker) {
	b.Cleanup(func() {
		b.nothingHeld()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		assert.NoError(b, l.Close(ctx), "Close")
	})
}

// proxy starts a proxy in front of the server.
func (b *bed) proxy() *pgtest.Proxy {
	b.Helper()
	p, err := pgtest.NewProxy(b.db.Server.Addr())
	require.NoError(b, err)
	b.Cleanup(func() { assert.NoError(b, p.Close()) })
	return p
}

// session returns a session by hand.
func (b *bed) session() *pgx.Conn {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), b.db.DSN())
	require.NoError(b, err)
	b.hand = append(b.hand, int(conn.PgConn().PID()))
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// exec runs SQL on a session by hand.
func (b *bed) exec(conn *pgx.Conn, sql string, args ...any) {
	b.Helper()
	_, err := conn.Exec(b.Context(), sql, args...)
	require.NoError(b, err, sql)
}

// ask returns the value of a query of one value.
func ask[T any](b *bed, conn interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, sql string, args ...any) T {
	b.Helper()
	var value T
	require.NoError(b, conn.QueryRow(b.Context(), sql, args...).Scan(&value), sql)
	return value
}

// try reports whether the session got the lock of key, by hand and at once.
func (b *bed) try(conn *pgx.Conn, key any) bool {
	b.Helper()
	return ask[bool](b, conn, "select pg_try_advisory_lock($1)", idOf(key))
}

// unlock gives back what try got.
func (b *bed) unlock(conn *pgx.Conn, key any) {
	b.Helper()
	require.True(b, ask[bool](b, conn, "select pg_advisory_unlock($1)", idOf(key)))
}

// take locks key by hand.
func (b *bed) take(conn *pgx.Conn, key any) {
	b.Helper()
	b.exec(conn, "select pg_advisory_lock($1)", idOf(key))
}

// free reports whether another session can have key right now.
func (b *bed) free(conn *pgx.Conn, key any) bool {
	b.Helper()
	if !b.try(conn, key) {
		return false
	}
	b.unlock(conn, key)
	return true
}

// idOf returns the id of a key without a namespace.
func idOf(key any) int64 { return processlock.MustKey(key).ID() }

// locks returns the advisory locks of the database.
func (b *bed) locks() []pgtest.Lock {
	locks, err := b.db.Locks(context.Background())
	require.NoError(b, err)
	return locks
}

// held returns the sessions that hold key.
func (b *bed) held(key any) []int {
	pids, err := b.db.Held(context.Background(), idOf(key))
	require.NoError(b, err)
	return pids
}

// waiting returns the sessions that wait for key in the server's queue.
func (b *bed) waiting(key any) []int {
	pids, err := b.db.Waiting(context.Background(), idOf(key))
	require.NoError(b, err)
	return pids
}

// sessions returns the sessions of Lockers.
func (b *bed) sessions() []pgtest.Session {
	all, err := b.db.Sessions(context.Background())
	require.NoError(b, err)
	return slices.DeleteFunc(all, func(s pgtest.Session) bool { return slices.Contains(b.hand, s.PID) })
}

// terminate ends sessions as an administrator would.
func (b *bed) terminate(pids ...int) {
	b.Helper()
	require.NotEmpty(b, pids, "no session to end")
	require.NoError(b, b.db.Terminate(b.Context(), pids...))
}

// nothingHeld fails the test if a Locker's session holds anything for long.
func (b *bed) nothingHeld() {
	b.Helper()
	b.eventually(func() bool {
		return !slices.ContainsFunc(b.locks(), func(l pgtest.Lock) bool { return !slices.Contains(b.hand, l.PID) })
	}, "no call is left, but a lock is")
}

// eventually fails the test if what does not become true.
func (b *bed) eventually(what func() bool, otherwise string) {
	b.Helper()
	rest := time.Millisecond
	for end := time.Now().Add(patience); !what(); time.Sleep(rest) {
		if time.Now().After(end) {
			require.Fail(b, otherwise, "locks: %+v\nsessions: %+v", b.locks(), b.sessions())
		}
		rest = min(2*rest, 20*time.Millisecond)
	}
}

// lockerAs is locker for another role than the superuser.
func (b *bed) lockerAs(role string, opts pglock.Options) *pglock.Locker {
	b.Helper()
	l := pglock.New(b.pool(b.db.DSN(), func(c *pgxpool.Config) { c.ConnConfig.User = role }), opts)
	b.closes(l)
	return l
}
