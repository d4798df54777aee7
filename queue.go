package processlock

import (
	"sync"
	"sync/atomic"
	"time"
)

// claim is one request's place in an entry: in its queue, then among its
// holders. A holder that found its key free needs none (see entry.hold).
//
// It is guarded by its shard's mutex, except what is atomic and what is said
// below. It is reused only once it is out of every list and its port is empty,
// and only its own goroutine lets go of it.
type claim struct {
	entry  *entry // while it is in one of its lists
	hold   *hold  // what fn's context will be; stands for the request
	client *Client
	fn     uintptr
	wait   *wait  // in the wait-for graph, if the request has a lineage
	task   *task  // whose request it is, if it is one of a Group
	sight  *sight // if somebody looks at the request
	mode   Mode

	bubbled bool // port was made in a testing/synctest bubble, and is fatal outside
	noted   bool // granted, and since is written; for a task's, it is counted
	slow    bool // a warning has been given of the hold

	// state goes from queued to granted, or to ended if somebody else takes
	// the claim out of the queue, both under the mutex and both with a token in
	// port; or to left, by its own goroutine. The step from granted to running
	// (All: to taken, and all to running) is its own goroutine's, without the
	// mutex; so it and revoke, which Client.Close does, compare and swap.
	state atomic.Uint32

	// since is when the request began to wait, or, once it has resumed, to hold;
	// 0 means not known. Its own goroutine reads the clock, outside the mutex.
	since atomic.Int64

	// port is where the grant arrives; capacity 1. A claim that never waits has
	// none, nor has a task's, which is told.
	port chan struct{}

	// gen is the crowd's when the claim queued; see crowd.spare.
	gen uint32

	// all is set for a claim of All, which stays taken when fn runs: there the
	// step to running is one for all claims of the call.
	all *atomic.Uint32

	prev, next *claim
}

const (
	stateQueued  = iota
	stateGranted // holds the key; its goroutine hasn't resumed
	stateTaken   // resumed, by a call of All
	stateRunning // fn runs
	stateEnded   // taken out of the queue by Client.Close or Shutdown
	stateRevoked // granted or taken, then taken away by Client.Close
	stateLost    // running, then taken away by Client.Close
	stateLeft    // left the queue by itself
)

// running reports whether fn runs, given w's state.
func (w *claim) running(st uint32) bool {
	return st == stateRunning || st == stateTaken && w.all.Load() == stateRunning
}

// revoke takes the key from a holder and reports whether its fn was running.
func (w *claim) revoke() (running bool) {
	if w.state.CompareAndSwap(stateGranted, stateRevoked) {
		return false
	}
	if w.all != nil {
		w.all.CompareAndSwap(stateTaken, stateRevoked)
	}
	if !w.running(w.state.Load()) {
		w.state.Store(stateRevoked)
		return false
	}
	w.state.Store(stateLost)
	return true
}

// claims is a doubly linked list.
type claims struct{ first, last *claim }

func (l *claims) push(w *claim) {
	w.prev = l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *claims) remove(w *claim) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}

// crowd is what an entry needs once it has more than the holder that found it
// free.
type crowd struct {
	holders claims
	queue   claims // front is granted next
	waiting int    // length of queue

	// spare holds claims with ports that have waited here, for the next who
	// wait: a channel made anew is half the price of a contended wait. They
	// stay with the entry that they served, since a port made inside a
	// testing/synctest bubble is fatal outside it, and all who contend for a
	// key are on one side. Holders that never waited for each other may stand
	// on both, so each that joins them begins a new generation of spares.
	spare  *claim // chained by next
	spares int
	gen    uint32
}

// maxSpares is how many claims a crowd or a shard keeps.
const maxSpares = 16

// claimPool keeps claims with ports made outside bubbles for reuse by any key.
// The collector may empty it.
var claimPool sync.Pool

// newClaim returns a claim with a port for the calling goroutine to wait on.
// Nothing shared may be taken inside a testing/synctest bubble, which shows in
// its clock: it has no monotonic reading to strip.
func newClaim() *claim {
	t := time.Now()
	bubbled := t == t.Round(0)
	if !bubbled {
		if w, ok := claimPool.Get().(*claim); ok {
			return w
		}
	}
	return &claim{port: make(chan struct{}, 1), bubbled: bubbled}
}

// reset forgets the request, so that a kept claim keeps nothing alive.
func (w *claim) reset() {
	w.entry, w.hold, w.client, w.wait, w.all, w.fn, w.noted, w.next = nil, nil, nil, nil, nil, 0, false, nil
	w.sight, w.slow = nil, false
}

// discard keeps w, which has a port, for a key to come.
func (w *claim) discard() {
	if !w.bubbled {
		claimPool.Put(w)
	}
}

// recycle keeps w, which is in no list, for reuse. c is the crowd that it
// served, if that still serves the same entry.
func (s *shard) recycle(w *claim, c *crowd) {
	if w.task != nil {
		return // a part of the task
	}
	gen := w.gen
	w.reset()
	switch {
	case w.port == nil:
		if s.freeCount < maxSpares {
			w.next, s.freeClaims = s.freeClaims, w
			s.freeCount++
		}
	case c != nil && c.gen == gen && c.spares < maxSpares:
		w.next, c.spare = c.spare, w
		c.spares++
	default:
		w.discard()
	}
}

