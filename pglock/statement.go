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
		if !w.sess.idled { // else it had ended before anybody looked
			w.failures++
		}
		w.sess, w.asked = nil, lockRef{}
		w.detector.forget()
		if w.claim == nil && noSession(r.err) {
			w.goWithout(r.err)
			return false
		}
		if r.connect || w.failures > 2 {
			w.end(r.err)
			return true
		}
		return false
	}
	w.failures, w.sess.idled = 0, false
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

// goWithout has w poll, since there is no room for a session to wait on. Those
// whom it served and who hold something are refused: a deadlock that they are on
// is found by what a session publishes, and would else never end.
func (w *wait) goWithout(err error) {
	l, e := w.e.l, w.e
	var ends []func()
	l.mu.Lock()
	l.fullUntil = time.Now().Add(fullFor)
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

// poll tries once through the hub.
func (w *wait) poll() (over bool) {
	l := w.e.l
	answer := make(chan opResult, 1)
	l.mu.Lock()
	if w.e.onHub() { // who is asked has it already
		l.mu.Unlock()
		return false
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
