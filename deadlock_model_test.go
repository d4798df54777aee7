package processlock

import (
	"slices"
)

// This is the lock as one would explain it to somebody: calls, keys with
// holders and a queue, and what may happen next. Nothing is found by clever
// search: whether a request is a deadlock is answered by letting everybody else
// finish and looking whether it still waits.
//
// Calls, keys, contexts and clients are numbers. What a call asks for, which
// contexts are done and which clients are closed is the director's doing and
// known for certain (dtWorld). The order in which calls get to the locks is
// not, so there may be several states that they are in (dtState).

// dtWorld is what is certain.
type dtWorld struct {
	asks       []dtAsk
	contexts   []dtContext
	closed     []bool // by client
	maxWaiters int
	now        int
}

// dtAsk is what a call asks for.
type dtAsk struct {
	keys                           []int // in the order in which they are taken
	shared, ifAvailable, reentrant bool
	maxWait                        int // in ticks; 0: no bound

	above   []int // calls in whose fns it was made, innermost first
	context int
	client  int // -1: none
}

type dtContext struct {
	parent int // whose end is this one's too; -1: none
	end    dtResult
}

type dtResult string

const (
	dtRan         dtResult = "ran"
	dtLost        dtResult = "ran, lost"
	dtCanceled    dtResult = "canceled"
	dtClosed      dtResult = "closed"
	dtUnavailable dtResult = "unavailable"
	dtTimeout     dtResult = "timeout"
	dtFull        dtResult = "queue full"
	dtDeadlock    dtResult = "deadlock"
)

// end ends a context and those derived from it.
func (w *dtWorld) end(context int, why dtResult) {
	if w.contexts[context].end != "" {
		return
	}
	w.contexts[context].end = why
	for child := range w.contexts {
		if w.contexts[child].parent == context {
			w.end(child, why)
		}
	}
}

type dtPhase byte

const (
	dtAsking  dtPhase = 'a' // about to look at keys[next], or to run if it has all
	dtWaiting dtPhase = 'w' // in the queue of keys[next]
	dtGranted dtPhase = 'g' // holds keys[next], and doesn't know yet
	dtRunning dtPhase = 'r'
	dtEnding  dtPhase = 'e' // gives up what it has taken, the last first
	dtOver    dtPhase = 'o'
)

// dtState is one of the states that the calls may be in.
type dtState struct {
	calls []dtCallState
	keys  []dtKeyState
}

type dtCallState struct {
	phase    dtPhase
	next     int
	under    []int // for each key taken: the call that holds it, itself or (Reentrant) one above
	told     bool  // its fn may return
	doomed   bool  // waits for a moment, since it will be told of a deadlock
	deadline int   // from the first wait on; 0: none
	result   dtResult
}

type dtKeyState struct{ holders, queue []int }

func (s dtState) clone() dtState {
	s.calls = slices.Clone(s.calls)
	for i := range s.calls {
		s.calls[i].under = slices.Clone(s.calls[i].under)
	}
	s.keys = slices.Clone(s.keys)
	for i, k := range s.keys {
		s.keys[i] = dtKeyState{slices.Clone(k.holders), slices.Clone(k.queue)}
	}
	return s
}

// text is the same for equal states.
func (s dtState) text() string {
	var b []byte
	list := func(l []int) {
		for _, n := range l {
			b = append(b, byte(n+1))
		}
		b = append(b, 255)
	}
	for _, c := range s.calls {
		b = append(b, byte(c.phase), byte(c.next), byte(c.deadline))
		if c.told {
			b = append(b, '!')
		}
		if c.doomed {
			b = append(b, '?')
		}
		list(c.under)
		b = append(b, c.result...)
	}
	for _, k := range s.keys {
		list(k.holders)
		list(k.queue)
	}
	return string(b)
}

func (w *dtWorld) holds(s dtState, call, key int) bool {
	return slices.Contains(s.keys[key].holders, call)
}

// grantNext grants what key's queue may have now.
func (w *dtWorld) grantNext(s dtState, key int) {
	k := &s.keys[key]
	for len(k.queue) > 0 {
		first := k.queue[0]
		if len(k.holders) > 0 && (!w.asks[first].shared || !w.asks[k.holders[0]].shared) {
			return
		}
		k.queue = k.queue[1:]
		k.holders = append(k.holders, first)
		s.calls[first].phase, s.calls[first].doomed = dtGranted, false
		s.calls[first].under = append(s.calls[first].under, first)
	}
}

func (w *dtWorld) release(s dtState, call, key int) {
	k := &s.keys[key]
	k.holders = slices.DeleteFunc(k.holders, func(h int) bool { return h == call })
	w.grantNext(s, key)
}

func (w *dtWorld) leave(s dtState, call int) {
	key := w.asks[call].keys[s.calls[call].next]
	k := &s.keys[key]
	k.queue = slices.DeleteFunc(k.queue, func(q int) bool { return q == call })
	w.grantNext(s, key)
}

func (c *dtCallState) fail(why dtResult) { c.phase, c.result = dtEnding, why }

