package proof

import "slices"

// waitMoves are the ways in which a call leaves its queue by itself.
func (w *world) waitMoves(s *state, i int, move func(func(*state))) {
	c := s.calls[i]
	if c.doomed {
		decide := func(count bool) {
			move(func(s *state) {
				if !w.stuck(s, i, count) || s.ends[w.asks[i].context] != 0 {
					w.settleSearch(s, i) // the way is free by now
					return
				}
				w.leave(s, w.wants(s, i), i)
				w.statsOf(s, i).deadlocks++
				w.fail(s, i, isDeadlock)
			})
		}
		decide(true)
		if w.lingers(s, i) {
			decide(false)
		}
		return
	}
	switch why := s.ends[w.asks[i].context]; {
	case why != 0:
		move(func(s *state) {
			w.leave(s, w.wants(s, i), i)
			w.endWait(s, i, why)
		})
	case c.deadline != 0 && c.deadline <= w.now:
		move(func(s *state) {
			w.leave(s, w.wants(s, i), i)
			w.endWait(s, i, isTimeout|isUnavailable)
		})
	}
}

// lingers reports whether somebody else is about to be told of a deadlock.
func (w *world) lingers(s *state, i int) bool {
	for j, c := range s.calls {
		if j != i && c.phase == waiting && c.doomed {
			return true
		}
	}
	return false
}

// closedReason is ErrClosed, unless the call's context says more.
func (w *world) closedReason(s *state, i int) reason {
	if why := s.ends[w.asks[i].context]; why != 0 {
		return why
	}
	return isClosed
}

// endWait ends a wait that came to nothing. If the key was granted before, it is
// passed on.
func (w *world) endWait(s *state, i int, why reason) {
	c, st := &s.calls[i], w.statsOf(s, i)
	st.ticks += w.now - c.since
	switch {
	case why == isClosed || w.shutOut(s, i) && why&isClosed != 0:
		st.closed++
	case why&isTimeout != 0:
		st.unavailable++
	default:
		st.canceled++
	}
	w.fail(s, i, why)
	if key := w.wants(s, i); s.holds(i, key) {
		w.drop(s, i, key)
	}
	c.under = c.under[:c.next]
}

// giveUp has a call give up the last of what it has taken.
func (w *world) giveUp(s *state, i int) {
	c := &s.calls[i]
	last := len(c.under) - 1
	if last < 0 {
		c.phase = over
		return
	}
	key, holder := w.asks[i].keys[last], c.under[last]
	c.under = c.under[:last]
	if !s.holds(holder, key) {
		if c.result&(isNil|isFnError) != 0 {
			c.result = c.result&^isNil | isLost
		}
		return
	}
	if holder == i {
		w.drop(s, i, key)
	}
}

// closeMoves are what Client.Close does: the waits first, then the holds, one
// key after the other in an order that nobody knows.
func (w *world) closeMoves(s *state, client int, move func(func(*state))) {
	of := func(i int) bool { return w.client(s, i) == client }
	waits := false
	for key, r := range s.rows {
		if slices.ContainsFunc(r.queue, of) {
			waits = true
			move(func(s *state) { w.expel(s, key, of) })
		}
	}
	if waits {
		return
	}
	for key, r := range s.rows {
		if !slices.ContainsFunc(r.holders, func(h holder) bool { return of(h.call) }) {
			continue
		}
		move(func(s *state) {
			r := &s.rows[key]
			r.holders = slices.DeleteFunc(r.holders, func(h holder) bool {
				if of(h.call) && s.calls[h.call].ran {
					s.stats[w.coordinator(key)].lost++
				}
				return of(h.call)
			})
			w.grantNext(s, key)
		})
	}
}

// expel takes calls out of key's queue.
func (w *world) expel(s *state, key int, which func(int) bool) {
	var out []int
	for _, q := range s.rows[key].queue {
		if which(q) {
			out = append(out, q)
			s.calls[q].phase = expelled
			w.settleSearch(s, q)
		}
	}
	w.leave(s, key, out...)
}

// shutDown is Shutdown's beginning: from here on the coordinator is closed, and
// the waits that belong to no running fn are to be ended.
func (w *world) shutDown(s *state, coordinator int) {
	if s.down[coordinator] {
		return
	}
	s.down[coordinator] = true
	for key, r := range s.rows {
		for _, q := range r.queue {
			if w.coordinator(key) == coordinator && !w.belongs(s, w.asks[q].above, coordinator) {
				s.swept = append(s.swept, q)
			}
		}
	}
}

func (w *world) sweepMoves(s *state, move func(func(*state))) {
	strange := func(i int) bool { return slices.Contains(s.swept, i) }
	for key, r := range s.rows {
		if slices.ContainsFunc(r.queue, strange) {
			move(func(s *state) { w.expel(s, key, strange) })
		}
	}
}

// shutMove is the end of a call of Shutdown.
func (w *world) shutMove(s *state, i int, move func(func(*state))) {
	a := w.shuts[i]
	if s.shuts[i].over {
		return
	}
	for key, r := range s.rows { // it sweeps first
		if w.coordinator(key) == a.coordinator && slices.ContainsFunc(r.queue, func(q int) bool { return slices.Contains(s.swept, q) }) {
			return
		}
	}
	end := func(why reason) {
		move(func(s *state) { s.shuts[i] = shut{true, why} })
	}
	switch {
	case w.held(s, a.coordinator) == 0:
		end(isNil)
	case w.belongs(s, a.above, a.coordinator):
		end(isDeadlock)
	case s.ends[a.context] != 0:
		end(s.ends[a.context])
	}
}
