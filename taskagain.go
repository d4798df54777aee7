package processlock

import "slices"

// errGone is why a task asks again: what it is to run under ended while it
// waited for a slot, or for another of its keys. Hooks are told of it for the keys
// that the task gives back.
var errGone error = &sentinel{text: "the hold that Reentrant took over is gone; the task asks again"}

// gone reports whether a hold that v has taken over is no longer there: fn would
// run beside whoever holds the key by now. It may still go from here on, as
// under a call of WithLock, which has ErrLost for that.
func (v *severalKeys) gone() bool {
	if v == nil || v.all.Load() == stateRevoked { // by Client.Close, which ends t
		return false
	}
	return slices.ContainsFunc(v.got.list, func(g grant) bool {
		if !g.reentrant {
			return false
		}
		_, ok := g.hold.live()
		return !ok
	})
}

// askAgain has t, whose goroutine this is, give back what it has got and ask for
// its keys as if it had just been added, behind all that have come meanwhile:
// what it gives back may come after what is gone in the order of All.
//
// There is an end to that. A hold of the group's lineage that is gone stays so,
// and each time it is another.
//
// Refused: to note at the end of a hold who has taken it over, so that the task
// could queue in its place at once. Every release would have to look.
func (t *task) askAgain() {
	g, v := t.group, t.several
	g.mu.Lock()
	t.owned, t.news = true, false
	if t.timer != nil {
		t.timer = nil                     // it has stopped
		t.late = t.late || v.maxWait <= 0 // the grant came first
	}
	g.mu.Unlock()
	v.queued, v.exempt = true, false
	t.key = v.keys[0] // the first that it won't have
	done := false
	defer t.unlessDone(&done) // it calls hooks
	v.giveBack(errGone)
	done = true
	switch {
	case t.over():
		t.drop()
	case t.askOn():
		t.settle()
	}
}

// giveBack gives up what v has got, for a reason that those who look are told.
func (v *severalKeys) giveBack(why error) {
	got := v.got
	v.got, v.taken = grants{}, nil // before hooks, one of which may exit
	for i, s := range slices.Backward(got.sights) {
		if s != nil {
			s.since = got.list[i].claim.since.Load()
			defer s.refused(&AcquireError{v.keys[i], why})
		}
	}
	got.sights = nil
	var none error
	got.release(&none)
}
