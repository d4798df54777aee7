package processlock

import (
	"context"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"time"
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
		if v := t.several; v != nil && v.reentrant { // it may ask again
			v.maxWait -= time.Duration(elapsed(v.timed, clock()))
		}
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
	t.apart = true
	ctx, c, err := t.begin(s)
	if err != nil || c == nil {
		defer s.endAfter()
		if c != nil {
			c.Close()
		}
		switch err {
		case nil:
			t.drop()
		case errGone:
			t.askAgain()
		default:
			t.refuse(err)
		}
		return
	}
	defer t.finish(s, c, &err)
	t.granted(&err)
	defer endRegion(t.region())
	err = t.fn(ctx)
}

// finish follows fn, however that has ended. It is deferred, like conclude, so
// that a hook that exits the goroutine skips nothing. Hooks come last, those of
// Client.Close too: they may take their time, and those who run are to know of an
// error now.
func (t *task) finish(s *slot, c *Client, err *error) {
	goOn(recover())
	g := t.group
	defer t.conclude(s)
	if *err != nil {
		g.abandon() // before a release lets another task start
	}
	defer t.released(t.release(err))
	if c.rows.Or(clientClosed) != 0 {
		defer c.drop()
	}
	c.cancel(ErrClosed)
	if *err != nil {
		g.fail(*err)
	}
}

// conclude ends t, which holds nothing any more.
func (t *task) conclude(s *slot) {
	goOn(recover())
	defer s.end()
	t.end(nil)
}

// goOn lets a panic end the process, as [sync.WaitGroup.Go] sees to it: if the
// task ended first, Wait could return and the program exit before.
func goOn(panicked any) {
	if panicked != nil {
		panic(panicked)
	}
}

// begin is start, which asks the group's contexts: user code.
func (t *task) begin(s *slot) (context.Context, *Client, error) {
	done := false
	defer s.endUnless(&done)
	defer t.unlessDone(&done)
	ctx, c, err := t.start(s)
	done = true
	return ctx, c, err
}

// start makes t's client and fn's context, and the client the holder of t's
// keys. It returns no client if the group has ended, and an error if
// Client.Close has taken a key back, or errGone.
func (t *task) start(s *slot) (context.Context, *Client, error) {
	g := t.group
	if g.ended() != nil {
		return nil, nil, nil
	}
	if !t.collect() {
		return nil, nil, g.closedReason()
	}
	if t.several.gone() {
		return nil, nil, errGone
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

// release gives t's keys up after fn has run, and returns when, if somebody
// looks.
func (t *task) release(err *error) (now int64) {
	switch v := t.several; {
	case v != nil:
		v.got.release(err)
		return v.got.now()
	case t.claim.entry != nil:
		g := grant{hold: t.claim.hold, claim: &t.claim}
		if !g.release(t.claim.sight) {
			*err = lost(*err)
		}
		if t.claim.sight != nil {
			return clock()
		}
	}
	return 0
}

// released tells those who look that t has given its keys up.
func (t *task) released(now int64) {
	if v := t.several; v != nil {
		v.got.released(now)
	} else {
		t.claim.sight.released(now)
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
