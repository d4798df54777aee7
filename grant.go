package processlock

import (
	"math"
	"time"
)

// grant is one key that a call has.
type grant struct {
	hold  *hold
	claim *claim // nil for a hold without one (entry.hold)
	// reentrant: hold is the lineage's, and is not released.
	reentrant bool
}

// end releases the key when fn has ended, in whatever way, and joins fn's error
// with ErrLost if the hold was lost by then. It recovers nothing: after a panic
// or Goexit *err is read by nobody.
func (g *grant) end(err *error) {
	if !g.release(nil) {
		*err = lost(*err)
	}
}

// endSeen is end where somebody looks.
func (g *grant) endSeen(t *sight, err *error) {
	if !g.release(t) {
		*err = lost(*err)
	}
	t.released(clock())
}

// release gives the key up, or reports that it was lost before. t may be nil.
func (g *grant) release(t *sight) bool {
	h := g.hold
	e := h.entry
	s := e.shard
	s.mu.Lock()
	if e.hold == h && e.crowd == nil && !s.closed && !g.reentrant {
		// What settle does below where nobody else is there.
		e.dropInline()
		if e == &s.inline {
			e.clear()
		} else {
			s.remove(e)
		}
		s.mu.Unlock()
		return true
	}
	defer s.mu.Unlock()
	if g.reentrant {
		return e.heldBy(h)
	}
	held := s.held
	if w := g.claim; w != nil {
		// Client.Close takes claims out under s.mu, and e may serve another key
		// since.
		if st := w.state.Load(); st != stateRunning && st != stateTaken {
			if t != nil {
				t.lost, t.view = st == stateLost, view{warned: w.slow}
			}
			s.recycle(w, nil)
			return false
		}
		if t != nil {
			t.view = viewOut(w)
		}
		w.sight.blame(w)
		e.dropHolder(w)
		e.settle()
		s.recycle(w, e.crowd)
	} else {
		if e.hold != h {
			return false
		}
		e.dropInline()
		e.settle()
	}
	s.report(held)
	return true
}

// addWait adds an ended wait.
func (s *shard) addWait(d int64) {
	for {
		sum := s.stats.waitTime.Load()
		if s.stats.waitTime.CompareAndSwap(sum, sum+min(d, math.MaxInt64-sum)) {
			return
		}
	}
}

// base is what clock counts from.
var base = time.Now()

// clock returns nanoseconds of monotonic time, never 0. A difference to a fixed
// time costs half of time.Now. Inside a testing/synctest bubble it counts from
// base by the bubble's clock, which may be decades off in either direction, so
// clock values are only good for differences on one side of a bubble's edge.
func clock() int64 {
	if d := int64(time.Since(base)); d != 0 {
		return d
	}
	return 1
}

// elapsed returns the nanoseconds between two readings of clock, from 0 to the
// largest there are.
func elapsed(from, to int64) int64 {
	switch d := to - from; {
	case to < from:
		return 0
	case d < 0:
		return math.MaxInt64
	default:
		return d
	}
}
