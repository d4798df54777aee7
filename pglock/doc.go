// Package pglock runs a function alone among all processes that use one
// PostgreSQL database and name the same key:
//
//	locks := pglock.New(pool, pglock.Options{})
//	defer locks.Close(context.Background())
//	err := locks.WithLock(ctx, []any{"invoice", id}, func(ctx context.Context) error {
//		return settle(ctx, id)
//	})
//
// It is [processlock.WithLock] for a whole deployment. The arbiter is
// PostgreSQL, with its session-level advisory locks; the lock's id is
// [processlock.Key.ID], so replicas in other languages that derive it in the same
// way, and a psql session that locks the number, exclude these and are excluded.
// Any two keys that share an id (one in 2^64, or a [math/big.Int] that was chosen
// so) are one lock here.
//
// # Which call
//
// [Locker.WithLock] is the cheapest, and watches the lock. [Locker.WithConn] gives
// fn the session that holds it, so that fn's statements fail with it.
// [Locker.WithTx] gives fn a transaction on that session, and so fences what fn
// writes: a lost lock can't commit. [Locker.LockTx] locks in a transaction that
// is already there.
//
// What fn writes elsewhere is not fenced. The server gives a lock to the next
// process as soon as it knows that a session is gone, which may be before the one
// that held it knows: up to Options.Probe. Where that must not happen use
// WithTx.
//
// # Turns
//
// Goroutines of one process queue in it, in order of arrival; one of them, or
// one place for all of them, queues at the server. While goroutines here wait, the
// key passes from one to the next without the server, for at most Handoff.For,
// ten milliseconds; then other processes get their turn. With N processes one
// waits at most (N-1) x (Handoff.For + one fn). Each goroutine sees exclusion and
// order as in one process.
//
// # Waiting
//
// Waits in the server's queue are cut into slices, since a waiting statement has a
// snapshot, and CREATE INDEX CONCURRENTLY, REINDEX CONCURRENTLY and VACUUM wait
// for that, perhaps in the very fn that holds the lock:
//
//	                          Queue                     Poll
//	hand-over to a process    about a millisecond       tens of milliseconds
//	turns between processes   even, by the server       by chance
//	statements while waiting  2 a second                20 a second, on one
//	                                                    connection for all keys
//	lines in the server's log 2 a second, of 55P03      none
//	connections               one a key, to MaxConns-1  none
//	CREATE INDEX CONCURRENTLY delayed by a slice        not delayed
//	VACUUM                    held back for a slice     not held back
//
// A longer [Options].Slice makes fewer statements and longer delays; one above
// the server's deadlock_timeout can make the server abort the index build, or the
// wait, which then begins anew. The end of a slice is an error to the server, which
// writes it to its log. A wait ends when its context does; what is left of the
// slice goes on without it. No request to cancel a statement is ever sent, except
// by pgx for fn's own.
//
// A key that is busy while no connection is left to wait on is polled for, as
// with Poll; so it is while the server, or a pooler, has no room for another
// connection. A call that holds something already never waits for a connection,
// and is refused where it needs one to wait on and there is no room: a deadlock
// that it is on would not be found.
//
// # Loss
//
// A session that holds a lock for longer than about ten milliseconds is watched.
// When it ends (its process was killed, the server restarted or failed over, the
// network swallows everything) fn's context ends with cause
// [processlock.ErrLost], within Options.Probe, and the call returns ErrLost joined
// with fn's error. Nothing connects anew behind fn's back. A call that returned
// nil held its lock to the end as far as this machine had heard by then.
//
// # Deadlocks
//
// A cycle of waits within the process is refused at once. One that goes through
// several processes is found after two to three seconds, by what nested calls
// publish with further advisory locks while they wait (their ids are hashes like
// those of keys), and one call on it gets a [*processlock.DeadlockError]; in it,
// other processes' keys are known by id and their holders by the number of the
// server process that waits for them. A call that comes to a wait of its process
// which has begun is published when the slice of that ends, so a long
// [Options].Slice delays the search. Waits of [Locker.LockTx] and of other software
// are seen by the server's own search only.
//
// # Connections, poolers, standbys
//
// The [Locker] makes its own connections, with the settings of the pool that it was
// made from. On these, and nowhere else, it sets idle_session_timeout,
// idle_in_transaction_session_timeout and transaction_timeout to 0, and TCP
// keepalives. A pooler in transaction mode is [ErrPooler], a standby [ErrStandby].
// A full lock table and too many connections are errors that say what to raise.
package pglock
