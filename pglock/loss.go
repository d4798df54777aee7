package pglock

import (
	"slices"

	"github.com/dbx-tools/processlock"
)

// lose follows the loss of t, and returns whom to tell. Called under mu.
func (s *session) lose(t *tenure) []*hold {
	delete(s.tenures, t)
	t.lost = true
	if e := t.e; e.lease == t {
		e.lease = nil
		e.l.leaveRoom()
		e.progress()
	} else if i := slices.Index(e.old, t); i >= 0 {
		e.old = slices.Delete(e.old, i, i+1)
		e.l.leaveRoom()
		e.progress()
	}
	return t.users
}

// fail ends the session for good: nothing reconnects, and whoever holds a lock
// on it is told.
func (s *session) fail(err error) {
	l := s.l
	l.mu.Lock()
	if s.dead {
		l.mu.Unlock()
		return
	}
	s.dead, s.err = true, err
	queue := s.queue
	s.queue = nil
	if l.hub == s {
		l.hub = nil
	} else {
		l.open--
	}
	var told []*hold
	for t := range s.tenures {
		told = append(told, s.lose(t)...)
	}
	lent := s.lent
	l.mu.Unlock()

	for _, h := range told {
		h.end(processlock.ErrLost)
	}
	if len(told) > 0 {
		l.warn("locks were lost with their session", "keys", len(told), "error", err)
	}
	if !lent { // fn may be using it
		s.discard()
	}
	for _, o := range queue {
		s.orphan(o, err)
	}
}

// orphan answers an op of a session that has ended. Where that had happened
// before anybody looked, what was to be had of it is lost, but a new one can be
// asked.
func (s *session) orphan(o *op, err error) {
	if s.kind != kindHub || !o.tries || o.again {
		s.finish(o, opResult{err: err})
		return
	}
	o.again = true
	s.l.mu.Lock()
	s.l.hubSession().submit(o)
	s.l.mu.Unlock()
}

// discard closes the socket.
func (s *session) discard() {
	if raw := s.raw.Load(); raw != nil {
		(*raw).Close()
	}
}
