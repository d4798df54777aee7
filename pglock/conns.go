package pglock

import (
	"time"

	"github.com/dbx-tools/processlock"
)

func (l *Locker) newSession(kind sessionKind) *session {
	return &session{l: l, kind: kind, tenures: make(map[*tenure]struct{})}
}

// hubSession returns the hub, made if there is none. Called under mu.
func (l *Locker) hubSession() *session {
	if l.hub == nil {
		l.hub = l.newSession(kindHub)
	}
	return l.hub
}

// fullFor is how long after a refusal no further session is tried.
const fullFor = 5 * time.Second

// full reports whether the server, or a pooler, has lately had no room for
// another session. Called under mu.
func (l *Locker) full() bool { return !l.fullUntil.IsZero() && time.Now().Before(l.fullUntil) }

// take returns a session of the given kind that holds nothing, or nil if all are
// in use, or no more are to be had, and force is not set. Where there is room for
// no more, one of another kind makes way. Called under mu.
func (l *Locker) take(kind sessionKind, force bool) *session {
	other := -1
	for i := len(l.idle) - 1; i >= 0; i-- {
		if s := l.idle[i]; s.kind == kind {
			l.idle = append(l.idle[:i], l.idle[i+1:]...)
			return s
		}
		other = i
	}
	n := l.newSession(kind)
	if full := l.full(); full || !force && l.open >= int(l.opts.MaxConns)-1 {
		switch {
		case other >= 0:
			s := l.idle[other]
			l.idle = append(l.idle[:other], l.idle[other+1:]...)
			l.open--
			if full {
				s.left = make(chan struct{})
				n.after = s.left
			}
			s.shut()
		case !force:
			return nil
		}
	}
	l.open++
	return n
}

// spare reports whether there is a session to wait on. Called under mu.
func (l *Locker) spare() bool {
	return len(l.idle) > 0 || l.open < int(l.opts.MaxConns)-1 && !l.full()
}

// putBack keeps s, which holds nothing, for another key. Called under mu.
func (l *Locker) putBack(s *session) {
	if s.dead || s.kind == kindHub {
		return
	}
	if l.open > int(l.opts.MaxConns)-1 || l.closing && len(l.entries) == 0 {
		l.open--
		s.shut()
	} else {
		s.idled = true
		l.idle = append(l.idle, s)
	}
}

// shut closes s, which holds nothing, in good order. Called under mu.
func (s *session) shut() {
	s.dead, s.err = true, processlock.ErrClosed
	if s.l.empty { // Close may have returned: this is left of an fn whose lock was lost
		go s.hangUp()
		return
	}
	s.l.hangups.Go(s.hangUp)
}
