package pglock

import (
	"slices"
	"time"

	"github.com/dbx-tools/processlock"
)

// entry is what this process has to do with one lock id: the place in the
// server's queue, or the lock, and the goroutines that it serves. It exists
// while there is any of these.
//
// Everything here is guarded by Locker.mu. The queue of the goroutines is the
// core's; only those that it has let in (an exclusive one, or shared ones) have
// a claim, so the server wait is nobody's in particular: a claim that leaves is
// followed by the next, who finds the wait as it is.
type entry struct {
	l  *Locker
	id int64

	pending   int // requests that may yet want the lock, claims included
	claims    []*claim
	lease     *tenure
	old       []*tenure // shared ones whose time is up, while they are in use
	acquiring bool      // somebody asks the server for the lock, or gives it back
	waiting   bool      // acquiring takes long: the lock is another process's
	crowdOut  bool      // in Locker.crowd
	nested    map[*request]struct{}
	waits     []*wait
	own       int       // waits of, and locks on, sessions of WithConn's
	lent      []*tenure // the locks on them
}

// tenure is one hold of the lock on the server, through which any number of
// turns of this process may go.
type tenure struct {
	e     *entry
	sess  *session
	ref   lockRef
	since time.Time
	turns int
	users []*hold
	own   bool          // sess is lent to its one user
	over  chan struct{} // own: closed when that is done
	lost  bool

	// WithTx: what commits before the release, and what came of it.
	commit    string
	commitErr error
}

// enter counts r among the requests for its id, unless the Locker is closed.
func (r *request) enter() error {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing && !r.exempt() {
		return processlock.ErrClosed
	}
	e := l.entries[r.ref.id]
	if e == nil {
		e = &entry{l: l, id: r.ref.id}
		l.entries[r.ref.id] = e
	}
	r.e = e
	e.pending++
	r.pending = true
	if r.nested && !r.call.req.IfAvailable {
		if e.nested == nil {
			e.nested = make(map[*request]struct{})
		}
		e.nested[r] = struct{}{}
		e.nudge()
		e.progress()
	}
	return nil
}

// settle ends r's waiting, in whatever way. Called under mu.
func (r *request) settle() {
	if !r.pending {
		return
	}
	r.pending = false
	r.e.pending--
	delete(r.e.nested, r)
}

// leave follows the end of the call, and is nothing if r was served.
func (r *request) leave() {
	defer r.close(true) // perhaps user code, so last
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	r.settle()
	r.e.tidy()
}

// nudge makes waits that pause look at their entry. Called under mu.
func (e *entry) nudge() {
	for _, w := range e.waits {
		w.nudge()
	}
}

// tidy gives back what nobody is left to use, and takes an entry that stands for
// nothing out of the table. Called under mu.
func (e *entry) tidy() {
	if e.acquiring {
		return
	}
	if t := e.lease; t != nil {
		if len(t.users) == 0 && (e.pending == 0 || e.inTheWay(t)) {
			e.giveBack(t, nil)
		}
		return
	}
	if e.pending == 0 && e.own == 0 && len(e.old) == 0 && e.l.entries[e.id] == e {
		delete(e.l.entries, e.id)
		if e.crowdOut {
			e.crowdOut = false
			e.l.crowd = slices.DeleteFunc(e.l.crowd, func(o *entry) bool { return o == e })
		}
		e.l.settleClosing()
	}
}

// inTheWay reports whether somebody waits for this process to give t up.
func (e *entry) inTheWay(t *tenure) bool {
	for _, w := range e.waits {
		if c := w.claim; c != nil && !c.settled && (t.ref.mode == processlock.ModeExclusive || c.hold.ref.mode == processlock.ModeExclusive) {
			return true
		}
	}
	return false
}

// someHold returns a hold of the lock, r's own if there is one.
func (e *entry) someHold(r *request) *hold {
	if h := r.holding(e.id); h != nil {
		return h
	}
	if e.lease != nil && len(e.lease.users) > 0 {
		return e.lease.users[0]
	}
	return nil
}
