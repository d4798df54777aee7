package proof

// look is a call's arrival at the key that it asks for next. Where somebody
// lingers who will be told of a deadlock, the newcomer's wait may count his or
// not (count).
func (w *world) look(s *state, i int, count bool) {
	a, c := w.asks[i], &s.calls[i]
	if a.task != nil {
		if w.groupOver(s, i) {
			w.dropTask(s, i)
			return
		}
		c.asked = true
	} else if why := s.ends[a.context]; why != 0 {
		w.fail(s, i, why)
		return
	}
	key := a.keys[c.next]
	on := w.coordinator(key)
	if s.down[on] && !c.exempt {
		if c.exempt = w.belongs(s, a.above, on); !c.exempt {
			w.fail(s, i, isClosed)
			return
		}
	}
	if w.shutOut(s, i) {
		w.fail(s, i, isClosed)
		return
	}
	r, st := &s.rows[key], &s.stats[on]
	own := w.ownIn(s, i, key)
	if a.reentrant && own >= 0 && (a.shared || !w.asks[own].shared) {
		st.acquired++
		c.under = append(c.under, own)
		c.next++
		return
	}
	if w.admits(s, i, key) {
		if s.down[on] && w.held(s, on) == 0 { // nothing is left that it could belong to
			w.fail(s, i, isClosed)
			return
		}
		since := -1
		if w.track {
			since = w.now
		}
		st.acquired++
		r.holders = append(r.holders, holder{i, since})
		c.under = append(c.under, i)
		c.next++
		return
	}
	if a.try {
		st.unavailable++
		w.fail(s, i, isUnavailable)
		return
	}
	nested := len(w.holding(s, i)) > 0
	stuck := nested && w.stuck(s, i, count)
	switch {
	case stuck && own >= 0:
		st.deadlocks++
		w.fail(s, i, isDeadlock)
	case w.maxWaiters > 0 && len(r.queue) >= w.maxWaiters:
		st.unavailable++
		w.fail(s, i, isFull|isUnavailable)
	default:
		c.phase, c.doomed, c.since, c.own = waiting, stuck, w.now, false
		if !stuck {
			st.waited++
		}
		r.queue = append(r.queue, i)
		if c.deadline == 0 && a.maxWait > 0 {
			c.deadline = w.now + a.maxWait
		}
	}
}

// shutOut reports whether a call's client is closed.
func (w *world) shutOut(s *state, call int) bool {
	client := w.client(s, call)
	return client >= 0 && s.closed[client]
}

func (w *world) fail(s *state, call int, why reason) {
	c := &s.calls[call]
	c.phase, c.result = ending, why|isRefusal
	if keys := w.asks[call].keys; c.next < len(keys) {
		c.refused = keys[c.next]
	}
	if t := w.asks[call].task; t != nil && why&isUnavailable == 0 {
		w.failGroup(s, t.group, c.result)
	}
}

// robbed is the first key that Close has taken from a call, or -1.
func (w *world) robbed(s *state, call int) int {
	for i, holder := range s.calls[call].under {
		if key := w.asks[call].keys[i]; holder == call && !s.holds(call, key) {
			return key
		}
	}
	return -1
}

// stuck reports whether a call waits for ever if it queues now: it does, and
// then everybody who can finish finishes. That is whoever waits for nothing
// itself and has nobody under it who waits. Of the others who are about to be
// told of a deadlock, the waits count or not.
func (w *world) stuck(before *state, i int, count bool) bool {
	s := before.clone()
	if s.calls[i].phase != waiting {
		s.calls[i].phase = waiting
		r := &s.rows[w.wants(&s, i)]
		r.queue = append(r.queue, i)
	}
	for progress := true; progress; {
		progress = false
		for j := range s.calls {
			c := &s.calls[j]
			switch {
			case c.phase == over:
				continue
			case c.phase == waiting:
				if s.ends[w.asks[j].context] == 0 && !w.shutOut(&s, j) && (count || !c.doomed || j == i) {
					continue
				}
				w.leave(&s, w.wants(&s, j), j)
			case !w.shutOut(&s, j) && w.waitsUnder(&s, j): // Close takes its holds anyway
				continue
			}
			c.phase = over
			for _, key := range w.asks[j].keys {
				w.drop(&s, j, key)
			}
			progress = true
		}
	}
	return s.calls[i].phase == waiting
}

// waitsUnder reports whether a call waits that was made in above's fn.
func (w *world) waitsUnder(s *state, above int) bool {
	for i := range s.calls {
		if s.calls[i].phase != waiting {
			continue
		}
		for _, a := range w.asks[i].above {
			if a == above {
				return true
			}
		}
	}
	return false
}
