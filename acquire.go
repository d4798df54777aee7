package processlock

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// call is one call of WithLock: what is asked for, and by whom.
type call struct {
	ctx         context.Context
	coordinator *Coordinator
	client      *Client // the innermost of coordinator
	hold        *hold   // the innermost of ctx's lineage
	slot        *slot   // of the Group task that ctx is of
	fn          uintptr
	settings
}

// place fills in what ctx carries: the coordinator (unless c is given), the
// client and the lineage.
func (q *call) place(ctx context.Context, c *Coordinator) {
	q.ctx = ctx
	h, s := lineageOf(ctx)
	q.hold = h
	if s != nil {
		if c == nil {
			c = s.coordinator
		}
		q.client = s.client
		q.slot = s.slot
	}
	if c == nil {
		c = defaultCoordinator
	}
	if c.self.Load() == nil {
		c.start()
	}
	q.coordinator = c
	for q.client != nil && q.client.coordinator != c {
		q.client = q.client.outer
	}
}

// lock runs fn under k.
func (q *call) lock(k Key, fn func(context.Context) error) (err error) {
	if err := ended(q.ctx); err != nil {
		return &AcquireError{k, err}
	}
	if q.coordinator.looked() {
		return q.lockSeen(k, fn)
	}
	g := grant{hold: &hold{Context: q.ctx}}
	hash := k.hash()
	s := q.coordinator.shardOf(hash)
	if q.coordinator.options.TrackHolds || !q.take(s, &k, hash, g.hold) {
		if err := q.contend(s, &k, hash, &g); err != nil {
			return &AcquireError{k, err}
		}
	}
	defer g.end(&err)
	if g.reentrant {
		return fn(q.ctx)
	}
	return fn(g.hold)
}

// lockSeen does what remains of lock where somebody looks.
//
//go:noinline
func (q *call) lockSeen(k Key, fn func(context.Context) error) (err error) {
	g := grant{hold: &hold{Context: q.ctx}}
	t := q.sight(k)
	a := attempt{call: *q, sight: t}
	if err := a.contendSeen(&k, &g); err != nil {
		return err
	}
	if g.reentrant {
		defer g.end(&err)
		return fn(q.ctx)
	}
	defer g.endSeen(t, &err)
	t.granted()
	defer endRegion(t.region(holdRegion))
	return fn(g.hold)
}

// take makes h the holder of k if that is free and nothing else is in the way.
func (q *call) take(s *shard, k *Key, hash uint64, h *hold) bool {
	s.mu.Lock()
	// Nearly always the shard is empty, and its inline entry spares the table.
	if s.closed || s.held != 0 && s.find(k, hash) != nil || !q.client.enter() {
		s.mu.Unlock()
		return false
	}
	e := &s.inline
	if s.held == 0 {
		e.set(k, hash)
	} else {
		e = s.insert(k, hash)
	}
	e.hold, e.fn, e.mode = h, q.fn, q.mode
	if q.client != nil { // spares a write barrier
		e.client = q.client
	}
	h.entry = e
	s.held++
	s.taken++
	s.mu.Unlock()
	return true
}

// contend obtains k for a call that take did not serve. Inlined it would make
// lock's frame four times as large.
//
//go:noinline
func (q *call) contend(s *shard, k *Key, hash uint64, g *grant) error {
	a := attempt{call: *q}
	return a.contend(s, k, hash, g)
}

