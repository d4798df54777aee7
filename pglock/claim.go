package pglock

import (
	"context"
	"slices"
	"time"

	"github.com/dbx-tools/processlock"
)

// claim is a request whose turn among this process's goroutines has come.
type claim struct {
	r    *request
	own  bool
	hold *hold
	try  bool

	// Set once the claim is settled, before a token in ch. Until somebody waits
	// for it there is no ch.
	settled bool
	err     error
	ch      chan struct{}
}

// acquire obtains the lock on the server for h, or returns why not.
func (r *request) acquire(h *hold, own bool) (err error) {
	l, e := r.l, r.e
	c := &claim{r: r, own: own, hold: h, try: r.call.req.IfAvailable}
	l.mu.Lock()
	if l.closing && !r.exempt() {
		l.mu.Unlock()
		return processlock.ErrClosed
	}
	var mine *session
	if own {
		e.askOwn(c)
	} else {
		e.claims = append(e.claims, c)
		l.inline = &mine
		e.progress()
		l.inline = nil
	}
	if c.settled && mine == nil {
		l.mu.Unlock()
		return c.err // passed on in this process: the core has looked at ctx
	}
	c.ch = make(chan struct{}, 1)
	if c.settled {
		c.ch <- struct{}{}
	}
	l.mu.Unlock()

	ours := false
	defer func() { // also when a method of the context panics
		if ours {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if !c.settled {
			c.leave(err)
		} else if c.err == nil {
			e.drop(h)
		}
	}()
	if mine != nil {
		mine.standIn()
	}
	began := time.Now()
	err = c.await(h)
	// After a moment's wait this isn't asked: a client that was closed meanwhile is
	// as good as one that is closed when fn has begun.
	if err == nil && time.Since(began) > tick && !heldStill(l.local, h, r.ref.id) {
		err = processlock.ErrClosed
	}
	ours = err == nil
	return err
}

// await waits until c is settled, its context is done or its time is up. A
// context that is done counts more than a grant; the time that is up less.
func (c *claim) await(h *hold) error {
	var expired <-chan time.Time
	if d := c.r.call.deadline; !d.IsZero() {
		t := time.NewTimer(time.Until(d))
		defer t.Stop()
		expired = t.C
	}
	// h is the caller's context, with the client's end and a loss in it.
	canceled := false
	select {
	case <-c.ch:
	case <-c.r.Done():
		canceled = true
	case <-expired:
		c.r.l.mu.Lock()
		if !c.settled {
			c.leave(processlock.ErrWaitTimeout)
		}
		c.r.l.mu.Unlock()
	}
	if err := ended(c.r); err != nil {
		return err
	}
	if canceled {
		return context.Canceled
	}
	c.r.l.mu.Lock()
	defer c.r.l.mu.Unlock()
	return c.err
}

// leave takes c out, for the reason err. Called under mu.
func (c *claim) leave(err error) {
	e := c.r.e
	e.claims = slices.DeleteFunc(e.claims, func(o *claim) bool { return o == c })
	c.settled, c.err = true, err
	c.r.settle()
	e.nudge()
	e.progress()
}

// heldStill reports whether ctx descends from a hold of id in local that is
// there. A client that was closed meanwhile has lost it.
func heldStill(local *processlock.Coordinator, ctx context.Context, id int64) bool {
	held := false
	ctx = context.WithoutCancel(ctx)
	_ = local.WithLock(ctx, localKey(id), func(inner context.Context) error {
		held = inner == ctx
		return nil
	}, processlock.Reentrant, processlock.Shared, processlock.IfAvailable)
	return held
}

func (c *claim) settle(err error) {
	c.settled, c.err = true, err
	c.r.settle()
	if c.ch != nil {
		c.ch <- struct{}{}
	}
}

// refuse ends the wait of r, whose lineage is not empty, with err, wherever it
// is. Called under mu; the caller calls end after it has given that up.
func (r *request) refuse(err error) (end func()) {
	e := r.e
	claims := slices.Clone(e.claims)
	for _, w := range e.waits {
		if w.claim != nil {
			claims = append(claims, w.claim)
		}
	}
	i := slices.IndexFunc(claims, func(c *claim) bool { return c.r == r && !c.settled })
	if i < 0 { // it is in the core's queue, or on its way from there
		r.victim = err
		delete(e.nested, r)
		return func() { r.end(err) }
	}
	c := claims[i]
	e.claims = slices.DeleteFunc(e.claims, func(o *claim) bool { return o == c })
	c.settle(err)
	e.progress()
	return func() {}
}

// refuse ends the claims that a closed Locker does not serve. Called under mu.
func (e *entry) refuse() {
	for _, w := range e.waits {
		if c := w.claim; c != nil && !c.settled && !c.r.exempt() {
			c.settle(processlock.ErrClosed)
		}
	}
	keep := e.claims[:0]
	for _, c := range slices.Clone(e.claims) {
		if c.r.exempt() {
			keep = append(keep, c)
		} else {
			c.settle(processlock.ErrClosed)
		}
	}
	e.claims = keep
	e.nudge()
}
