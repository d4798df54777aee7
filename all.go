package processlock

import (
	"context"
	"runtime/trace"
	"sync/atomic"
)

// grants are the keys that a call for several holds so far.
type grants struct {
	list    []grant
	sights  []*sight // of list's, as far as somebody looks
	running bool     // fn was started
}

// lockAll runs fn under all the keys. They are taken one after the other in
// canonical order, so that no two such calls wait for each other in a circle.
// What has been taken is held, but does not run until all are there.
func (q *call) lockAll(all Keys, fn func(context.Context) error) (err error) {
	var first Key
	if all.err == nil && len(all.keys) > 0 {
		first = all.keys[0]
	}
	if err := ended(q.ctx); err != nil {
		return &AcquireError{first, err}
	}
	if all.err != nil {
		return &AcquireError{Key{}, all.err}
	}
	gs := grants{list: make([]grant, 0, len(all.keys))}
	defer gs.end(&err)
	if err := gs.acquire(q, all.keys); err != nil {
		return err
	}
	gs.running = true
	defer endRegion(gs.region())
	return fn(gs.context(q.ctx))
}

// acquire takes the keys one after the other, or returns the error of the first
// that it didn't get.
func (gs *grants) acquire(q *call, keys []Key) error {
	a := attempt{call: *q, all: new(atomic.Uint32)}
	a.all.Store(stateTaken)
	defer a.stopTimer()
	for i, k := range keys {
		if i > 0 { // lockAll has asked before the first
			if err := ended(a.ctx); err != nil {
				return &AcquireError{k, err}
			}
		}
		g := grant{hold: &hold{Context: gs.context(a.ctx)}}
		a.sight = nil
		if a.coordinator.looked() {
			a.sight = a.call.sight(k)
		}
		if err := a.contendSeen(&k, &g); err != nil {
			return err
		}
		gs.add(g, a.sight)
		if !g.reentrant {
			a.taken = append(a.taken, g.hold)
			a.sight.granted()
		}
	}
	if !a.all.CompareAndSwap(stateTaken, stateRunning) {
		return &AcquireError{gs.revoked(keys), a.closedReason()} // Client.Close took one back
	}
	return nil
}

// add adds g, with t for those who look. A reentrant grant is none of theirs.
func (gs *grants) add(g grant, t *sight) {
	if t != nil && !g.reentrant {
		for len(gs.sights) < len(gs.list) {
			gs.sights = append(gs.sights, nil)
		}
		gs.sights = append(gs.sights, t)
	}
	gs.list = append(gs.list, g)
}

func (gs *grants) sight(i int) *sight {
	if i < len(gs.sights) {
		return gs.sights[i]
	}
	return nil
}

// region is the sights', with all their keys in the log, or nil.
func (gs *grants) region() (r *trace.Region) {
	for _, t := range gs.sights {
		if r == nil {
			r = t.region(holdRegion)
		} else if t != nil && t.traced {
			trace.Log(t.ctx, holdRegion, t.event.Key.String())
		}
	}
	return r
}

// revoked returns the first key that was taken back.
func (gs *grants) revoked(keys []Key) Key {
	for i, g := range gs.list {
		if g.claim != nil && g.claim.state.Load() == stateRevoked {
			return keys[i]
		}
	}
	return keys[0]
}

// context returns ctx with the lineage of all that is held.
func (gs *grants) context(ctx context.Context) context.Context {
	for i := len(gs.list) - 1; i >= 0; i-- {
		if g := &gs.list[i]; !g.reentrant {
			return g.hold
		}
	}
	return ctx
}

// end releases what is held and tells so.
func (gs *grants) end(err *error) {
	gs.release(err)
	gs.released(gs.now())
}

// release releases what is held, the last first. If fn ran, its error is joined
// with ErrLost if a hold was lost by then.
func (gs *grants) release(err *error) {
	all := true
	for i := len(gs.list) - 1; i >= 0; i-- {
		if !gs.list[i].release(gs.sight(i)) {
			all = false
		}
	}
	if !all && gs.running {
		*err = lost(*err)
	}
}

// now is the time, if somebody looks.
func (gs *grants) now() int64 {
	if len(gs.sights) == 0 {
		return 0
	}
	return clock()
}

// released tells that what was held was given up, at end.
func (gs *grants) released(end int64) {
	for _, t := range gs.sights {
		defer t.released(end) // user code: after all releases, each whatever the others do
	}
}
