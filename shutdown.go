package processlock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// drain is what Shutdown waits for.
type drain struct {
	swept bool // every shard is closed; guarded by Coordinator.mu

	// remaining counts, once Shutdown has begun, the holders in the shards that
	// it has closed, and Shutdown itself until it has closed all. Once it is 0
	// it never rises again.
	remaining atomic.Int64

	mu    sync.Mutex // after every shard's
	ports []chan struct{}
}

// rise counts a holder that a closed shard admits. It fails once nothing is
// left, since then nothing is left that the request could belong to.
func (d *drain) rise() bool {
	for {
		n := d.remaining.Load()
		if n == 0 {
			return false
		}
		if d.remaining.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (d *drain) add(n int64) {
	if d.remaining.Add(n) != 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.ports {
		close(p)
	}
	d.ports = nil
}

// report follows every change of a shard's holders but those that rise counts:
// before is what held was.
func (s *shard) report(before int64) {
	if s.closed && s.held != before {
		s.coordinator.drain.add(s.held - before)
	}
}

// Shutdown closes the coordinator for good and waits until no key is held.
// Calls that wait and calls that come later get [ErrClosed], and so do a [Group]'s
// tasks, except those whose context descends from an fn that holds a key of this
// coordinator: they belong to a running fn and are served as before. Running fns
// are not disturbed.
//
// Shutdown returns nil when no key is held any more, else, when ctx is done, an
// error that satisfies [errors.Is] for ctx's Err and its [context.Cause].
// Called with the context of an fn that holds a key here it would wait for
// itself: it closes the coordinator and returns [ErrDeadlock]. It may be called
// again, and at the same time; each call waits. It panics if ctx is nil.
func (c *Coordinator) Shutdown(ctx context.Context) error {
	check(ctx, false)
	c.check()
	c.start()
	var lineage []*hold
	h, scope := lineageOf(ctx)
	for ; h != nil; h = h.outer() {
		lineage = append(lineage, h)
	}
	c.sweep()
	if c.drain.remaining.Load() == 0 {
		return nil
	}
	if c.holdsAny(lineage) {
		return fmt.Errorf("%w: Shutdown was called with the context of an fn that it would wait for", ErrDeadlock)
	}
	// Its own channel, since a channel must not cross a synctest bubble's edge.
	port := make(chan struct{})
	if !c.drain.wait(port) {
		return nil
	}
	defer c.drain.forget(port)
	if scope != nil { // what is held may be by tasks that wait for the caller's slot
		scope.slot.park()
		defer scope.slot.unpark()
	}
	select {
	case <-port:
		return nil
	case <-ctx.Done():
		if c.drain.remaining.Load() == 0 {
			return nil
		}
		return &shutdownError{ended(ctx)}
	}
}

// wait makes add close port when nothing is left, or reports that nothing is.
func (d *drain) wait(port chan struct{}) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.remaining.Load() == 0 {
		return false
	}
	d.ports = append(d.ports, port)
	return true
}

func (d *drain) forget(port chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ports = slices.DeleteFunc(d.ports, func(p chan struct{}) bool { return p == port })
}

// sweep closes every shard and ends the waits that belong to no running fn.
func (c *Coordinator) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drain.swept {
		return
	}
	c.drain.swept = true
	c.drain.remaining.Store(1)
	// Whether a lineage holds a key here takes the mutexes of other shards, so
	// it is asked between two walks. What queues in between was asked on
	// arrival, since its shard was closed by then.
	nested := make(map[*hold][]*hold)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.closed = true
		c.drain.remaining.Add(s.held)
		for e := range s.entries {
			if e.crowd == nil {
				continue
			}
			for w := e.crowd.queue.first; w != nil; w = w.next {
				if w.wait != nil {
					nested[w.hold] = w.wait.lineage[:w.wait.outside]
				}
			}
		}
		s.mu.Unlock()
	}
	strangers := make(map[*hold]bool)
	for h, lineage := range nested {
		if !c.holdsAny(lineage) {
			strangers[h] = true
		}
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		held := s.held
		s.expel(func(w *claim) bool { return w.wait == nil || strangers[w.hold] })
		s.report(held)
		s.mu.Unlock()
	}
	c.drain.add(-1)
}

// holdsAny reports whether one of the holds still holds a key of c.
func (c *Coordinator) holdsAny(lineage []*hold) bool {
	for _, h := range lineage {
		if h.entry.shard.coordinator == c {
			if _, ok := h.live(); ok {
				return true
			}
		}
	}
	return false
}

// shutdownError is what Shutdown returns when its context is done first.
type shutdownError struct{ err error }

func (e *shutdownError) Error() string {
	return prefix + "shutdown: keys are still held: " + bare(e.err)
}

func (e *shutdownError) Unwrap() error { return e.err }
