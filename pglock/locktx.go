package pglock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/jackc/pgx/v5"
)

// LockTx locks key in the caller's transaction, until that ends: nothing is to be
// released. Use it where the transaction is already there; [Locker.WithTx] is
// right at every isolation level.
//
// LockTx refuses transactions above READ COMMITTED, whose snapshot may be older
// than the lock: what the last holder committed would not be seen. What it locks
// by an earlier statement, it reads only by a later one.
//
// Of the options [processlock.Shared], [processlock.IfAvailable],
// [processlock.MaxWait] and [processlock.All] mean what they do elsewhere. Where
// ctx descends from a hold of the key on another session, waiting would never
// end, and that is [processlock.ErrDeadlock]; with [processlock.Reentrant]
// LockTx returns nil, and the key is held no longer than that hold lasts.
//
//   - ROLLBACK TO SAVEPOINT releases what was locked after the savepoint, and so
//     does the end of a nested [pgx.Tx] by Rollback. PostgreSQL tells nobody.
//   - A ctx that is done while LockTx waits makes pgx close the connection, with
//     the transaction. MaxWait doesn't: it waits in a savepoint, and leaves the
//     transaction as it was.
//   - lock_timeout and statement_timeout of the session end the wait and, except
//     with MaxWait, fail the transaction.
//   - It does not queue with this process's goroutines but at the server, and
//     only the server's own deadlock search sees it; a deadlock that it finds
//     fails the transaction, and is ErrDeadlock.
//
// Errors are [*processlock.AcquireError]; of several keys the ones before the
// error's are locked. LockTx panics if ctx or tx is nil.
func (l *Locker) LockTx(ctx context.Context, tx pgx.Tx, key any, opts ...processlock.Option) error {
	l.check(ctx, false)
	if tx == nil {
		misuse("nil pgx.Tx")
	}
	c := call{l: l}
	if err := c.read(ctx, key, opts); err != nil {
		return err
	}
	r := newRequest(l, ctx)
	for i, k := range c.req.Keys {
		t := txLock{tx: tx, conn: tx.Conn(), ref: lockRef{c.ids[i], c.req.Mode}, key: k}
		if err := t.take(ctx, r, &c); err != nil {
			if e := ended(ctx); e != nil {
				err = e
			}
			return refusal(k, t.ref.id, err)
		}
	}
	return nil
}

// txLock is a lock that belongs to a transaction of the caller's.
type txLock struct {
	tx   pgx.Tx
	conn *pgx.Conn
	ref  lockRef
	key  processlock.Key
}

func (t txLock) call(function string) string { return t.ref.call(function) + comment(t.key) }

var (
	errNoTx      = errors.New("pglock: the transaction is over, or has failed")
	errIsolation = errors.New("pglock: LockTx above READ COMMITTED would see what was there before the lock; use WithTx, or begin READ COMMITTED")
)

func (t txLock) take(ctx context.Context, r *request, c *call) error {
	l := c.l
	l.mu.Lock()
	closed := l.closing && !r.exempt()
	l.mu.Unlock()
	if closed {
		return processlock.ErrClosed
	}
	if t.conn == nil || t.conn.PgConn().TxStatus() != 'T' {
		return errNoTx
	}
	own := r.holding(t.ref.id)
	if own != nil && own.lease.own && own.conn() == t.conn {
		own = nil // one session never waits for itself
	}
	if own != nil && c.req.Reentrant && (own.ref.mode == processlock.ModeExclusive || t.ref.mode == processlock.ModeShared) {
		return nil
	}
	// Isolation, standby and the lock in one statement: the case decides first. It
	// is sent by tx, which knows whether it is over: its connection may be another's.
	var verdict, timeout string
	err := t.tx.QueryRow(ctx, "select case when pg_catalog.pg_is_in_recovery() then 'standby'"+
		" when pg_catalog.current_setting('transaction_isolation') not like 'read %' then 'isolation'"+
		" when "+t.call("pg_try_advisory_xact_lock")+" then 'locked' else 'busy' end, pg_catalog.current_setting('lock_timeout')", pgx.QueryExecModeSimpleProtocol).Scan(&verdict, &timeout)
	if err != nil {
		return err
	}
	switch verdict {
	case "locked":
		return nil
	case "standby":
		return ErrStandby
	case "isolation":
		return errIsolation
	}
	switch {
	case c.req.IfAvailable:
		return processlock.ErrUnavailable
	case own != nil:
		cycle := []processlock.Wait{own.wait()}
		return &deadlockError{&processlock.DeadlockError{Cycle: cycle}, map[processlock.Key]int64{own.key: own.ref.id}}
	case c.deadline.IsZero():
		err = t.run(ctx, "select "+t.call("pg_advisory_xact_lock"))
		return asDeadlock(err)
	}
	return t.takeWithin(ctx, time.Until(c.deadline), timeout)
}

// takeWithin waits for at most d, in a savepoint so that the transaction outlives
// the end of the wait. lock_timeout is set back to what it was: on success by
// hand, else with the savepoint.
func (t txLock) takeWithin(ctx context.Context, d time.Duration, timeout string) error {
	const savepoint = "pglock_wait"
	err := t.run(ctx, "savepoint "+savepoint+"; set local lock_timeout="+millis(d)+
		"; select "+t.call("pg_advisory_xact_lock")+
		"; select pg_catalog.set_config('lock_timeout', '"+strings.ReplaceAll(timeout, "'", "''")+"', true)"+
		"; release savepoint "+savepoint)
	if err == nil || t.conn.PgConn().TxStatus() != 'E' {
		return err
	}
	if undo := t.run(ctx, "rollback to savepoint "+savepoint+"; release savepoint "+savepoint); undo != nil {
		return errors.Join(err, undo)
	}
	if sqlState(err) == stateLockTimeout {
		return processlock.ErrWaitTimeout
	}
	return asDeadlock(err)
}

// asDeadlock lets a deadlock that the server found be known as one.
func asDeadlock(err error) error {
	if sqlState(err) == stateDeadlock {
		return fmt.Errorf("%w: %w", processlock.ErrDeadlock, err)
	}
	return err
}

// run sends a query of one or more statements as it is, so that no mode or cache
// of the caller's connection has a say.
func (t txLock) run(ctx context.Context, query string) error {
	_, err := t.conn.PgConn().Exec(ctx, query).ReadAll()
	return err
}
