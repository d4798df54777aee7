package pglock

import (
	"context"
	"errors"
	"math/big"
	"time"

	"github.com/dbx-tools/processlock"
)

// call is one call of WithLock, WithConn or WithTx: what is asked for, and what
// becomes of it.
type call struct {
	l     *Locker
	own   bool   // fn works on the session that holds the (last) key
	begin string // WithTx: the statement that follows the lock
	fn    uintptr
	run   func(ctx context.Context, h *hold) error

	req      processlock.Request
	ids      []int64
	deadline time.Time // of MaxWait
	last     *hold     // of the last key

	ran    bool  // fn was started
	failed error // why it wasn't
}

// start reads the key and the options, and runs fn under all keys.
func (c *call) start(ctx context.Context, key any, opts []processlock.Option) error {
	if err := c.read(ctx, key, opts); err != nil {
		return err
	}
	if len(c.ids) == 0 && c.own {
		return &processlock.AcquireError{Err: errors.New("pglock: All of no keys has no session to work on; use WithLock")}
	}
	return c.lock(ctx, 0)
}

// read reads the key and the options.
func (c *call) read(ctx context.Context, key any, opts []processlock.Option) error {
	req, err := processlock.Resolve(key, opts...)
	var first processlock.Key
	if len(req.Keys) > 0 {
		first = req.Keys[0]
	}
	// A done context counts before a bad key.
	switch e := ended(ctx); {
	case e != nil && first != (processlock.Key{}):
		return refusal(first, c.l.id(first), e)
	case e != nil:
		return &processlock.AcquireError{Err: e}
	}
	if err != nil {
		return err
	}
	c.req = req
	c.dedupe()
	if req.MaxWait > 0 {
		c.deadline = time.Now().Add(req.MaxWait)
	}
	return nil
}

// dedupe drops keys that are the same lock to the server.
func (c *call) dedupe() {
	keys := c.req.Keys[:0]
	for _, k := range c.req.Keys {
		id := c.l.id(k)
		again := false
		for _, other := range c.ids {
			again = again || other == id
		}
		if !again {
			keys, c.ids = append(keys, k), append(c.ids, id)
		}
	}
	c.req.Keys = keys
}

// request is a call's request for one of its keys. It is the context that the
// core sees: by it we know our own context again, and can end the wait.
type request struct {
	joint
	l      *Locker
	call   *call
	e      *entry
	ref    lockRef
	key    processlock.Key
	outer  *hold // innermost of the lineage
	nested bool  // the lineage, ours or the core's, is not empty

	// Guarded by l.mu.
	pending bool  // counted in e.pending
	victim  error // why its wait was ended by us
}

// newRequest reads the lineage of ctx. The core's says whether there is one:
// processlock.Detach hides that, and ours has to follow.
func newRequest(l *Locker, ctx context.Context) *request {
	r := &request{l: l}
	r.Context, r.base = ctx, ctx
	if !detached(r) {
		r.nested = true
		r.outer = lineageOf(ctx)
	}
	// Only a wait that may be part of a deadlock is ever ended by us.
	r.shut = !r.nested
	return r
}

// lineageOf returns the innermost hold of ctx that still holds, unless a Detach
// lies between, which shows in that the core doesn't take ctx for a descendant of
// its own hold of the key. (The holds outward of it were read when it was made.)
func lineageOf(ctx context.Context) *hold {
	h, _ := ctx.Value(lineageKey{}).(*hold)
	for inner := range h.lineage {
		if heldStill(inner.l.local, ctx, inner.ref.id) {
			return inner
		}
		return nil
	}
	return nil
}

// detached reports whether r's context descends from no fn of the core's.
func detached(r *request) bool { return processlock.Detach(r) == context.Context(r) }

// exempt reports whether the lineage holds a key of the Locker.
func (r *request) exempt() bool {
	for h := range r.outer.lineage {
		if h.l == r.l {
			return true
		}
	}
	return false
}

// holding returns the hold of the lineage that holds id in the Locker, or nil.
func (r *request) holding(id int64) *hold {
	for h := range r.outer.lineage {
		if h.l == r.l && h.ref.id == id {
			return h
		}
	}
	return nil
}

