package processlock

import (
	"context"
	"slices"
	"sync"
)

// step is an edge of the graph from a request to a holder of its key.
type step struct {
	key    Key
	hold   *hold
	client *Client
	task   *task
	fn     uintptr
	mode   Mode
}

func (s step) wait() Wait {
	w := Wait{Key: s.key, Client: clientName(s.client, s.task), Mode: s.mode}
	w.Func, w.File, w.Line = locate(s.fn)
	return w
}

// steps yields e's holders. Called under the shard's mutex.
func (e *entry) steps(yield func(step) bool) {
	if e.hold != nil && !yield(step{e.key(), e.hold, e.client, nil, e.fn, e.mode}) {
		return
	}
	if e.crowd != nil {
		for w := e.crowd.holders.first; w != nil; w = w.next {
			if !yield(step{e.key(), w.hold, w.client, w.task, w.fn, w.mode}) {
				return
			}
		}
	}
}

// stepOf returns the step to e's holder h.
func (e *entry) stepOf(h *hold) step {
	for s := range e.steps {
		if s.hold == h {
			return s
		}
	}
	return step{}
}

// wait is a request in the wait-for graph: one that waits while its lineage
// holds something, or, with All, it itself.
type wait struct {
	ctx     context.Context
	client  *Client
	claim   *claim
	shard   *shard
	lineage []*hold // ctx's, then those that the call has taken itself
	outside int     // how many are ctx's
	links   []link  // one for each hold of lineage

	// Guarded by waits.mu.
	gone  bool          // out of the graph; claim may be another request's
	over  bool          // known to end by itself: its context is done, or passes
	asked int           // how many ask its context
	idle  chan struct{} // closed when nobody does, if somebody waits for that
	round uint64        // of the search that has reached it last
	from  *wait         // the way by which a search has reached it, while it lasts
	via   step
}

// link is a wait's place in the list of the waits under one hold.
type link struct {
	wait       *wait
	prev, next *link
}

// waits is the wait-for graph of the process. Its edges all mean "needs every
// one of them": a waiting request needs every holder of its key, and a hold
// needs every waiting request whose lineage contains it. (Whoever waits ahead
// in the queue needs the same holders, so the queue adds nothing.)
//
// Only the arrival of a request with a lineage can close a cycle. A grant turns
// a request, which needed the holders before it, into a holder, which needs
// nothing yet; a release or the end of a wait takes edges away. So each such
// request searches once, when it has queued, and the others never do: the last
// of a cycle to arrive finds the rest in place, since arrivals are serialized
// by mu.
//
// mu comes before every shard's mutex. No user code runs under it.
var waits graph

type graph struct {
	mu    sync.Mutex
	under map[*hold]*link // nil when empty: a Go map never shrinks
	round uint64
}

// add enters w. Called under mu.
func (g *graph) add(w *wait) {
	if g.under == nil {
		g.under = make(map[*hold]*link)
	}
	w.links = make([]link, len(w.lineage))
	for i, h := range w.lineage {
		l := &w.links[i]
		l.wait, l.next = w, g.under[h]
		if l.next != nil {
			l.next.prev = l
		}
		g.under[h] = l
	}
}

// remove takes w out. After that, and not before, its claim may be reused and
// its call may return: nobody asks its context any more.
func (g *graph) remove(w *wait) {
	if idle := g.unlink(w); idle != nil {
		<-idle
	}
}

func (g *graph) unlink(w *wait) (idle chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.gone {
		return w.idle
	}
	for i, h := range w.lineage {
		l := &w.links[i]
		if l.next != nil {
			l.next.prev = l.prev
		}
		switch {
		case l.prev != nil:
			l.prev.next = l.next
		case l.next != nil:
			g.under[h] = l.next
		default:
			delete(g.under, h)
		}
	}
	if len(g.under) == 0 {
		g.under = nil
	}
	// The links of one that is gone would keep those after it alive, and so on.
	w.gone, w.links = true, nil
	if w.asked > 0 {
		w.idle = make(chan struct{})
	}
	return w.idle
}

// ended reports whether w's context is done. Called without mu.
func (w *wait) ended() bool {
	waits.mu.Lock()
	if w.gone {
		waits.mu.Unlock()
		return false // confirm sees it
	}
	w.asked++
	waits.mu.Unlock()
	defer func() { // also when the context panics
		waits.mu.Lock()
		defer waits.mu.Unlock()
		if w.asked--; w.asked == 0 && w.idle != nil {
			close(w.idle)
		}
	}()
	return ended(w.ctx) != nil
}

