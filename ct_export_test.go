package processlock

import (
	"fmt"
)

// CTLeft reports what is left of any key in c's table, or of any wait in the
// wait-for graph, once nothing is held or waited for. What the table keeps for
// reuse must not keep anything of a finished call alive.
func CTLeft(c *Coordinator) error {
	for i := range c.shards {
		if err := c.shards[i].ctLeft(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	waits.mu.Lock()
	defer waits.mu.Unlock()
	if waits.under != nil {
		return fmt.Errorf("wait-for graph keeps %d holds", len(waits.under))
	}
	return nil
}

func (s *shard) ctLeft() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != 0 || s.stats.waiting != 0 {
		return fmt.Errorf("counts %d holders and %d waiters", s.held, s.stats.waiting)
	}
	for e := range s.entries {
		return fmt.Errorf("entry for %v is left", e.key())
	}
	if s.tabled != 0 {
		return fmt.Errorf("counts %d entries in buckets", s.tabled)
	}
	if err := s.inline.ctClean(); err != nil {
		return fmt.Errorf("inline entry: %w", err)
	}
	n := int32(0)
	for e := s.free; e != nil; e = e.next {
		if err := e.ctClean(); err != nil {
			return fmt.Errorf("free entry: %w", err)
		}
		n++
	}
	if n != s.spares {
		return fmt.Errorf("%d free entries, counted %d", n, s.spares)
	}
	if c := s.freeCrowd; c != nil && *c != (crowd{}) {
		return fmt.Errorf("kept crowd is not empty: %+v", *c)
	}
	n = 0
	for w := s.freeClaims; w != nil; w = w.next {
		if w.entry != nil || w.hold != nil || w.client != nil || w.wait != nil || w.prev != nil || w.port != nil || w.sight != nil || w.slow {
			return fmt.Errorf("kept claim is not clean: entry %p hold %p client %p wait %p", w.entry, w.hold, w.client, w.wait)
		}
		n++
	}
	if n != s.freeCount || n > maxSpares {
		return fmt.Errorf("%d kept claims, counted %d", n, s.freeCount)
	}
	return nil
}

// ctClean reports what an entry out of the table still refers to.
func (e *entry) ctClean() error {
	switch {
	case e.kind != keyInvalid || e.s != "":
		return fmt.Errorf("has key %q", e.s)
	case e.hold != nil:
		return fmt.Errorf("has a holder")
	case e.client != nil:
		return fmt.Errorf("has a client")
	case e.crowd != nil:
		return fmt.Errorf("has a crowd")
	}
	return nil
}

// CTHoldShards takes every shard's mutex of c until release is called.
func CTHoldShards(c *Coordinator) (release func()) {
	c.start()
	for i := range c.shards {
		c.shards[i].mu.Lock()
	}
	return func() {
		for i := range c.shards {
			c.shards[i].mu.Unlock()
		}
	}
}

// CTShutdowns returns how many calls of Shutdown wait.
func CTShutdowns(c *Coordinator) int {
	c.drain.mu.Lock()
	defer c.drain.mu.Unlock()
	return len(c.drain.ports)
}