// attempt is what a call needs when it does not find its key free, or has
// several.
type attempt struct {
	call                 // copied: through a pointer every call would escape
	taken []*hold        // All: what the call holds so far
	all   *atomic.Uint32 // All: no hold runs until all are there

	// own is the claim to use for the call of a Group task, which nobody awaits.
	own *claim

	sight *sight // nil: nobody looks

	timer *time.Timer // of MaxWait, from the first wait on

	// lineage is ctx's, read when somebody has to wait: reading is user code.
	lineage []*hold
	read    bool
	// passing is set where the call would wait for its own lineage, but for the
	// fact that all who keep it waiting are about to leave.
	passing bool
	// exempt from Shutdown, since the lineage holds a key of coordinator.
	exempt, asked bool
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

// contend takes k, waits for it, or returns the reason why not. g.hold is the
// hold to be; on success g is what to release.
func (a *attempt) contend(s *shard, k *Key, hash uint64, g *grant) error {
	w, err := a.ask(s, k, hash, g)
	if w == nil {
		return err
	}
	return a.await(s, w, g)
}

// ask takes k, or queues for it and returns the claim that waits, or returns
// the reason why not. If the claim is in the wait-for graph, the graph's mutex
// is held on return, for its search.
//
// Some things can't be done under the shard's mutex: user code (reading the
// lineage), what locks other shards, the graph's mutex (which comes first), the
// slow making of a port and reading of the clock. Each is done with the mutex
// given up, after which the request looks at its key anew; each is needed once.
func (a *attempt) ask(s *shard, k *Key, hash uint64, g *grant) (*claim, error) {
	h := g.hold
	a.passing = false
	settled := false
	defer func() {
		if !settled { // user code panicked
			s.count(&s.stats.canceled)
		}
	}()
	var port *claim // with a port, in case the queue has none to spare
	graph := false  // the request enters the wait-for graph
	var start int64 // when it began to wait, if it has to
	if a.all == nil && a.mode == ModeExclusive && !a.ifAvailable && !a.coordinator.options.TrackHolds && a.sight == nil {
		start = clock() // take has seen the key held, so it nearly always will
	}
	for {
		if graph {
			waits.mu.Lock()
		}
		s.mu.Lock()
		v, e, err := a.look(s, k, hash, g)
		if v == mustWait && graph == a.nested() && start != 0 {
			w := port
			switch {
			case a.own != nil:
				w = a.own
			case w == nil && e.crowd != nil:
				w = e.crowd.takeSpare()
			}
			// If the client has closed since look, the next look says so.
			if w != nil && a.client.enter() {
				a.queue(s, e, w, h, start)
				s.mu.Unlock()
				settled = true
				return w, nil
			}
		}
		var own step
		var passes bool
		var ahead []context.Context
		if v == isOwn {
			own = e.stepOf(a.ownIn(e))
			passes, ahead = e.passes(a.mode, nil)
		}
		s.mu.Unlock()
		if graph {
			waits.mu.Unlock()
		}
		switch v {
		case mustRead:
			a.readLineage()
			continue
		case mustAsk:
			a.readLineage()
			a.exempt, a.asked = a.coordinator.holdsAny(a.lineage), true
			continue
		case mustWait:
			graph = a.nested()
			if port == nil && a.own == nil {
				port = newClaim()
			}
			if start == 0 {
				start = clock()
			}
			continue
		case isOwn:
			if passes && allEnded(ahead) {
				a.passing = true
				continue
			}
			s.count(&s.stats.deadlocks)
			err = &DeadlockError{Cycle: []Wait{own.wait()}}
		}
		if port != nil {
			port.discard()
		}
		settled = true
		if err == ErrClosed {
			err = a.closedReason()
		}
		return nil, err
	}
}

// look decides what becomes of a request, in the order that the contract
// gives, and takes the key if it is to be had. Called under s.mu.
func (a *attempt) look(s *shard, k *Key, hash uint64, g *grant) (verdict, *entry, error) {
	if s.closed && !a.exempt {
		if a.hold != nil && !a.asked {
			return mustAsk, nil, nil
		}
		return isRefused, nil, ErrClosed
	}
	if a.client.closed() {
		return isRefused, nil, ErrClosed
	}
	e := s.find(k, hash)
	blocked := e != nil && !e.admits(a.mode)
	if a.hold != nil && !a.read && (blocked && !a.ifAvailable || e != nil && a.reentrant) {
		return mustRead, e, nil
	}
	if e != nil && a.reentrant {
		if own := a.ownIn(e); own != nil && (e.mode == ModeExclusive || a.mode == ModeShared) {
			s.taken++
			g.hold, g.reentrant = own, true
			return isGranted, e, nil
		}
	}
	switch {
	case !blocked:
		return a.enter(s, e, k, hash, g)
	case a.ifAvailable:
		s.stats.unavailable++
		return isRefused, e, ErrUnavailable
	case !a.passing && a.waitsForOwn(e):
		return isOwn, e, nil
	}
	if most := a.coordinator.options.MaxWaiters; most > 0 && e.crowd != nil && e.crowd.waiting >= most {
		s.stats.unavailable++
		return isRefused, e, ErrQueueFull
	}
	return mustWait, e, nil
}

// enter makes g.hold a holder of k, whose entry is e if it has one.
func (a *attempt) enter(s *shard, e *entry, k *Key, hash uint64, g *grant) (verdict, *entry, error) {
	if !a.client.enter() {
		return isRefused, e, ErrClosed
	}
	if s.closed && !a.coordinator.drain.rise() {
		a.client.leave()
		return isRefused, e, ErrClosed
	}
	if e == nil {
		e = s.insert(k, hash)
	}
	h := g.hold
	h.entry = e
	w := a.own
	if w == nil {
		w = s.portless()
	} else {
		w.noted = true
	}
	w.hold, w.client, w.fn, w.mode, w.all = h, a.client, a.fn, a.mode, a.all
	w.state.Store(a.resumed())
	w.since.Store(0)
	if a.sight != nil || a.coordinator.options.TrackHolds {
		w.since.Store(clock())
	}
	if a.sight != nil {
		a.sight.since = w.since.Load()
		w.sight = a.sight
	}
	e.join(w)
	s.taken++
	g.claim = w
	return isGranted, e, nil
}

// resumed is the state of a claim that has its key.
func (a *attempt) resumed() uint32 {
	switch {
	case a.all != nil:
		return stateTaken
	case a.own != nil:
		return stateGranted // until it gets a goroutine
	}
	return stateRunning
}

// nested reports whether the request holds something while it waits, itself or
// through the fn that it was made in.
func (a *attempt) nested() bool { return len(a.lineage) > 0 || len(a.taken) > 0 }

func (a *attempt) readLineage() {
	if a.read {
		return
	}
	for h := a.hold; h != nil; h = h.outer() {
		// fn may have returned while its context lives on.
		if _, ok := h.live(); ok {
			a.lineage = append(a.lineage, h)
		}
	}
	a.read = true
}

// waitsForOwn reports whether the lineage holds e and will go on to: a hold
// whose client is being closed is about to be handed on.
func (a *attempt) waitsForOwn(e *entry) bool {
	own := a.ownIn(e)
	return own != nil && !e.stepOf(own).client.closed()
}

// ownIn returns the hold of the lineage that holds e, or nil. Of several it is
// the innermost.
func (a *attempt) ownIn(e *entry) *hold {
	for _, h := range a.lineage {
		if h.entry == e && e.heldBy(h) {
			return h
		}
	}
	return nil
}

// queue puts the request at the end of e's queue. It is called under s.mu, and
// under the graph's mutex if the request is nested.
func (a *attempt) queue(s *shard, e *entry, w *claim, h *hold, start int64) {
	h.entry = e
	w.hold, w.client, w.fn, w.mode, w.all = h, a.client, a.fn, a.mode, a.all
	w.state.Store(stateQueued)
	w.since.Store(start)
	e.enqueue(w)
	if a.sight != nil {
		a.sight.start = start
		a.sight.look(e)
		w.sight = a.sight
	}
	if a.nested() {
		w.wait = &wait{
			ctx:     a.ctx,
			client:  a.client,
			claim:   w,
			shard:   s,
			lineage: slices.Concat(a.lineage, a.taken),
			outside: len(a.lineage),
		}
		waits.add(w.wait)
		return // counted once it is known not to be a deadlock
	}
	s.stats.waited++
}
