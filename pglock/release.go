package pglock

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// timedOut reports whether err is that of a deadline, after which a read may go
// on where it was.
func timedOut(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

var (
	errLeftOpen = errors.New("pglock: a session could not be brought to rest and was closed")
	errRowsOpen = errors.New("pglock: rolled back, since rows were left open; close them, or read them to the end")
)

// giveUp releases the one key that the session holds, and reports whether it
// held it. After fn had the session, what it left open is ended first; if that
// can't be, the session is.
func (s *session) giveUp(o *op) (ok bool, err error) {
	pc := s.conn.PgConn()
	if pc.IsClosed() {
		// By pgx, since fn's context ended. It is on its way to end what fn has
		// running, and until then the lock may stay.
		s.awaitCleanup(o.within)
		return false, errConnLost
	}
	if s.kind == kindOwn {
		s.mute.Store(true)
	}
	query, within := o.release.ref.release(), o.within
	commit := o.release.commit
	if pc.IsBusy() {
		if commit != "" {
			o.release.commitErr = errRowsOpen
		}
		ok := !hungUp(*s.raw.Load())
		s.fail(errLeftOpen)
		return ok, nil
	}
	switch {
	case commit != "":
		query, within = commit+"; "+query, max(within, commitWithin)
	case pc.TxStatus() != 'I':
		query = rollback + "; " + query
	}
	replies, err := s.roundTrip(within, query)
	if err != nil {
		if commit != "" {
			o.release.commitErr = fmt.Errorf("pglock: it is not known whether the commit was done: %w", err)
		}
		return false, err
	}
	a := replies[0]
	if commit != "" {
		switch {
		case len(a.tags) == 0 && a.err != nil: // refused, and with it the rest of the query
			o.release.commitErr = a.err
			if replies, err = s.roundTrip(o.within, rollback+"; "+o.release.ref.release()); err != nil {
				return false, err
			}
			a = replies[0]
		case a.tags[0] == "ROLLBACK":
			o.release.commitErr = pgx.ErrTxCommitRollback
		}
	}
	if a.err != nil || pc.TxStatus() != 'I' {
		// The session stood to this moment, so the lock did.
		s.fail(errLeftOpen)
		return true, nil
	}
	return a.last() == "t", nil
}

// awaitCleanup waits until pgx, which closed the connection, is through with it.
func (s *session) awaitCleanup(within time.Duration) {
	if !s.conn.IsClosed() {
		return
	}
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-s.conn.PgConn().CleanupDone():
	case <-t.C:
	}
}

// release gives t up and calls done, without the mutex, with whether it was held
// till then. Called under mu.
func (s *session) release(t *tenure, done func(ok bool)) {
	l := s.l
	s.letGo(t)
	if t.own {
		s.lent = false
	}
	if s.dead || t.lost {
		go func() {
			if t.own {
				s.awaitCleanup(l.opts.Release)
				s.discard()
			}
			done(false)
		}()
		return
	}
	o := &op{within: l.opts.Release}
	if s.kind == kindHub {
		o.unlock, o.unlocks = t.ref, true
	} else {
		o.release = t
	}
	o.done = func(r opResult) {
		if r.err != nil || !r.unlocked {
			l.warn("a lock was gone when it was to be released", "id", t.ref.id, "error", r.err)
		}
		if s.kind != kindHub {
			l.mu.Lock()
			l.putBack(s)
			l.mu.Unlock()
		}
		done(r.unlocked)
	}
	s.submit(o)
}

// clean makes sure that s, which may hold what a failed statement took, holds
// nothing, and puts it back.
func (s *session) clean() {
	o := &op{within: s.l.opts.Release}
	if s.inTransaction() {
		o.queries = append(o.queries, rollback)
	}
	o.queries = append(o.queries, "select "+unlockAll)
	r := s.do(o)
	for _, a := range r.replies {
		if a.err != nil {
			s.fail(a.err)
		}
	}
	s.l.mu.Lock()
	s.l.putBack(s)
	s.l.mu.Unlock()
}

func (s *session) inTransaction() bool { return s.conn != nil && s.conn.PgConn().TxStatus() != 'I' }
