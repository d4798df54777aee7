package pglock

import (
	"slices"
	"time"

	"github.com/dbx-tools/processlock"
)

// progress grants what can be granted and sets the server in motion for the
// rest. It follows every change. Called under mu.
func (e *entry) progress() {
	for len(e.claims) > 0 {
		if e.waiting { // this process is in the server's queue
			if e.rejectTries(processlock.ErrUnavailable); len(e.claims) == 0 {
				break
			}
		}
		c := e.claims[0]
		e.revoke(c)
		switch {
		case e.lease != nil && e.lease.fits(c):
			e.grant(c)
		case e.acquiring:
			return
		default:
			if t := e.lease; t != nil && len(t.users) > 0 {
				e.old, e.lease = append(e.old, t), nil
			}
			if e.lease == nil && !e.l.hasRoom(e) {
				if e.rejectTries(errMaxKeys); len(e.claims) > 0 {
					e.l.makeWait(e)
				}
				return
			}
			if c.try && (e.onHub() || e.lease != nil && e.lease.sess.kind != kindHub) {
				e.reject(c, processlock.ErrUnavailable)
				continue
			}
			e.ask(c)
			return
		}
	}
	e.tidy()
}

// revoke drops those who have the lock where c can't be beside them. The core
// lets c in only when it has taken the key from them, since their client was
// closed; that it tells them itself. A session in the hands of such an fn has to
// go for the lock to be free.
func (e *entry) revoke(c *claim) {
	excludes := func(t *tenure) bool {
		return t.ref.mode == processlock.ModeExclusive || c.hold.ref.mode == processlock.ModeExclusive
	}
	if t := e.lease; t != nil && excludes(t) {
		t.users = nil
	}
	for _, t := range slices.Clone(e.old) {
		if excludes(t) {
			t.users = nil
			e.retire(t, nil)
		}
	}
	for _, t := range e.lent {
		if len(t.users) > 0 && excludes(t) {
			t.takeBack()
		}
	}
}

// fits reports whether c may have its turn without the server.
func (t *tenure) fits(c *claim) bool {
	l := t.e.l
	switch {
	case t.lost || t.ref.mode != c.hold.ref.mode || t.ref.mode == processlock.ModeExclusive && len(t.users) > 0:
		return false
	case t.turns == 0:
		return true
	case len(t.users) > 0 && c.r.nested:
		return true // it holds something that those who are in may wait for
	case t.takesSession() && (c.try || len(t.users) > 0 && !l.spare()):
		// To ask the server takes a session to wait on. The one does not wait, and
		// for the other there is none.
		return true
	}
	return (l.opts.Handoff.Max == 0 || t.turns < l.opts.Handoff.Max) && time.Since(t.since) < l.opts.Handoff.For
}

// takesSession reports whether the hub can't ask for what t holds once more: it
// holds the lock itself, or another session has to give it up in the same query.
func (t *tenure) takesSession() bool {
	return (t.sess.kind == kindHub) == (len(t.users) > 0) || t.e.onHub()
}

// grant gives c its turn.
func (e *entry) grant(c *claim) {
	t := e.lease
	e.claims = e.claims[1:]
	t.turns++
	t.users = append(t.users, c.hold)
	c.hold.lease = t
	c.settle(nil)
}

// reject ends c with err.
func (e *entry) reject(c *claim, err error) {
	e.claims = e.claims[1:]
	c.settle(err)
}

// rejectTries ends the claims that don't wait.
func (e *entry) rejectTries(err error) {
	for _, c := range slices.Clone(e.claims) {
		if c.try {
			e.claims = slices.DeleteFunc(e.claims, func(o *claim) bool { return o == c })
			c.settle(err)
		}
	}
}

// ask asks the server on behalf of c. What the process holds of the lock, if
// anything, and doesn't use, is given up in the same query.
func (e *entry) ask(c *claim) {
	l := e.l
	give := e.lease
	if give == nil {
		l.keys++
	}
	e.lease, e.acquiring = nil, true
	// One who polls can't get in between an unlock and a try of the same query.
	aside := l.opts.Wait == Poll && !c.try
	if give != nil && (give.sess.kind != kindHub || aside) || e.onHub() {
		e.startWait(nil, give)
		return
	}
	o := &op{try: c.hold.ref, key: c.r.key, tries: true}
	if give != nil {
		give.sess.letGo(give)
		o.unlock, o.unlocks = give.ref, true
	}
	ref := c.hold.ref
	o.done = func(res opResult) { e.tried(ref, res) }
	l.hubSession().submit(o)
}

// onHub reports whether the hub holds the lock already, where to ask for it once
// more would prove nothing. Called under mu.
func (e *entry) onHub() bool {
	return slices.ContainsFunc(e.old, func(t *tenure) bool { return t.sess.kind == kindHub })
}

// tried takes the answer of the hub.
func (e *entry) tried(ref lockRef, res opResult) {
	l := e.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if res.unlocks && !res.unlocked {
		l.warn("a lock that was to be handed on was lost", "id", e.id)
	}
	switch {
	case res.err != nil:
		e.over(res.err)
	case res.granted:
		e.won(res.sess, ref)
	default:
		e.rejectTries(processlock.ErrUnavailable)
		if e.pending == 0 {
			e.over(nil)
			return
		}
		e.startWait(nil, nil)
	}
}

// won begins a tenure. Called under mu.
func (e *entry) won(s *session, ref lockRef) {
	t := &tenure{e: e, sess: s, ref: ref, since: time.Now()}
	e.acquiring, e.waiting = false, false
	e.lease = t
	s.hold(t)
	e.progress()
}

// over ends the asking: the process has no lock. With err nobody who waits gets
// it. Called under mu.
func (e *entry) over(err error) {
	e.acquiring, e.waiting = false, false
	e.l.leaveRoom()
	if err != nil {
		for len(e.claims) > 0 {
			e.reject(e.claims[0], err)
		}
	}
	e.progress()
}
