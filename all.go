package processlock

import "context"

// grants are the keys that a call for several holds so far.
type grants struct {
	list    []grant
	running bool // fn was started
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
	q.several = true
	var held grants
	defer held.end(&err)
	if err := q.acquireAll(all.keys, &held); err != nil {
		return err
	}
	held.running = true
	return fn(q.parent)
}

func (q *call) acquireAll(keys []Key, held *grants) error {
	defer q.stopTimer()
	held.list = make([]grant, 0, len(keys))
	for i, k := range keys {
		if i > 0 { // lockAll has asked before the first
			if err := ended(q.ctx); err != nil {
				return &AcquireError{k, err}
			}
		}
		var g grant
		if err := q.acquire(k, &g); err != nil {
			return &AcquireError{k, err}
		}
		held.list = append(held.list, g)
		if !g.reentrant {
			q.parent = g.hold
			q.taken = append(q.taken, g.hold)
		}
	}
	for i, g := range held.list {
		if g.claim != nil && !g.claim.proceed(stateRunning) {
			return &AcquireError{keys[i], ErrClosed} // Client.Close took it back
		}
	}
	return nil
}

// end releases what is held, the last first.
func (gs *grants) end(err *error) {
	all := true
	for i := len(gs.list) - 1; i >= 0; i-- {
		if !gs.list[i].release() {
			all = false
		}
	}
	if !all && gs.running {
		*err = lost(*err)
	}
}
