package processlock

import (
	"context"
	"runtime/pprof"
	"runtime/trace"
	"slices"
)

// getReady makes t, which has its keys, wait for a slot.
func (t *task) getReady() {
	g := t.group
	g.mu.Lock()
	canceled := g.canceled
	if !canceled {
		g.enlist(t)
	}
	g.mu.Unlock()
	if canceled {
		t.drop()
	}
}

// enlist does that under mu.
func (g *Group) enlist(t *task) {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.owned = false
	g.ready.push(t)
	g.dispatch()
}

// take takes t out of those that wait. Called under mu.
func (g *Group) take(t *task) {
	g.waiting.remove(t)
	t.waits = false
}

// run runs t, which has its keys and a slot, in a goroutine of its own.
func (t *task) run() {
	g := t.group
	pprof.SetGoroutineLabels(g.ctx)
	s := &slot{group: g, held: true}
	ctx, c, err := t.start(s)
	if err != nil || c == nil {
		defer s.endAfter()
		t.apart = true
		if c != nil {
			c.Close()
		}
		if err != nil {
			t.refuse(err)
		} else {
			t.drop()
		}
		return
	}
	defer t.finish(s, c, &err)
	t.granted(&err)
	defer endRegion(t.region())
	err = t.fn(ctx)
}

// finish follows fn, however that has ended. It is deferred, like conclude, so
// that a hook that exits the goroutine skips nothing.
func (t *task) finish(s *slot, c *Client, err *error) {
	goOn(recover())
	g := t.group
	defer t.conclude(s, err)
	defer c.Close()
	if *err != nil {
		g.abandon() // before a release lets another task start
	}
	t.release(err)
}

// conclude ends t, which holds nothing any more.
func (t *task) conclude(s *slot, err *error) {
	goOn(recover())
	defer s.end()
	defer t.end(nil)
	if *err != nil {
		t.group.fail(*err)
	}
}

// goOn lets a panic end the process, as [sync.WaitGroup.Go] sees to it: if the
// task ended first, Wait could return and the program exit before.
func goOn(panicked any) {
	if panicked != nil {
		panic(panicked)
	}
}

// start makes t's client and fn's context, and the client the holder of t's
// keys. It returns no client if the group has ended, and an error if
// Client.Close has taken a key back.
func (t *task) start(s *slot) (context.Context, *Client, error) {
	g := t.group
	if g.ended() != nil {
		return nil, nil, nil
	}
	if !t.collect() {
		return nil, nil, g.closedReason()
	}
	c := &Client{name: t.name(), coordinator: g.base.coordinator}
	if g.scope != nil {
		c.outer = g.scope.client
	}
	ctx, cancel := context.WithCancelCause(g.ctx)
	c.cancel = cancel
	ctx = g.scope.with(scope{Context: ctx, client: c, hold: g.base.hold, slot: s})
	v := t.several
	if v == nil {
		if t.claim.entry == nil { // no key
			return ctx, c, nil
		}
		t.claim.hold.Context = ctx
		if !t.claim.adopt(c) || !t.claim.state.CompareAndSwap(stateGranted, stateRunning) {
			return ctx, c, g.closedReason()
		}
		return t.claim.hold, c, nil
	}
	for i, first := 0, true; i < len(v.got.list); i++ {
		if got := v.got.list[i]; !got.reentrant {
			if first {
				got.hold.Context, first = ctx, false
			}
			got.claim.adopt(c)
		}
	}
	v.got.running = v.all.CompareAndSwap(stateTaken, stateRunning)
	if !v.got.running {
		t.key = v.got.revoked(v.keys)
		return ctx, c, g.closedReason()
	}
	return v.got.context(ctx), c, nil
}

// adopt makes c the client of w, which holds its key, or reports that it was
// taken back.
func (w *claim) adopt(c *Client) bool {
	s := w.entry.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.state.Load() == stateRevoked {
		return false
	}
	w.client.leave()
	c.enter()
	w.client = c
	return true
}

// release gives t's keys up after fn has run.
func (t *task) release(err *error) {
	switch {
	case t.several != nil:
		t.several.got.end(err)
	case t.claim.entry != nil:
		g := grant{hold: t.claim.hold, claim: &t.claim}
		if t.claim.sight != nil {
			g.endSeen(t.claim.sight, err)
			return
		}
		g.end(err)
	}
}