// portless returns a claim for a holder that does not wait.
func (s *shard) portless() *claim {
	w := s.freeClaims
	if w == nil {
		return &claim{}
	}
	s.freeClaims, w.next = w.next, nil
	s.freeCount--
	return w
}

// crowded returns e's crowd, made if there is none.
func (e *entry) crowded() *crowd {
	if e.crowd == nil {
		s := e.shard
		if e.crowd = s.freeCrowd; e.crowd == nil {
			e.crowd = &crowd{}
		}
		s.freeCrowd = nil
	}
	return e.crowd
}

// dismiss keeps c, whose entry leaves the table, for another entry.
func (s *shard) dismiss(c *crowd) {
	c.dropSpares()
	c.gen = 0
	s.freeCrowd = c
}

func (c *crowd) dropSpares() {
	for w := c.spare; w != nil; w = c.spare {
		c.spare, w.next = w.next, nil
		w.discard()
	}
	c.spares = 0
}

// takeSpare returns a claim that has waited here before, or nil.
func (c *crowd) takeSpare() *claim {
	w := c.spare
	if w != nil {
		c.spare, w.next = w.next, nil
		c.spares--
	}
	return w
}

// held reports whether e has a holder.
func (e *entry) held() bool {
	return e.hold != nil || e.crowd != nil && e.crowd.holders.first != nil
}

// heldBy reports whether h is one of e's holders. e may have left the table.
func (e *entry) heldBy(h *hold) bool {
	if e.hold == h {
		return true
	}
	return e.claimOf(h) != nil
}

// claimOf returns the holder's claim that stands for h, or nil.
func (e *entry) claimOf(h *hold) *claim {
	if e.crowd != nil {
		for w := e.crowd.holders.first; w != nil; w = w.next {
			if w.hold == h {
				return w
			}
		}
	}
	return nil
}

// admits reports whether a request of the given mode that arrives now is
// granted at once. Nobody overtakes a queue: with barging, a stream of short
// shared holds would keep an exclusive request out for ever.
func (e *entry) admits(m Mode) bool {
	return m == ModeShared && e.mode == ModeShared && (e.crowd == nil || e.crowd.waiting == 0)
}

// join adds w, which does not wait, to the holders.
func (e *entry) join(w *claim) {
	c := e.crowded()
	c.dropSpares()
	c.gen++
	w.entry, w.next = e, nil
	c.holders.push(w)
	e.mode = w.mode
	e.shard.held++
}

// enqueue adds w to the queue.
func (e *entry) enqueue(w *claim) {
	c := e.crowded()
	w.entry, w.gen = e, c.gen
	c.queue.push(w)
	c.waiting++
	e.shard.stats.waiting++
}

func (e *entry) dequeue(w *claim) {
	e.crowd.queue.remove(w)
	e.crowd.waiting--
	e.shard.stats.waiting--
}

// expel ends the waits in s that which names, for a reason that is not theirs.
func (s *shard) expel(which func(*claim) bool) {
	for e := range s.entries {
		if e.crowd == nil {
			continue
		}
		for w, next := e.crowd.queue.first, (*claim)(nil); w != nil; w = next {
			next = w.next
			if which(w) {
				e.dequeue(w)
				w.client.leave()
				w.state.Store(stateEnded)
				w.tell()
			}
		}
		e.grantNext()
	}
}

// grantNext grants to the front of the queue what it may have now: an
// exclusive request the free key, shared ones a free or shared key, all of them
// up to the first that is exclusive. It follows every change of the holders or
// the queue, in the same critical section.
//
// The token is sent under the mutex: a waiter that gives up decides under it
// whether the grant came first.
func (e *entry) grantNext() {
	c := e.crowd
	if c == nil {
		return
	}
	held := e.held()
	for w := c.queue.first; w != nil; w = c.queue.first {
		if held && (w.mode == ModeExclusive || e.mode == ModeExclusive) {
			return
		}
		e.dequeue(w)
		c.holders.push(w)
		e.mode, held = w.mode, true
		e.shard.held++
		w.state.Store(stateGranted)
		if w.task != nil {
			e.shard.grantTask(w)
		} else {
			w.port <- struct{}{}
		}
	}
}

// tell lets the request know that its claim was ended. Called under the shard's
// mutex.
func (w *claim) tell() {
	if w.task != nil {
		w.task.told()
		return
	}
	w.port <- struct{}{}
}

// grantTask tells a task of its grant and counts it. A request that somebody
// awaits is counted when it resumes; a task may still have to wait for a slot
// then, holding its key. One whose group has ended is going to be dropped, and
// counted then, as if the grant had not come before.
func (s *shard) grantTask(w *claim) {
	if w.task.told() {
		s.countTask(w)
	}
}

// countTask counts the grant of a task's claim. Called under mu.
func (s *shard) countTask(w *claim) {
	now := clock()
	w.noted = true
	s.addWait(elapsed(w.since.Load(), now))
	w.since.Store(now)
	s.taken++
}

// dropInline ends the hold of the holder without a claim.
func (e *entry) dropInline() {
	e.hold = nil
	if e.client != nil {
		e.client.leave()
		e.client = nil
	}
	e.shard.held--
}

// dropHolder ends the hold of w.
func (e *entry) dropHolder(w *claim) {
	w.client.leave()
	e.crowd.holders.remove(w)
	e.shard.held--
}

// settle follows the end of a hold: it hands the key on, or takes the entry out
// of the table.
func (e *entry) settle() {
	e.grantNext()
	if !e.held() {
		e.shard.remove(e)
	}
}
