package proof

// groupAsk is a Group.
type groupAsk struct {
	limit   int
	context int // its own; its parent is the one that was given to NewGroup
	on      int // the coordinator
	client  int // whose its requests are until the task starts; -1: none
	above   []int
	inner   []int // by coordinator: the innermost client
	tasks   int
}

// taskAsk is what an ask is besides that is one of a group's.
type taskAsk struct {
	group   int
	client  int // of its own, once it runs
	context int // of its own
}

// group is a Group.
type group struct {
	canceled                       bool // no task starts any more
	ready                          []int
	active, left, dropped, skipped int
	err                            reason
	waits, over                    bool // Wait was called, has returned
	result                         reason
}

// client is whose a call is.
func (w *world) client(s *state, i int) int {
	if t := w.asks[i].task; t != nil && s.calls[i].phase >= running && s.calls[i].ran {
		return t.client
	}
	return w.asks[i].client
}

// contextOf is the context of a call's fn.
func (w *world) contextOf(i int) int {
	if t := w.asks[i].task; t != nil {
		return t.context
	}
	return w.asks[i].context
}

// groupOver reports whether a task of i's group is not to start any more.
func (w *world) groupOver(s *state, i int) bool {
	return s.groups[w.asks[i].task.group].canceled || s.ends[w.asks[i].context] != 0
}

// grantTask grants a task in a queue its key. If the group starts no task any
// more, it is dropped as if the grant had not come.
func (w *world) grantTask(s *state, i int) {
	c, a := &s.calls[i], w.asks[i]
	if s.groups[a.task.group].canceled {
		return
	}
	w.settleSearch(s, i)
	st := w.statsOf(s, i)
	st.acquired++
	st.ticks += w.now - c.since
	c.under = append(c.under, i)
	if c.next+1 == len(a.keys) {
		c.next++
		w.enlist(s, i)
	} else {
		c.phase = granted
	}
}

// enlist makes a task that has its keys wait for a slot.
func (w *world) enlist(s *state, i int) {
	g, c := &s.groups[w.asks[i].task.group], &s.calls[i]
	c.phase, c.left, c.own = ready, c.deadline-w.now, false
	if !g.canceled {
		g.ready = append(g.ready, i)
		w.dispatch(s, w.asks[i].task.group)
	}
}

func (w *world) dispatch(s *state, group int) {
	g := &s.groups[group]
	for limit := w.groups[group].limit; len(g.ready) > 0 && (limit < 1 || g.active < limit); g.active++ {
		s.calls[g.ready[0]].phase, s.calls[g.ready[0]].slot = starting, true
		g.ready = g.ready[1:]
	}
}

// dropTask ends a task that is out of its queue.
func (w *world) dropTask(s *state, i int) {
	c := &s.calls[i]
	if why := s.ends[w.asks[i].context]; c.asked && why&isClosed != 0 && w.shutOut(s, i) {
		w.fail(s, i, why)
		return
	}
	c.phase, c.result = ending, isDropped
}

// abandon takes what has not started out of the lists of the group.
func (w *world) abandon(s *state, group int) {
	s.groups[group].canceled, s.groups[group].ready = true, nil
}

func (w *world) failGroup(s *state, group int, why reason) {
	w.abandon(s, group)
	if g := &s.groups[group]; g.err == 0 {
		g.err = why &^ isNil
		w.cutGroup(s, group, why)
	}
}

// mayFail reports whether a context may be about to end since a task of its group
// has ended.
func (w *world) mayFail(s *state, context int) bool {
	for ; context >= 0; context = w.contexts[context].parent {
		for i, a := range w.asks {
			if a.task != nil && w.groups[a.task.group].context == context && s.calls[i].phase >= running && s.calls[i].phase < over &&
				(s.calls[i].told != untold || s.calls[i].phase == ending) {
				return true
			}
		}
	}
	return false
}

// cutGroup cancels the group's context.
func (w *world) cutGroup(s *state, group int, why reason) {
	if at := w.groups[group].context; !w.endsSoon(s, at) {
		s.cut[at] = isCanceled | why&^(isNil|isDropped)
	}
}

