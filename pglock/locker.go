package pglock

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Locker is a [processlock.Locker] for all processes that use one database: the
// same call and the same keys, with PostgreSQL's advisory locks as arbiter. [New]
// makes one. All its methods may be called at any time from any goroutine.
//
// A Locker that was never used has no connection and no goroutine. From its
// first call on it has one connection for whatever needs no waiting, until
// [Locker.Close], and up to Options.MaxConns.
type Locker struct {
	opts     Options
	config   *pgxpool.Config
	target   string // of config: which database
	local    *processlock.Coordinator
	ownLocal bool

	namespace string // its text as a part of keys

	mu        sync.Mutex
	entries   map[int64]*entry
	hub       *session
	idle      []*session         // waiting sessions and lent ones, each clean
	open      int                // sessions but the hub, idle or not
	keys      int                // locks that are held on the server, or asked for
	crowd     []*entry           // that wait for keys to fall below MaxKeys, in order
	starving  map[*wait]struct{} // likewise, those of WithConn's
	poor      map[*wait]struct{} // that poll since there is no session to wait on
	pooled    bool               // there is a pooler, which was told from one in transaction mode
	fullUntil time.Time          // see full

	// inline is set while a caller who is about to wait holds mu: the first
	// session that has to be run then is his to run.
	inline **session

	closing bool
	empty   bool          // closing, and no entry was left at some time
	drained chan struct{} // closed then
	hangups sync.WaitGroup
}

// New returns a Locker for the database that pool connects to. It copies the
// pool's configuration, with its TLS settings and passwords, and never takes a
// connection from the pool: holders of locks and the work that they do can't
// starve each other, and the pool may be closed. Nothing is connected yet. Of
// the pool's hooks BeforeConnect and AfterConnect are called, as for a connection
// of the pool's; PrepareConn, AfterRelease and BeforeClose are not.
//
// New panics if pool is nil or opts make no sense.
func New(pool *pgxpool.Pool, opts Options) *Locker {
	if pool == nil {
		misuse("nil *pgxpool.Pool")
	}
	opts.complete()
	l := &Locker{
		opts:     opts,
		config:   pool.Config(),
		local:    opts.Local,
		entries:  make(map[int64]*entry),
		starving: make(map[*wait]struct{}),
		poor:     make(map[*wait]struct{}),
		drained:  make(chan struct{}),
	}
	if l.local == nil {
		l.local, l.ownLocal = processlock.New(processlock.Options{}), true
	}
	if ns := opts.Namespace; ns != "" {
		l.namespace = processlock.MustKey(ns).Canonical()
	}
	c := l.config.ConnConfig
	l.target = c.Host + "\x00" + strconv.Itoa(int(c.Port)) + "\x00" + c.Database
	return l
}

// WithLock runs fn alone among all callers, in all processes that use the
// database, that name the same key, and returns what fn returns. It keeps what
// [processlock.WithLock] promises, with these differences:
//
//   - Order of arrival holds within a process. Between processes turns are
//     even, and one waits at most (N-1) x (Handoff.For + one fn), but their
//     order is the server's.
//   - A deadlock within the process is refused at once, one between processes
//     after two to three seconds.
//   - The lock can be lost while fn runs, with the session that holds it. Then
//     fn's context ends with cause [processlock.ErrLost] within Options.Probe,
//     and WithLock returns ErrLost joined with fn's error. A turn that had ended
//     by the time the loss reached this machine returns nil: where the key passes
//     from goroutine to goroutine ([Handoff]) the server isn't asked, and
//     Handoff.Max 1 asks it every time.
//   - An error of the server or the network is the reason in an
//     [*processlock.AcquireError].
//
// fn is given no session; its own work goes where it likes, but a transaction in
// it must begin and commit inside fn. The key is released on a context of its
// own, bounded by Options.Release, whatever has become of the caller's.
func (l *Locker) WithLock(ctx context.Context, key any, fn func(context.Context) error, opts ...processlock.Option) error {
	l.check(ctx, fn == nil)
	c := call{l: l, fn: funcAddr(fn), run: func(ctx context.Context, _ *hold) error { return fn(ctx) }}
	return c.start(ctx, key, opts)
}

// WithConn is [Locker.WithLock] for an fn that works on the session that holds
// the lock, so that its statements fail when the lock is gone. The connection
// is fn's until it returns, and must not be kept, closed or used by others; it
// is not one of the pool's. What fn sets on it may still be set when another
// WithConn or WithTx gets it. A transaction that fn leaves open is rolled back.
// Advisory locks that fn takes itself are released with the key's.
//
// Nobody else reads from the connection, so a loss shows at fn's next statement,
// or when the socket is seen to be closed: within milliseconds if the server
// says so, else by TCP keepalives within Options.Probe or so. If fn's statement is
// canceled by its context, pgx closes the connection and the lock is lost.
//
// With [processlock.All] the session is that of the last key in canonical order;
// the others are held as by WithLock.
// [processlock.Reentrant] works under a hold of WithConn, and then fn is given
// the same connection.
func (l *Locker) WithConn(ctx context.Context, key any, fn func(context.Context, *pgx.Conn) error, opts ...processlock.Option) error {
	l.check(ctx, fn == nil)
	c := call{l: l, own: true, fn: funcAddr(fn), run: func(ctx context.Context, h *hold) error {
		return fn(ctx, h.conn())
	}}
	return c.start(ctx, key, opts)
}

func (l *Locker) check(ctx context.Context, nilFn bool) {
	if l == nil {
		misuse("nil *Locker")
	}
	if l.config == nil {
		misuse("Locker that New has not made")
	}
	if ctx == nil {
		misuse("nil context")
	}
	if nilFn {
		misuse("nil fn")
	}
}
