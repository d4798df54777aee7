package pglock

import (
	"slices"
	"time"

	"github.com/dbx-tools/processlock"
)

// slice waits for a slice in the server's queue. It reports whether the wait is
// over.
func (w *wait) slice() (over bool) {
	l := w.e.l
	w.pause = 2 * firstPause
	takes := l.opts.Slice
	l.mu.Lock()
	if len(w.e.nested) > 0 {
		takes = min(takes, nestedSlice)
	}
	l.mu.Unlock()
	return w.judge(w.sess.do(w.statement(bounded(w.ref, takes, w.key), takes)))
}

// ask tries once on the session.
func (w *wait) ask() (over bool) {
	return w.judge(w.sess.do(w.statement("select "+w.ref.try()+comment(w.key), 0)))
}

// statement is lock with all that goes with it: what is given up before, what
// the wait publishes of those whom it keeps waiting, and BEGIN.
func (w *wait) statement(lock string, takes time.Duration) *op {
	l := w.e.l
	var before string
	if w.give != nil {
		before = w.give.ref.release() + "; "
		w.give = nil
		w.detector.forget()
	}
	if w.asked != (lockRef{}) && w.asked != w.ref {
		before += "select " + w.asked.unlock() + "; " // the failed one may hold it
	}
	w.asked = w.ref
	before += w.detector.publish(w.ref)
	o := &op{within: takes + l.bound()}
	if w.sess.inTransaction() { // the begin of a slice that failed
		o.queries = append(o.queries, rollback)
	}
	if look := w.detector.due(time.Since(w.began)); look != "" {
		o.queries = append(o.queries, look)
		o.looks = true
	}
	o.lock = len(o.queries)
	o.queries = append(o.queries, before+lock)
	if w.claim != nil && w.claim.r.call.begin != "" {
		o.queries = append(o.queries, w.claim.r.call.begin)
	}
	return o
}

// judge takes what came of a statement on the session.
func (w *wait) judge(r opResult) (over bool) {
	if r.err != nil { // the session is gone, and what it may have held with it
		idled := w.sess.idled // it had ended before anybody looked
		w.sess, w.asked = nil, lockRef{}
		w.detector.forget()
		switch noRoom := noSession(r.err); { // then none has ended
		case noRoom && w.takesPlace():
			return false
		case noRoom && w.claim == nil:
			w.goWithout(r.err)
			return false
		case !idled:
			w.failures++
		}
		if r.connect || w.failures > 2 {
			w.end(r.err)
			return true
		}
		return false
	}
	w.failures, w.retried, w.sess.idled = 0, false, false
	if r.op.looks {
		w.detector.look(w.sess.pid, w.ref, r.replies[r.op.lock-1])
	}
	a := r.replies[r.op.lock]
	switch {
	case a.err == nil && a.last() != "f":
		if n := r.op.lock + 1; n < len(r.replies) && r.replies[n].err != nil {
			w.end(r.replies[n].err)
			return true
		}
		w.won()
		return true
	case a.err != nil && a.err.Code != stateLockTimeout && a.err.Code != stateDeadlock:
		// Even so the session may hold the lock; end sees to that.
		w.end(a.err)
		return true
	case w.claim != nil && w.claim.try:
		w.end(processlock.ErrUnavailable)
		return true
	}
	return false
}

// takesPlace notes that there is no room, and reports whether an idle session can
// make way for w's, which is tried once.
func (w *wait) takesPlace() bool {
	l := w.e.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fullUntil = time.Now().Add(fullFor)
	first := !w.retried
	w.retried = true
	return first && len(l.idle) > 0
}

// goWithout has w poll, since there is no room for a session to wait on. Those
// whom it served and who hold something are refused: a deadlock that they are on
// is found by what a session publishes, and would else never end.
func (w *wait) goWithout(err error) {
	l, e := w.e.l, w.e
	var ends []func()
	l.mu.Lock()
	for _, r := range e.needy() {
		ends = append(ends, r.refuse(err))
	}
	l.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// needy returns the requests that hold something and have no wait, and so no
// session, of their own. Called under mu.
func (e *entry) needy() (all []*request) {
	for r := range e.nested {
		if !slices.ContainsFunc(e.waits, func(o *wait) bool { return o.claim != nil && o.claim.r == r }) {
			all = append(all, r)
		}
	}
	return all
}

// rejoin ends the wait of those who share with who holds on through the hub, and
// lets them in there though its time is up, since no session can ask for them: who
// is in may wait for them. Called under mu.
func (w *wait) rejoin() bool {
	e, l := w.e, w.e.l
	if !l.full() || len(e.claims) == 0 {
		return false
	}
	i := slices.IndexFunc(e.old, func(t *tenure) bool {
		return t.sess.kind == kindHub && len(t.users) > 0 && t.ref == e.claims[0].hold.ref
	})
	if i < 0 || e.claims[0].hold.ref.mode != processlock.ModeShared {
		return false
	}
	w.remove()
	e.lease, e.acquiring, e.waiting = e.old[i], false, false
	e.old = slices.Delete(e.old, i, i+1)
	e.grant(e.claims[0])
	l.leaveRoom()
	e.progress()
	return true
}

// poll tries once through the hub.
func (w *wait) poll() (over bool) {
	l := w.e.l
	answer := make(chan opResult, 1)
	l.mu.Lock()
	if w.e.onHub() { // who is asked has it already
		over = w.rejoin()
		l.mu.Unlock()
		return over
	}
	l.hubSession().submit(&op{try: w.ref, tries: true, key: w.key, within: l.bound(), done: func(r opResult) { answer <- r }})
	l.mu.Unlock()
	r := <-answer
	switch {
	case r.err != nil:
		w.end(r.err)
	case r.granted:
		w.sess = r.sess
		w.won()
	default:
		return false
	}
	return true
}
