package pglock

import (
	"slices"
)

// retire gives back one of e.old that nobody uses any more. Called under mu.
func (e *entry) retire(t *tenure, answer chan bool) {
	e.old = slices.DeleteFunc(e.old, func(o *tenure) bool { return o == t })
	e.own++ // keeps e till then
	t.sess.release(t, func(ok bool) {
		e.l.mu.Lock()
		e.own--
		e.l.leaveRoom()
		e.progress()
		e.l.mu.Unlock()
		if answer != nil {
			answer <- ok
		}
	})
}

// giveBack releases t, which nobody uses, on the server, and then calls done
// without the mutex. Called under mu.
func (e *entry) giveBack(t *tenure, done func(ok bool)) {
	e.lease, e.acquiring = nil, true
	t.sess.release(t, func(ok bool) {
		l := e.l
		l.mu.Lock()
		e.over(nil)
		l.mu.Unlock()
		if done != nil {
			done(ok)
		}
	})
}

// part takes h out of t. Called under mu.
func (t *tenure) part(h *hold) {
	h.over.Store(true)
	t.users = slices.DeleteFunc(t.users, func(o *hold) bool { return o == h })
}

// drop ends h's turn without waiting for the server. Called under mu.
func (e *entry) drop(h *hold) {
	t := h.lease
	t.part(h)
	switch {
	case t.own:
		e.endOwn(t, nil)
	case e.lease == t:
		e.progress()
	case len(t.users) == 0 && slices.Contains(e.old, t):
		e.retire(t, nil)
	}
}

// release ends h's turn: the lock is left to the next goroutine of this
// process, or given back. It reports whether h had the lock to the end.
func (h *hold) release() bool {
	l, t := h.l, h.lease
	e := t.e
	defer h.close(false) // perhaps user code, so last
	answer := make(chan bool, 1)
	var mine *session
	l.mu.Lock()
	l.inline = &mine
	revoked := !slices.Contains(t.users, h) && !t.lost
	t.part(h)
	switch {
	case revoked && !t.own:
		answer <- true // the core tells; the lock is somebody else's
	case t.own:
		e.endOwn(t, answer)
	case t.lost:
		answer <- false
	case slices.Contains(e.old, t):
		if len(t.users) == 0 {
			e.retire(t, answer)
		} else {
			answer <- true
		}
	case len(t.users) > 0 || e.pending > 0 && l.opts.Handoff.Max != 1:
		// Whoever is next finds the lock here, and if its time is up takes its
		// place behind the other processes in one query.
		e.progress()
		answer <- true
	default:
		e.giveBack(t, func(ok bool) { answer <- ok })
	}
	l.inline = nil
	l.mu.Unlock()
	if mine != nil {
		mine.standIn()
	}
	return <-answer
}