// taskMoves are those of a task that are not a call's. It reports whether the
// call's are none of a task.
func (w *world) taskMoves(s *state, i int, move func(func(*state))) bool {
	a, c := w.asks[i], s.calls[i]
	canceled := s.groups[a.task.group].canceled
	if c.owed > 0 && !c.own {
		move(func(s *state) {
			s.calls[i].owed--
			w.freeSlot(s, a.task.group)
		})
	}
	switch c.phase {
	case asking:
		if c.next < len(a.keys) {
			return false
		}
		move(func(s *state) { w.enlist(s, i) })
	case waiting:
		switch {
		case c.doomed:
			return false
		case canceled:
			move(func(s *state) { w.dropWaiting(s, i) })
		case c.deadline != 0 && c.deadline <= w.now && !s.holds(i, w.wants(s, i)):
			move(func(s *state) {
				w.leave(s, w.wants(s, i), i)
				w.endWait(s, i, isTimeout|isUnavailable)
			})
		}
	case expelled:
		move(func(s *state) {
			st := w.statsOf(s, i)
			st.closed++
			st.ticks += w.now - c.since
			w.fail(s, i, w.closedReason(s, i))
		})
	case granted:
		move(func(s *state) {
			c := &s.calls[i]
			c.next++ // under has it already
			switch {
			case s.groups[a.task.group].canceled:
				w.dropTask(s, i)
			case w.robbed(s, i) >= 0:
				w.fail(s, i, w.closedReason(s, i))
			default:
				c.phase = asking
			}
		})
	case ready:
		if canceled {
			move(func(s *state) { w.dropTask(s, i) })
		}
	case starting:
		move(func(s *state) {
			switch {
			case s.ends[a.context] != 0:
				w.dropTask(s, i)
			case w.robbed(s, i) >= 0:
				w.fail(s, i, w.closedReason(s, i))
			case w.outlived(s, i):
				c := &s.calls[i]
				c.phase, c.own, c.slot, c.exempt = giving, true, false, false
				c.again++
				c.owed++
				if c.deadline != 0 {
					c.deadline = w.now + c.left
				}
			default:
				s.calls[i].phase, s.calls[i].ran = running, true
			}
		})
	case giving:
		move(func(s *state) { w.giveBack(s, i) })
	case running:
		if c.told != untold {
			move(func(s *state) {
				if c.told == returnsError {
					w.abandon(s, a.task.group)
				}
				w.endFn(s, i)
				if c := &s.calls[i]; c.told == exits {
					c.result = isNil // also where a hold was lost
				}
			})
		}
	case ending:
		if len(c.under) > 0 {
			return false
		}
		move(func(s *state) { w.finishTask(s, i) })
	}
	return true
}

// dropWaiting takes a task out of its queue, or gives the key up that was granted
// to it too late.
func (w *world) dropWaiting(s *state, i int) {
	c, st, key := &s.calls[i], w.statsOf(s, i), w.wants(s, i)
	st.ticks += w.now - c.since
	if w.shutOut(s, i) && s.ends[w.asks[i].context]&isClosed != 0 {
		st.closed++
	} else {
		st.canceled++
	}
	w.dropTask(s, i)
	if s.holds(i, key) {
		w.drop(s, i, key)
	} else {
		w.leave(s, key, i)
	}
}

// finishTask takes a task that has given all up off the group's accounts.
func (w *world) finishTask(s *state, i int) {
	c, t := &s.calls[i], w.asks[i].task
	c.phase = over
	if c.ran {
		s.closed[t.client] = true
		if s.ends[t.context] == 0 {
			s.ends[t.context] = isCanceled | isClosed
		}
		if c.result&(isFnError|isLost) != 0 {
			w.failGroup(s, t.group, c.result)
		}
	}
	g := &s.groups[t.group]
	switch {
	case c.result&isDropped != 0:
		g.dropped++
	case !c.ran && c.result&isUnavailable != 0:
		g.skipped++
	}
	g.left--
	for ; c.owed > 0; c.owed-- {
		w.freeSlot(s, t.group)
	}
	if c.slot {
		w.freeSlot(s, t.group)
	}
}

func (w *world) freeSlot(s *state, group int) {
	s.groups[group].active--
	w.dispatch(s, group)
}

// outlived reports whether a hold is gone that a task has taken over.
func (w *world) outlived(s *state, i int) bool {
	for n, holder := range s.calls[i].under {
		if holder != i && !s.holds(holder, w.asks[i].keys[n]) {
			return true
		}
	}
	return false
}

// giveBack has a task give back the last of what it has taken. When that is all
// it asks again, and has its slot until it waits or has all its keys.
func (w *world) giveBack(s *state, i int) {
	c := &s.calls[i]
	last := len(c.under) - 1
	if last < 0 {
		c.phase, c.next = asking, 0
		return
	}
	holder := c.under[last]
	c.under = c.under[:last]
	if holder == i {
		w.drop(s, i, w.asks[i].keys[last])
	}
}

// groupMoves are what happens to a group as a whole.
func (w *world) groupMoves(s *state, i int, move func(func(*state))) {
	g, at := s.groups[i], w.groups[i].context
	if s.ends[at] != 0 && !g.canceled && !g.over {
		move(func(s *state) { w.abandon(s, i) })
	}
	if !g.waits || g.over || g.left > 0 {
		return
	}
	why := g.err
	switch {
	case why == 0 && g.dropped == 0:
		why = isNil
	case why == 0:
		if why = s.ends[at]; why == 0 {
			return
		}
	}
	move(func(s *state) {
		s.groups[i].over, s.groups[i].result = true, why
		w.cutGroup(s, i, 0)
	})
}

func (w *world) taskState(c call) string {
	switch {
	case c.phase == running:
		return " runs"
	case c.ran:
		return " has run"
	}
	return " waits"
}