// look is a call's arrival at the key that it asks for next. Where it would be
// a deadlock there is a choice: it fails at once, or (linger) is seen in the
// queue before it fails. And if somebody lingers already, it counts or not.
func (w *dtWorld) look(s dtState, call int, linger, count bool) {
	a, c := w.asks[call], &s.calls[call]
	if why := w.contexts[a.context].end; why != "" {
		c.fail(why)
		return
	}
	if w.shut(call) {
		c.fail(dtClosed)
		return
	}
	key := a.keys[c.next]
	k := &s.keys[key]
	own := -1
	for _, above := range a.above {
		if own < 0 && w.holds(s, above, key) {
			own = above
		}
	}
	heldShared := len(k.holders) > 0 && w.asks[k.holders[0]].shared
	switch {
	case a.reentrant && own >= 0 && (!heldShared || a.shared):
		c.under = append(c.under, own)
		c.next++
		return
	case len(k.holders) == 0 || a.shared && heldShared && len(k.queue) == 0:
		k.holders = append(k.holders, call)
		c.under = append(c.under, call)
		c.next++
		return
	case a.ifAvailable:
		c.fail(dtUnavailable)
		return
	}
	stuck := w.stuck(s, call, count)
	full := w.maxWaiters > 0 && len(k.queue) >= w.maxWaiters
	switch {
	case full && !(stuck && own >= 0):
		c.fail(dtFull)
	case stuck && (full || !linger):
		c.fail(dtDeadlock)
	default:
		c.phase, c.doomed = dtWaiting, stuck
		k.queue = append(k.queue, call)
		if c.deadline == 0 && a.maxWait > 0 {
			c.deadline = w.now + a.maxWait
		}
	}
}

// stuck reports whether call waits for ever, if it queues now: it does, and
// then everybody who can finish finishes. That is whoever waits for nothing
// itself and has nobody under it who waits. Whoever lingers counts or not.
func (w *dtWorld) stuck(s dtState, call int, count bool) bool {
	s = s.clone()
	if c := &s.calls[call]; c.phase != dtWaiting {
		c.phase = dtWaiting
		k := &s.keys[w.asks[call].keys[c.next]]
		k.queue = append(k.queue, call)
	}
	for progress := true; progress; {
		progress = false
		for i := range s.calls {
			c := &s.calls[i]
			switch {
			case c.phase == dtOver:
				continue
			case c.phase == dtWaiting:
				over := w.contexts[w.asks[i].context].end != "" || c.doomed && !count && i != call
				if !over {
					continue
				}
				w.leave(s, i)
			case w.waitsUnder(s, i):
				continue
			}
			c.phase = dtOver
			for _, k := range w.asks[i].keys {
				w.release(s, i, k)
			}
			progress = true
		}
	}
	return s.calls[call].phase == dtWaiting
}

// waitsUnder reports whether a call waits that was made in above's fn.
func (w *dtWorld) waitsUnder(s dtState, above int) bool {
	for i := range s.calls {
		if s.calls[i].phase == dtWaiting && slices.Contains(w.asks[i].above, above) {
			return true
		}
	}
	return false
}

// moves reports whether call has a step to make.
func (w *dtWorld) moves(s dtState, call int) bool {
	switch a, c := w.asks[call], s.calls[call]; c.phase {
	case dtWaiting:
		return c.doomed || w.contexts[a.context].end != "" || w.shut(call) || c.deadline != 0 && c.deadline <= w.now
	case dtRunning:
		return c.told
	default:
		return c.phase != dtOver
	}
}

// step makes call's next step.
func (w *dtWorld) step(s dtState, call int, linger, count bool) {
	a, c := w.asks[call], &s.calls[call]
	end := w.contexts[a.context].end
	switch c.phase {
	case dtAsking:
		switch {
		case c.next < len(a.keys):
			w.look(s, call, linger, count)
		case w.robbed(s, call):
			c.fail(dtClosed)
		default:
			c.phase = dtRunning
		}
	case dtWaiting:
		doomed := c.doomed
		if c.doomed = false; doomed && !w.stuck(s, call, true) {
			return // the way is free by now
		}
		w.leave(s, call)
		switch {
		case doomed:
			c.fail(dtDeadlock)
		case end != "":
			c.fail(end)
		case w.shut(call):
			c.fail(dtClosed)
		default:
			c.fail(dtTimeout)
		}
	case dtGranted:
		switch {
		case end != "":
			c.fail(end)
		case w.robbed(s, call):
			c.fail(dtClosed)
		default:
			c.phase = dtAsking
			c.next++
		}
	case dtRunning:
		c.result = dtRan
		w.giveUp(s, call)
	case dtEnding:
		w.giveUp(s, call)
	}
	if c.phase == dtEnding && len(c.under) == 0 {
		c.phase = dtOver
	}
}

// giveUp has call give up the last of what it has taken.
func (w *dtWorld) giveUp(s dtState, call int) {
	c := &s.calls[call]
	last := len(c.under) - 1
	key, holder := w.asks[call].keys[last], c.under[last]
	c.phase, c.under = dtEnding, c.under[:last]
	if !w.holds(s, holder, key) && c.result == dtRan {
		c.result = dtLost
	}
	if holder == call {
		w.release(s, call, key)
	}
}

// shut reports whether call's client is closed.
func (w *dtWorld) shut(call int) bool {
	client := w.asks[call].client
	return client >= 0 && w.closed[client]
}

// robbed reports whether Close has taken a key from call.
func (w *dtWorld) robbed(s dtState, call int) bool {
	for i, holder := range s.calls[call].under {
		if holder == call && !w.holds(s, call, w.asks[call].keys[i]) {
			return true
		}
	}
	return false
}

// rob returns the states after Close has handed on one key of a closed client.
// Close ends the waits first.
func (w *dtWorld) rob(s dtState) (after []dtState) {
	for i := range s.calls {
		if s.calls[i].phase == dtWaiting && w.shut(i) {
			return nil
		}
	}
	for key := range s.keys {
		for _, h := range s.keys[key].holders {
			if w.shut(h) {
				robbed := s.clone()
				w.release(robbed, h, key)
				after = append(after, robbed)
			}
		}
	}
	return after
}