// localKey is the name of an id among the goroutines of this process.
func localKey(id int64) *big.Int { return big.NewInt(id) }

// lock runs fn under the keys from the i'th on. Each is taken inside the one
// before it, so that they are released in reverse, however fn ends.
func (c *call) lock(ctx context.Context, i int) error {
	if i == len(c.ids) {
		c.ran = true
		return c.run(ctx, c.last)
	}
	r := newRequest(c.l, ctx)
	r.call, r.key = c, c.req.Keys[i]
	r.ref = lockRef{c.ids[i], c.req.Mode}
	if err := r.enter(); err != nil {
		return c.fail(r, err)
	}
	defer r.leave()
	err := c.l.local.WithLock(r, localKey(r.ref.id), func(ctx context.Context) error {
		if ctx == context.Context(r) {
			return r.again(i)
		}
		return r.inside(ctx, i)
	}, c.options()...)
	switch {
	case c.ran:
		return err
	case c.failed != nil:
		return c.failed
	default: // the core refused
		return c.fail(r, err)
	}
}

// options are the call's for the queue of this process.
func (c *call) options() []processlock.Option {
	opts := make([]processlock.Option, 0, 3)
	if c.req.Mode == processlock.ModeShared {
		opts = append(opts, processlock.Shared)
	}
	if c.req.Reentrant {
		opts = append(opts, processlock.Reentrant)
	}
	switch {
	case c.req.IfAvailable:
		opts = append(opts, processlock.IfAvailable)
	case !c.deadline.IsZero():
		opts = append(opts, processlock.MaxWait(time.Until(c.deadline)))
	}
	return opts
}

// fail notes why fn did not run: the reason, or an AcquireError of the core's,
// whose key is none that the caller knows.
func (c *call) fail(r *request, err error) error {
	err = reason(err)
	c.l.mu.Lock()
	if r.victim != nil {
		err = r.victim
	}
	c.l.mu.Unlock()
	if d, ok := err.(*processlock.DeadlockError); ok {
		err = c.l.translate(d, r)
	}
	// Time that was up before the last key was asked for looks like a try.
	if err == processlock.ErrUnavailable && !c.req.IfAvailable && !c.deadline.IsZero() {
		err = processlock.ErrWaitTimeout
	}
	c.failed = refusal(r.key, r.ref.id, err)
	return c.failed
}

// inside is called when the turn among this process's goroutines has come.
func (r *request) inside(ctx context.Context, i int) (err error) {
	c := r.call
	h := &hold{l: r.l, call: c, ref: r.ref, key: r.key, fn: c.fn, outer: r.outer}
	h.Context, h.base = ctx, r.base // which ends when ctx does
	if err := r.acquire(h, c.ownAt(i)); err != nil {
		return c.fail(r, err)
	}
	defer func() {
		ok := h.release()
		if !c.ran {
			return
		}
		if err == nil {
			err = h.lease.commitErr
		}
		if !ok {
			err = h.withLoss(err)
		}
	}()
	r.close(true) // perhaps user code
	c.last = h
	return c.lock(h, i+1)
}

// again is called where the lineage holds the key and the call is Reentrant.
func (r *request) again(i int) (err error) {
	c := r.call
	r.close(true)
	h := r.holding(r.ref.id)
	if h == nil {
		return c.fail(r, errForeign)
	}
	if c.ownAt(i) && !h.lease.own {
		return c.fail(r, errNoLend)
	}
	r.l.mu.Lock()
	r.settle()
	r.l.mu.Unlock()
	defer func() {
		if c.ran && h.isLost() && !errors.Is(err, processlock.ErrLost) {
			err = h.withLoss(err)
		}
	}()
	c.last = h
	return c.lock(r.Context, i+1)
}

// ownAt reports whether the i'th key is to be held on a session for fn.
func (c *call) ownAt(i int) bool { return c.own && i == len(c.ids)-1 }

// isLost reports whether h's lock is known to be gone.
func (h *hold) isLost() bool {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	return h.lease.lost
}