// granted tells those who look that t has its keys. If one of them exits the
// goroutine *err says that fn has not run.
func (t *task) granted(err *error) {
	v := t.several
	if t.claim.sight == nil && (v == nil || len(v.got.sights) == 0) {
		return
	}
	*err = &AcquireError{t.key, errUnwound}
	if v == nil {
		t.claim.sight.grantedTo(&t.claim)
	} else {
		v.granted()
	}
	*err = nil
}

func (v *severalKeys) granted() {
	for i, s := range slices.Backward(v.got.sights) {
		defer s.grantedTo(v.got.list[i].claim) // each, whatever the others do
	}
}

// region begins a region of the execution trace, with t's keys in the log.
func (t *task) region() *trace.Region {
	if v := t.several; v != nil {
		return v.got.region()
	}
	return t.claim.sight.region(holdRegion)
}

// grantedTo is granted for a task's claim.
func (t *sight) grantedTo(w *claim) {
	if t != nil {
		t.since = w.since.Load()
		t.granted()
	}
}

// giveUp takes t, whose fn has not run, out of its queue and gives up what it
// has got.
func (t *task) giveUp(why error) {
	if t.timer != nil {
		t.timer.Stop()
	}
	err := &AcquireError{t.key, why}
	w := t.last()
	if w != nil {
		defer w.sight.refused(err) // user code, so when nothing is held any more
		if w.entry != nil {
			w.sight.lookBack(w.entry.shard, w)
			w.entry.shard.forsake(w, t.group.closed())
		}
	}
	if v := t.several; v != nil {
		for i, s := range slices.Backward(v.got.sights) {
			if s != nil {
				s.since = v.got.list[i].claim.since.Load()
				defer s.refused(&AcquireError{v.keys[i], why})
			}
		}
		v.got.sights = nil
		var none error
		v.got.end(&none)
	}
}

// forsake ends a task's claim, wherever it is by now. If it has not been counted
// as granted it is counted as what it ended by: closed, or its context.
func (s *shard) forsake(w *claim, closed bool) {
	if w.wait != nil {
		waits.remove(w.wait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	st := w.state.Load()
	switch st {
	case stateLeft: // counted by whoever took it out
		return
	case stateQueued:
		w.entry.dequeue(w)
		w.client.leave()
		w.entry.grantNext()
	case stateGranted:
		w.sight.blame(w)
		w.entry.dropHolder(w)
		w.entry.settle()
	}
	if !w.noted {
		if closed || st == stateEnded || st == stateRevoked {
			s.stats.closed++
		} else {
			s.stats.canceled++
		}
		s.addWait(elapsed(w.since.Load(), clock()))
	}
	w.state.Store(stateLeft)
	s.report(held)
}

// recount counts a grant that was not expected to come to anything, if that is
// what w's was.
func (s *shard) recount(w *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.noted {
		s.countTask(w)
	}
}

// drop ends t, since its group starts no task any more. What is wrong with the
// group is no error of t's, unless it is that the client was closed under which
// t has asked for a key: then it ends as a call does.
func (t *task) drop() {
	why, closed := t.whyDropped()
	if closed {
		if v := t.several; v != nil && len(v.got.list) == len(v.keys) {
			t.key = v.got.revoked(v.keys)
		}
		t.refuse(why)
		return
	}
	defer t.endAfter(&t.group.dropped)
	t.giveUp(why)
}

func (t *task) whyDropped() (why error, closed bool) {
	g := t.group
	done := false
	defer t.unlessDone(&done)
	if t.key != (Key{}) && g.closed() {
		why, closed = g.closedReason(), true
	} else if why = g.ended(); why == nil {
		why = context.Canceled // by an error that is about to end the context
	}
	done = true
	return why, closed
}

// refuse ends t, which doesn't get its key. err is told by identity: the reason
// of a context may be anything.
func (t *task) refuse(err error) {
	switch err {
	case ErrUnavailable, ErrWaitTimeout, ErrQueueFull:
		defer t.endAfter(&t.group.skipped)
		t.giveUp(err)
	default:
		t.fail(&AcquireError{t.key, err})
	}
}

// fail ends t, which is the group's error.
func (t *task) fail(err *AcquireError) {
	t.group.fail(err)
	defer t.endAfter(nil)
	t.giveUp(err.Err)
}

// endAfter is end for a task whose fn has not run, deferred: it follows user code,
// hooks. In GoLocked a panic of theirs is the caller's.
func (t *task) endAfter(count *int) {
	if t.apart {
		goOn(recover())
	}
	t.end(count)
}

// end takes t off the group's accounts.
func (t *task) end(count *int) {
	g := t.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if count != nil {
		*count++
	}
	if g.left--; g.left == 0 && g.done != nil {
		g.waited = true
		close(g.done)
	}
}
