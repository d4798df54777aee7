package pglock

import (
	"slices"
	"time"
)

// A client that is closed has its keys handed on, though its fns still run. In
// this process the core sees to that, and revoke follows it when the next comes.
// Where the next is in another process nobody comes, so those who hold are looked
// at from time to time.

// mind takes the locks of closed clients from them. Only those whose context has
// ended are asked for, since to ask counts as a call in the core; why it ended tells
// nothing, it may have been earlier and for a reason of its own. It runs without the
// mutex, since contexts are user code.
func (s *session) mind() {
	var held []*hold
	s.l.mu.Lock()
	for t := range s.tenures {
		held = append(held, t.users...)
	}
	s.l.mu.Unlock()
	defer func() {
		s.l.mu.Lock()
		s.minding, s.minded = false, time.Now()
		s.l.mu.Unlock()
	}()
	for _, h := range held {
		if h.base.Err() != nil && !h.over.Load() && !heldStill(h.l.local, h, h.ref.id) {
			h.disown()
		}
	}
}

// mindSoon has mind run if it hasn't for a while. Called under mu.
func (s *session) mindSoon() {
	if len(s.tenures) > 0 && !s.minding && time.Since(s.minded) >= s.l.opts.Probe*2/5 {
		s.minding = true
		go s.mind()
	}
}

// disown ends h's hold before its fn has ended. That its call tells by what the
// core says.
func (h *hold) disown() {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	t := h.lease
	switch {
	case !slices.Contains(t.users, h): // over, or taken already
	case t.own:
		t.takeBack()
	default:
		t.e.drop(h)
	}
}

// takeBack ends the session that fn has, for the lock to be free. Called under mu.
func (t *tenure) takeBack() {
	t.users = nil
	go t.sess.fail(errRevoked)
	(*t.sess.raw.Load()).Close()
}
