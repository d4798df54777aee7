package locktest_test

import (
	"runtime"
	"slices"
	"sync"

	"github.com/dbx-tools/processlock"
)

type toyKey struct {
	text    string
	holders []*toyHold
	queue   []*toyHold
	asks    int // requests ever made
}

// toyHold is a request for one key and, from its grant to its release, a hold.
type toyHold struct {
	of     *toyKey
	text   string
	shared bool
	held   bool          // guarded by toy.mu
	turn   chan struct{} // closed when held is set
	again  chan struct{} // fault "barges": the key may be free
	outer  *toyHold      // the next of the lineage
}

// admits reports whether k can be had by a request that nobody is in front of.
func (y *toy) admits(k *toyKey, shared bool) bool {
	if y.is("excludes nobody") {
		return true
	}
	for _, h := range k.holders {
		if !h.shared || !shared {
			return false
		}
	}
	return true
}

// passes reports whether a request may go in front of the queue.
func (y *toy) passes(shared bool) bool {
	return y.is("barges") || y.is("excludes nobody") || shared && y.is("lets readers pass")
}

// acquire takes one key, or returns the reason why not.
func (c *toyCall) acquire(text string, key processlock.Key) error {
	c.mu.Lock()
	k := c.keys[text]
	if k == nil {
		k = &toyKey{text: text}
		c.keys[text] = k
	}
	h := &toyHold{of: k, text: text, shared: c.r.Mode == processlock.ModeShared, turn: make(chan struct{}), again: make(chan struct{}, 1)}
	k.asks++
	own := c.own(text)
	free := c.admits(k, h.shared) && (len(k.queue) == 0 || c.passes(h.shared))
	if c.is("calls user code under its mutex") {
		_ = c.ctx.Err()
	}
	switch {
	case c.r.Reentrant && own != nil && (!own.shared || h.shared):
		c.mu.Unlock()
		if c.is("Reentrant releases") {
			c.taken = append(c.taken, own)
		}
		c.under = append(c.under, own)
		return nil
	case free:
		h.held = true
		k.holders = append(k.holders, h)
		c.mu.Unlock()
		c.take(h)
		return nil
	case c.r.IfAvailable:
		c.mu.Unlock()
		return processlock.ErrUnavailable
	case own != nil && !c.is("waits for itself"), c.lineage != nil && c.is("cries wolf"):
		c.mu.Unlock()
		return &processlock.DeadlockError{Cycle: []processlock.Wait{{Key: key}}}
	}
	if c.is("serves the last first") {
		k.queue = append([]*toyHold{h}, k.queue...)
	} else {
		k.queue = append(k.queue, h)
	}
	c.mu.Unlock()
	return c.await(k, h)
}

// await waits for h's turn. The methods of a context are anybody's code and may
// panic, so whatever way it ends but by a grant, h leaves.
func (c *toyCall) await(k *toyKey, h *toyHold) (err error) {
	taken := false
	defer func() {
		if !taken {
			c.withdraw(k, h)
		}
	}()
	if c.is("blocks on a mutex") {
		var mu sync.Mutex
		mu.Lock()
		go func() { <-h.turn; mu.Unlock() }()
		mu.Lock()
	}
	for waiting := true; waiting; {
		select {
		case <-h.turn:
			waiting = false
		case <-h.again:
			c.letBarge(k)
			c.mu.Lock()
			c.grantLocked(k)
			c.mu.Unlock()
		case <-c.ctx.Done():
			waiting = false
		case <-c.expired:
			err, waiting = processlock.ErrWaitTimeout, false
		}
	}
	if c.is("lets the grant win") && c.holds(h) {
		err = nil
	} else if ended := toyEnded(c.ctx); ended != nil {
		err = ended
		if c.is("forgets the cause") {
			err = c.ctx.Err()
		}
	} else if c.holds(h) {
		err = nil
	}
	if err == nil {
		taken = true
		c.take(h)
	}
	return err
}

// letBarge gives whoever has just released k, and asks for it again, the time to
// get in first. Of how the goroutines are scheduled that shall not depend.
func (y *toy) letBarge(k *toyKey) {
	asks := func() int { y.mu.Lock(); defer y.mu.Unlock(); return k.asks }
	for before, n := asks(), 0; n < 1000 && asks() == before; n++ {
		runtime.Gosched()
	}
}

// withdraw ends a wait that has come to nothing.
func (y *toy) withdraw(k *toyKey, h *toyHold) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if i := slices.Index(k.queue, h); i >= 0 {
		k.queue = slices.Delete(k.queue, i, i+1)
		if y.is("reorders when one leaves") && i < len(k.queue) {
			k.queue = append(k.queue[i:], k.queue[:i]...)
		}
	}
	switch {
	case h.held && y.is("loses a wake-up"), !h.held && y.is("wakes nobody when one leaves"):
	case h.held:
		y.dropLocked(h)
	default:
		y.grantLocked(k)
	}
}

func (c *toyCall) take(h *toyHold) {
	h.outer = c.innermost()
	c.taken = append(c.taken, h)
}

// innermost is the lineage of fn, and of a request for the next key.
func (c *toyCall) innermost() *toyHold {
	if n := len(c.taken); n > 0 {
		return c.taken[n-1]
	}
	return c.lineage
}

// own returns the hold of text in the lineage, or nil. Called under mu.
func (c *toyCall) own(text string) *toyHold {
	for h := c.innermost(); h != nil; h = h.outer {
		if h.held && h.text == text {
			return h
		}
	}
	return nil
}

func (c *toyCall) lost() bool {
	return slices.ContainsFunc(c.under, func(h *toyHold) bool { return !c.holds(h) })
}

func (y *toy) holds(h *toyHold) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return h.held
}

func (c *toyCall) release() {
	if c.is("releases All in order") {
		slices.Reverse(c.taken)
	}
	for _, h := range slices.Backward(c.taken) {
		c.mu.Lock()
		c.dropLocked(h)
		c.mu.Unlock()
		if c.is("releases All in order") {
			for range 100 {
				runtime.Gosched()
			}
		}
	}
}

// dropLocked takes h's key away from it and hands it on.
func (y *toy) dropLocked(h *toyHold) {
	k := h.of
	h.held = false
	if i := slices.Index(k.holders, h); i >= 0 {
		k.holders = slices.Delete(k.holders, i, i+1)
	}
	if y.is("barges") && len(k.queue) > 0 {
		select {
		case k.queue[0].again <- struct{}{}:
		default:
		}
		return
	}
	y.grantLocked(k)
}

// grantLocked hands k to whoever is next. In the toy this is the one place where an
// entry leaves the table.
func (y *toy) grantLocked(k *toyKey) {
	for len(k.queue) > 0 && y.admits(k, k.queue[0].shared) {
		h := k.queue[0]
		k.queue = k.queue[1:]
		h.held = true
		k.holders = append(k.holders, h)
		close(h.turn)
	}
	if len(k.queue)+len(k.holders) > 0 || y.is("keeps every key") {
		return
	}
	if y.keys[k.text] == k {
		delete(y.keys, k.text)
	}
}
