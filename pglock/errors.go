package pglock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/jackc/pgx/v5/pgconn"
)

// Reasons of this package; those of processlock apply as they do there.
// [Locker.WithLock] wraps all of them in a [*processlock.AcquireError].
var (
	// ErrStandby is the reason when the server is a standby. Advisory locks
	// can be taken there, but exclude nobody who asks the primary.
	ErrStandby = errors.New("pglock: the server is a standby, whose locks don't reach the primary; connect with target_session_attrs=read-write")

	// ErrPooler is the reason when a pooler in transaction mode is in between:
	// a lock would belong to a session that serves somebody else next.
	ErrPooler = errors.New("pglock: a pooler in transaction mode gives each transaction another session; connect to the server itself, or to a pool in session mode")
)

var (
	errMaxKeys  = fmt.Errorf("%w: this process holds Options.MaxKeys keys already; raise it, and max_locks_per_transaction of the server with it", processlock.ErrUnavailable)
	errForeign  = errors.New("pglock: the key is held in Options.Local, but not by this Locker")
	errNoLend   = errors.New("pglock: Reentrant would run on a session that is not handed out; take the outer hold with WithConn or WithTx")
	errRevoked  = errors.New("pglock: the client that worked on the session was closed")
	errBusy     = errors.New("pglock: the connection was closed, or rows on it were left open")
	errConnLost = errors.New("pglock: the session ended")
	errPoolFull = errors.New("pglock: the pooler in between gives no further session; raise the size of its pool (PgBouncer: default_pool_size): it takes as many as Options.MaxConns, two to begin with, and one for each WithConn and WithTx at work")
)

// SQLSTATEs that decide something.
const (
	stateLockTimeout = "55P03"
	stateDeadlock    = "40P01"
	stateOutOfLocks  = "53200"
	stateTooManyConn = "53300"
)

// sqlState returns the SQLSTATE of err, or "".
func sqlState(err error) string {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return p.Code
	}
	return ""
}

// noSession reports whether err says that there is no room for one more session.
func noSession(err error) bool {
	return sqlState(err) == stateTooManyConn || errors.Is(err, errPoolFull)
}

// poolFull is the error of a deadline that a pooler which lets wait is taken to
// have missed for lack of a session.
func poolFull(err error) error { return fmt.Errorf("%w (%v)", errPoolFull, err) }

// late adds to the error of a deadline, which says no more than that a read
// failed, what to do about it.
func late(err error, within time.Duration) error {
	if !timedOut(err) {
		return err
	}
	return fmt.Errorf("pglock: no answer within %v; if the server is well, but far away or busy, raise Options.Probe, half of which is for an answer, and Options.Release: %w", within, err)
}

// explain adds to an error of the server what to do about it.
func explain(err error) error {
	switch sqlState(err) {
	case stateOutOfLocks:
		return fmt.Errorf("pglock: the server's lock table, which the whole cluster shares, is full; raise max_locks_per_transaction, or lower Options.MaxKeys: %w", err)
	case stateTooManyConn:
		return fmt.Errorf("pglock: the server takes no more connections; raise max_connections, or lower Options.MaxConns: %w", err)
	}
	return err
}

// refusal is what a call returns whose fn did not run. The id is how the server,
// and who looks there, knows the key.
func refusal(key processlock.Key, id int64, err error) error {
	if _, ok := err.(*deadlockError); !ok { // names what it is about itself
		err = &idError{explain(err), id}
	}
	return &processlock.AcquireError{Key: key, Err: err}
}

// idError is a reason with the id of the lock.
type idError struct {
	err error
	id  int64
}

func (e *idError) Error() string {
	return e.err.Error() + " (advisory lock " + strconv.FormatInt(e.id, 10) + ")"
}

func (e *idError) Unwrap() error { return e.err }

// lostError joins fn's error with [processlock.ErrLost] on one line.
type lostError struct {
	err error
	key processlock.Key
	id  int64
}

func (e *lostError) Error() string {
	return processlock.ErrLost.Error() + " (" + e.key.String() + ", advisory lock " + strconv.FormatInt(e.id, 10) + "): " +
		strings.ReplaceAll(e.err.Error(), "\n", "; ")
}
func (e *lostError) Unwrap() []error { return []error{e.err, processlock.ErrLost} }

// withLoss is what a call returns whose lock h was gone before fn returned err:
// where that is nil, ErrLost itself, as of every Locker.
func (h *hold) withLoss(err error) error {
	if err == nil {
		return processlock.ErrLost
	}
	return &lostError{err, h.key, h.ref.id}
}

// asker answers, by the rules of the core, whether a context is done.
var asker processlock.Coordinator

// ended returns why ctx is done, or nil.
func ended(ctx context.Context) error {
	// The core asks a context that it doesn't know for Done; see joint.
	switch c := ctx.(type) {
	case *hold:
		if c.Err() == nil {
			return ended(c.base)
		}
	case *request:
		if c.Err() == nil {
			return ended(c.base)
		}
	}
	if ctx.Err() == nil {
		select {
		case <-ctx.Done(): // a hand-written context may close it and leave Err nil
		default:
			return nil
		}
	}
	err := asker.WithLock(ctx, 0, func(context.Context) error { return nil }, processlock.Shared)
	return reason(err)
}

// reason takes the reason out of an AcquireError.
func reason(err error) error {
	if a, ok := err.(*processlock.AcquireError); ok {
		return a.Err
	}
	return err
}

// misuse panics: the call itself is wrong, whatever the state of the lock.
func misuse(what string) { panic("processlock: " + what) }
