package processlock

import (
	"context"
	"errors"
	"slices"
	"time"
)

// call is one call of WithLock.
type call struct {
	ctx         context.Context
	parent      context.Context // of the next hold: ctx, or the hold before it
	coordinator *Coordinator
	client      *Client // the innermost of coordinator
	hold        *hold   // the innermost of ctx's lineage
	fn          uintptr
	settings

	several bool    // All: no hold runs until all are there
	taken   []*hold // All: what the call holds so far

	timer *time.Timer // of MaxWait, from the first wait on

	// lineage is ctx's, read when somebody has to wait; read calls user code.
	lineage []*hold
	read    bool
	// exempt from Shutdown, since the lineage holds a key of coordinator.
	exempt, asked bool
}

// place fills in what ctx carries: the coordinator (unless c is given), the
// client and the lineage.
func (q *call) place(ctx context.Context, c *Coordinator) {
	h, s := lineageOf(ctx)
	if c == nil {
		if c = s.coordinator; c == nil {
			c = defaultCoordinator
		}
	}
	if c.self.Load() == nil {
		c.start()
	}
	cl := s.client
	for cl != nil && cl.coordinator != c {
		cl = cl.outer
	}
	q.ctx, q.parent, q.coordinator, q.client, q.hold = ctx, ctx, c, cl, h
}

// acquire obtains k, or returns the reason why not. On success g is what to
// release.
func (q *call) acquire(k Key, g *grant) error {
	h := &hold{Context: q.parent}
	hash := k.hash()
	s := q.coordinator.shardOf(hash)
	if !q.several && !q.coordinator.options.TrackHolds {
		s.mu.Lock()
		if !s.closed && s.find(&k, hash) == nil && q.client.enter() {
			e := s.insert(&k, hash)
			e.hold, e.client, e.fn, e.mode = h, q.client, q.fn, q.mode
			h.entry = e
			s.held++
			s.taken++
			s.mu.Unlock()
			*g = grant{ctx: h, hold: h}
			return nil
		}
		s.mu.Unlock()
	}
	return q.contend(s, &k, hash, h, g)
}

// verdict is what becomes of a request that looks at its key.
type verdict uint8

const (
	isGranted verdict = iota
	isRefused         // for the reason given
	isOwn             // held by the request's own lineage: it would wait for itself
	mustWait          // in the queue
	mustRead          // the lineage first
	mustAsk           // whether the call is exempt: the shard is closed
)

// contend is acquire for whatever is not the plain lock of a free key.
//
// Some things can't be done under the shard's mutex: user code (reading the
// lineage), what locks other shards, the graph's mutex (which comes first), the
// slow making of a port. Each is done with the mutex given up, after which the
// request looks at its key anew; each is needed once.
func (q *call) contend(s *shard, k *Key, hash uint64, h *hold, g *grant) error {
	var port *claim // with a port, in case the queue has none to spare
	graph := false  // the request enters the wait-for graph
	for {
		if graph {
			waits.mu.Lock()
		}
		s.mu.Lock()
		v, e, err := q.look(s, k, hash, h, g)
		if v == mustWait && graph == q.nested() {
			w := port
			if w == nil && e.crowd != nil {
				w = e.crowd.takeSpare()
			}
			// If the client has closed since look, the next look says so.
			if w != nil && q.client.enter() {
				q.queue(s, e, w, h)
				s.mu.Unlock()
				return q.await(s, w, g)
			}
		}
		var own step
		if v == isOwn {
			own = e.stepOf(q.ownIn(e))
			s.stats.deadlocks++
		}
		s.mu.Unlock()
		if graph {
			waits.mu.Unlock()
		}
		switch v {
		case mustRead:
			q.readLineage()
			continue
		case mustAsk:
			q.readLineage()
			q.exempt, q.asked = q.coordinator.holdsAny(q.lineage), true
			continue
		case mustWait:
			if graph = q.nested(); port == nil {
				port = newClaim()
			}
			continue
		case isOwn:
			err = &DeadlockError{Cycle: []Wait{own.wait()}}
		}
		if port != nil {
			port.discard()
		}
		return err
	}
}

// look decides what becomes of a request, in the order that the contract
// gives, and takes the key if it is to be had. Called under s.mu.
func (q *call) look(s *shard, k *Key, hash uint64, h *hold, g *grant) (verdict, *entry, error) {
	if s.closed && !q.exempt {
		if q.hold != nil && !q.asked {
			return mustAsk, nil, nil
		}
		return isRefused, nil, ErrClosed
	}
	if q.client.closed() {
		return isRefused, nil, ErrClosed
	}
	e := s.find(k, hash)
	blocked := e != nil && !e.admits(q.mode)
	if q.hold != nil && !q.read && (blocked && !q.ifAvailable || e != nil && q.reentrant) {
		return mustRead, e, nil
	}
	if e != nil && q.reentrant {
		if own := q.ownIn(e); own != nil && (e.mode == ModeExclusive || q.mode == ModeShared) {
			s.taken++
			*g = grant{ctx: q.parent, hold: own, reentrant: true}
			return isGranted, e, nil
		}
	}
	switch {
	case !blocked:
		return q.enter(s, e, k, hash, h, g)
	case q.ifAvailable:
		s.stats.unavailable++
		return isRefused, e, ErrUnavailable
	case q.ownIn(e) != nil:
		return isOwn, e, nil
	}
	if most := q.coordinator.options.MaxWaiters; most > 0 && e.crowd != nil && e.crowd.waiting >= most {
		s.stats.unavailable++
		return isRefused, e, ErrQueueFull
	}
	return mustWait, e, nil
}

