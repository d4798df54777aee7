package pglock

import (
	"context"
	"errors"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/jackc/pgx/v5"
)

// commitWithin is how long a commit may take, if Options.Release is less: what is
// cut off may have been done.
const commitWithin = time.Minute

// WithTx is [Locker.WithConn] for an fn that works in a transaction, which is
// begun after the lock was granted and committed before it is released, so that
// the next holder sees what this one did, at every isolation level. Lock and
// transaction are on one session: if the lock is lost, so is the transaction.
//
// If fn returns nil the transaction is committed; the commit is part of the turn
// and goes on when ctx is done meanwhile. An error of the commit is WithTx's, as
// it is; [pgx.ErrTxCommitRollback] if fn left the transaction failed. If fn
// returns an error or doesn't return, the transaction is rolled back. fn may
// commit or roll back itself. An error of BEGIN means that fn did not run, and is
// the reason in an [*processlock.AcquireError].
//
// With [processlock.All], a transaction is not committed if one of the other keys
// was lost before. With [processlock.Reentrant] under a hold of WithTx, fn works
// in a savepoint of the outer transaction, and tx is not looked at.
func (l *Locker) WithTx(ctx context.Context, key any, tx pgx.TxOptions, fn func(context.Context, pgx.Tx) error, opts ...processlock.Option) error {
	l.check(ctx, fn == nil)
	c := call{l: l, own: true, begin: begin(tx), fn: funcAddr(fn)}
	c.run = func(ctx context.Context, h *hold) error {
		if h.call != &c {
			return h.nest(ctx, tx, fn)
		}
		return h.transact(ctx, tx, fn)
	}
	return c.start(ctx, key, opts)
}

// begin is the statement that pgx would use.
func begin(o pgx.TxOptions) string {
	if o.BeginQuery != "" {
		return o.BeginQuery
	}
	q := "begin"
	if o.IsoLevel != "" {
		q += " isolation level " + string(o.IsoLevel)
	}
	for _, mode := range []string{string(o.AccessMode), string(o.DeferrableMode)} {
		if mode != "" {
			q += " " + mode
		}
	}
	return q
}

// transact runs fn in the transaction that was begun with the lock, and has
// release commit it.
func (h *hold) transact(ctx context.Context, o pgx.TxOptions, fn func(context.Context, pgx.Tx) error) error {
	t := &lockedTx{Tx: h.lease.sess.live, s: h.lease.sess, query: "commit"}
	if o.CommitQuery != "" {
		t.query = o.CommitQuery
	}
	h.tx = t
	defer t.end() // one that fn has kept is of no use after it
	if err := fn(ctx, t); err != nil || t.over {
		return err
	}
	for outer := h.outer; outer != nil && outer.call == h.call; outer = outer.outer {
		if outer.isLost() {
			return errors.New("pglock: rolled back, since a lock was lost")
		}
	}
	h.lease.commit = t.query
	return nil
}

// nest runs fn in a transaction of the session that h, which another call took,
// holds the lock on.
func (h *hold) nest(ctx context.Context, o pgx.TxOptions, fn func(context.Context, pgx.Tx) error) error {
	within := func(tx pgx.Tx) error { return fn(ctx, tx) }
	if h.tx != nil {
		return pgx.BeginFunc(ctx, h.tx, within)
	}
	return pgx.BeginTxFunc(ctx, h.conn(), o, within)
}

// lockedTx is the transaction of a session that holds a lock. What isn't about
// its end is done by a transaction of pgx that stands for the session's whatever
// there is; afterwards by one that is over.
type lockedTx struct {
	pgx.Tx
	s     *session
	query string // that commits
	over  bool
}

func (t *lockedTx) end() { t.over, t.Tx = true, t.s.ended }

// Commit commits, before the lock is released.
func (t *lockedTx) Commit(ctx context.Context) error {
	if t.over {
		return pgx.ErrTxClosed
	}
	tag, err := t.s.conn.Exec(ctx, t.query)
	t.end()
	if err == nil && tag.String() == "ROLLBACK" {
		err = pgx.ErrTxCommitRollback
	}
	return err
}

// Rollback rolls back, before the lock is released.
func (t *lockedTx) Rollback(ctx context.Context) error {
	if t.over {
		return pgx.ErrTxClosed
	}
	_, err := t.s.conn.Exec(ctx, rollback)
	t.end()
	return err
}

// prepareTx makes the two transactions of pgx that lockedTx stands on. Neither
// has to do with a transaction of the server's: pgx only counts savepoints there.
func (s *session) prepareTx() (err error) {
	nothing := pgx.TxOptions{BeginQuery: "select", CommitQuery: "select"}
	if s.live, err = s.conn.BeginTx(background, nothing); err != nil {
		return err
	}
	if s.ended, err = s.conn.BeginTx(background, nothing); err != nil {
		return err
	}
	return s.ended.Commit(background)
}