// search looks for a cycle through w, which has just queued. It is called with
// waits.mu held, and gives it up. If there is a cycle w leaves its queue, and
// the error is the *DeadlockError.
//
// A request whose context is done is no part of a deadlock, but asking a
// context is user code. So a cycle is found under the mutexes, its contexts are
// asked outside, and then it is confirmed.
func (w *wait) search() error {
	for {
		cycle := waits.find(w)
		waits.mu.Unlock()
		if cycle == nil {
			return nil
		}
		over := make([]bool, len(cycle))
		for i, n := range cycle {
			over[i] = n.wait.ended() || n.passes && allEnded(n.ahead)
		}
		if over[0] {
			return nil // await sees the same
		}
		waits.mu.Lock()
		if !slices.Contains(over, true) && w.confirm(cycle) {
			waits.mu.Unlock()
			err := &DeadlockError{}
			for _, n := range cycle {
				err.Cycle = append(err.Cycle, n.step.wait())
			}
			return err
		}
		for i, n := range cycle {
			n.wait.over = n.wait.over || over[i]
		}
	}
}

func allEnded(ctxs []context.Context) bool {
	for _, ctx := range ctxs {
		if ended(ctx) == nil {
			return false
		}
	}
	return true
}

// need is a request on a cycle and the holder that it needs.
type need struct {
	wait *wait
	step step

	// passes is set for a shared request whose key's holders are shared. It
	// waits for the exclusive requests ahead of it only, whose contexts these
	// are: if all are done, they are about to leave the queue, and it will be
	// granted. None can come ahead of it any more.
	passes bool
	ahead  []context.Context
}

// newNeed returns w's need of s. Called under mu.
func newNeed(w *wait, s step) need {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	n := need{wait: w, step: s}
	if c := w.claim; c.state.Load() == stateQueued {
		n.passes, n.ahead = c.entry.passes(c.mode, c)
	}
	return n
}

// passes reports whether a shared request would be granted but for exclusive
// ones ahead of end in e's queue, and returns their contexts. Called under the
// shard's mutex.
func (e *entry) passes(m Mode, end *claim) (bool, []context.Context) {
	if m != ModeShared || e.mode != ModeShared {
		return false, nil
	}
	var ahead []context.Context
	for w := e.crowd.queue.first; w != end; w = w.next {
		if w.mode == ModeExclusive {
			ahead = append(ahead, w.context())
		}
	}
	return true, ahead
}

// context is the one by whose end w leaves its queue. Of a task's it is not the
// hold's, which is made anew when the task starts, whoever asks it meanwhile.
func (w *claim) context() context.Context {
	if w.task != nil {
		return w.task.group.ctx
	}
	return w.hold.Context
}

// find returns a shortest cycle through w, from w on, or nil. Called under mu.
func (g *graph) find(w *wait) []need {
	g.round++
	w.round = g.round
	reached := []*wait{w}
	defer func() {
		for _, r := range reached { // a long wait must not keep others alive
			r.from, r.via = nil, step{}
		}
	}()
	var steps []step
	for i := 0; i < len(reached); i++ {
		at := reached[i]
		steps = at.needs(steps[:0])
		for _, s := range steps {
			for l := g.under[s.hold]; l != nil; l = l.next {
				next := l.wait
				if next == w {
					return at.back(s)
				}
				if next.round != g.round && !next.over && !next.client.closed() {
					next.round, next.from, next.via = g.round, at, s
					reached = append(reached, next)
				}
			}
		}
	}
	return nil
}

// needs appends the holders that w waits for, but for those whose client is
// being closed: their holds are about to be handed on.
func (w *wait) needs(steps []step) []step {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	if w.claim.state.Load() == stateQueued {
		for s := range w.claim.entry.steps {
			if !s.client.closed() {
				steps = append(steps, s)
			}
		}
	}
	return steps
}

// back returns the way from the search's start to w, and over s back to it.
func (w *wait) back(s step) []need {
	cycle := []need{newNeed(w, s)}
	for ; w.from != nil; w = w.from {
		cycle = append(cycle, newNeed(w.from, w.via))
	}
	slices.Reverse(cycle)
	return cycle
}

// confirm reports whether every edge of cycle, which starts at w, is still
// there, and takes w out of its queue if so. An edge that is there in two looks
// was there all the time between, since a hold that ended and a wait that ended
// never come back; so at the instant between the end of the first pass and the
// start of this one the whole cycle stood, and since it is a deadlock it still
// does. Called under mu.
func (w *wait) confirm(cycle []need) bool {
	for i := len(cycle) - 1; i >= 0; i-- {
		n := cycle[i]
		s := n.wait.shard
		s.mu.Lock()
		c := n.wait.claim
		ok := !n.wait.gone && c.state.Load() == stateQueued && c.entry.heldBy(n.step.hold) &&
			!n.wait.client.closed() && !n.step.client.closed()
		s.mu.Unlock()
		if !ok {
			return false
		}
	}
	return w.shard.leave(w.claim)
}