// enter makes h a holder of k, whose entry is e if it has one.
func (q *call) enter(s *shard, e *entry, k *Key, hash uint64, h *hold, g *grant) (verdict, *entry, error) {
	if !q.client.enter() {
		return isRefused, e, ErrClosed
	}
	if s.closed && !q.coordinator.drain.rise() {
		q.client.leave()
		return isRefused, e, ErrClosed
	}
	if e == nil {
		e = s.insert(k, hash)
	}
	h.entry = e
	w := s.portless()
	w.hold, w.client, w.fn, w.mode = h, q.client, q.fn, q.mode
	w.state.Store(q.resumed())
	if q.coordinator.options.TrackHolds {
		w.since.Store(clock())
	}
	e.join(w)
	s.taken++
	*g = grant{ctx: h, hold: h, claim: w}
	return isGranted, e, nil
}

// resumed is the state of a claim that has its key.
func (q *call) resumed() uint32 {
	if q.several {
		return stateTaken
	}
	return stateRunning
}

// nested reports whether the request holds something while it waits, itself or
// through the fn that it was made in.
func (q *call) nested() bool { return len(q.lineage) > 0 || len(q.taken) > 0 }

func (q *call) readLineage() {
	if q.read {
		return
	}
	for h := q.hold; h != nil; h = h.outer() {
		// fn may have returned while its context lives on.
		if _, ok := h.live(); ok {
			q.lineage = append(q.lineage, h)
		}
	}
	q.read = true
}

// ownIn returns the hold of the lineage that holds e, or nil. Of several it is
// the innermost.
func (q *call) ownIn(e *entry) *hold {
	for _, h := range q.lineage {
		if h.entry == e && e.heldBy(h) {
			return h
		}
	}
	return nil
}

// queue puts the request at the end of e's queue. It is called under s.mu, and
// under the graph's mutex if the request is nested.
func (q *call) queue(s *shard, e *entry, w *claim, h *hold) {
	h.entry = e
	w.hold, w.client, w.fn, w.mode = h, q.client, q.fn, q.mode
	w.state.Store(stateQueued)
	w.since.Store(0)
	e.enqueue(w)
	if q.nested() {
		w.wait = &wait{
			ctx:     q.ctx,
			claim:   w,
			shard:   s,
			lineage: slices.Concat(q.lineage, q.taken),
			outside: len(q.lineage),
		}
		waits.add(w.wait)
		return // counted once it is known not to be a deadlock
	}
	s.stats.waited++
}

// await waits for w's turn. It runs user code, the methods of ctx, so whatever
// way it ends but by a grant, w leaves the queue or passes the key on.
func (q *call) await(s *shard, w *claim, g *grant) (err error) {
	start := clock()
	w.since.CompareAndSwap(0, start)
	count := &s.stats.canceled
	resumed, waited := false, w.wait == nil
	defer func() {
		if !q.several {
			q.stopTimer()
		}
		if !resumed {
			s.withdraw(w, count)
			if waited {
				s.addWait(elapsed(start, clock()))
			}
		}
	}()
	if w.wait != nil {
		if err := w.wait.search(); err != nil {
			count = &s.stats.deadlocks
			return err
		}
		s.mu.Lock()
		s.stats.waited++
		s.mu.Unlock()
		waited = true
	}

	timedOut := false
	if done, expired := q.ctx.Done(), q.expired(); done == nil && expired == nil {
		<-w.port
	} else {
		select {
		case <-w.port:
		case <-done:
		case <-expired:
			// If the grant came first it counts.
			if timedOut = s.leave(w); !timedOut {
				<-w.port
			}
		}
	}

	// Grant or not, a context that is done wins.
	if err := ended(q.ctx); err != nil {
		if q.client.closed() && errors.Is(err, ErrClosed) {
			count = &s.stats.closed
		}
		return err
	}
	if timedOut {
		count = &s.stats.unavailable
		return ErrWaitTimeout
	}
	if !w.proceed(q.resumed()) {
		count = &s.stats.closed
		return ErrClosed
	}
	resumed = true
	now := clock()
	w.since.Store(now)
	s.stats.resumed.Add(1)
	s.addWait(elapsed(start, now))
	if w.wait != nil {
		waits.remove(w.wait)
	}
	*g = grant{ctx: w.hold, hold: w.hold, claim: w}
	return nil
}

// expired returns the channel of MaxWait's timer, or nil.
func (q *call) expired() <-chan time.Time {
	if q.maxWait == 0 {
		return nil
	}
	if q.timer == nil {
		q.timer = time.NewTimer(q.maxWait)
	}
	return q.timer.C
}

func (q *call) stopTimer() {
	if q.timer != nil {
		q.timer.Stop()
	}
}

// leave takes w out of its queue, if it is still there.
func (s *shard) leave(w *claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.state.Load() != stateQueued {
		return false
	}
	held := s.held
	w.entry.dequeue(w)
	w.client.leave()
	w.state.Store(stateLeft)
	w.entry.grantNext()
	s.report(held)
	return true
}

// withdraw ends a wait that did not come to anything, wherever w is by now, and
// counts it.
func (s *shard) withdraw(w *claim, count *int64) {
	if w.wait != nil {
		waits.remove(w.wait) // while w still is what the graph takes it for
	}
	s.leave(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	*count++
	var c *crowd
	if w.state.Load() == stateGranted {
		held := s.held
		e := w.entry
		e.dropHolder(w)
		e.settle()
		s.report(held)
		c = e.crowd
	}
	select { // a token that nobody waited for
	case <-w.port:
	default:
	}
	s.recycle(w, c)
}
