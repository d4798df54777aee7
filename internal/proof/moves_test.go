package proof

import "slices"

// tooMany states are more than the model looks at before it gives up on the
// rest of a program.
const tooMany = 1500

// settle returns the states in which nothing moves, over all orders of moves
// from any of the given ones. It gives up when there are too many.
func (w *world) settle(states []state) (quiet []state, ok bool) {
	seen := make(map[string]bool)
	for todo := slices.Clone(states); len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		s = s.clone()
		w.spread(&s)
		w.hurry(&s)
		text := s.text()
		if seen[text] {
			continue
		}
		seen[text] = true
		if len(seen) > tooMany {
			return nil, false
		}
		if after := w.moves(s); len(after) > 0 {
			todo = append(todo, after...)
		} else {
			quiet = append(quiet, s)
		}
	}
	return quiet, true
}

// moves returns what may be next. Each move is what one goroutine does in one
// critical section, or one step in which a context's end spreads.
func (w *world) moves(s state) (after []state) {
	move := func(do func(s *state)) {
		n := s.clone()
		do(&n)
		after = append(after, n)
	}
	for i := range s.calls {
		w.callMoves(&s, i, move)
	}
	for i := range s.ends {
		if why := w.due(&s, i); why != 0 {
			move(func(s *state) { s.ends[i] = why })
		}
	}
	for client, closed := range s.closed {
		if closed {
			w.closeMoves(&s, client, move)
		}
	}
	w.sweepMoves(&s, move)
	for i := range s.shuts {
		w.shutMove(&s, i, move)
	}
	for i := range s.groups {
		w.groupMoves(&s, i, move)
	}
	return after
}

// due returns what a context is about to end with, or 0.
func (w *world) due(s *state, context int) reason {
	l := w.contexts[context]
	switch {
	case s.ends[context] != 0:
		return 0
	case l.parent >= 0 && s.ends[l.parent] != 0:
		return s.ends[l.parent]
	case s.cut[context] != 0:
		return s.cut[context]
	case l.deadline != 0 && l.deadline <= w.now:
		return isDeadline
	}
	return 0
}

// spread ends the contexts that are due and that nobody looks at now, which
// spares moves.
func (w *world) spread(s *state) {
	watched := make([]bool, len(s.ends))
	for i, c := range s.calls {
		if c.phase < running {
			watched[w.asks[i].context] = true
		}
		if t := w.asks[i].task; t != nil && c.ran && c.phase < over && (c.told != untold || c.phase == ending) {
			watched[t.context] = true // its client is about to be closed
		}
	}
	for i := range s.shuts {
		if !s.shuts[i].over {
			watched[w.shuts[i].context] = true
		}
	}
	for context := range s.ends { // parents come first
		if !watched[context] {
			if why := w.due(s, context); why != 0 {
				s.ends[context] = why
			}
		}
	}
}

func (w *world) callMoves(s *state, i int, move func(func(*state))) {
	a, c := w.asks[i], s.calls[i]
	if a.task != nil && w.taskMoves(s, i, move) {
		return
	}
	switch c.phase {
	case asking:
		if c.next == len(a.keys) {
			move(func(s *state) { w.run(s, i) })
			return
		}
		move(func(s *state) { w.look(s, i, true) })
		if w.lingers(s, i) {
			move(func(s *state) { w.look(s, i, false) })
		}
	case waiting:
		w.waitMoves(s, i, move)
	case expelled:
		move(func(s *state) { w.endWait(s, i, w.closedReason(s, i)) })
	case granted:
		move(func(s *state) { w.resume(s, i) })
	case running:
		if c.told != untold {
			move(func(s *state) { w.endFn(s, i) })
		}
	case ending:
		move(func(s *state) { w.giveUp(s, i) })
	}
}

// hurry makes the moves of which it doesn't matter when they are made: they
// change nothing that others look at, and nothing can change that they look at.
// It spares most of the orders that there are.
func (w *world) hurry(s *state) {
	for i := range s.calls {
		c := &s.calls[i]
		if w.asks[i].task != nil {
			continue
		}
		certain := !w.endsSoon(s, w.asks[i].context) && !w.mayFail(s, w.asks[i].context) && !w.closing(s)
		switch {
		case c.phase == granted && certain:
			w.resume(s, i)
		case c.phase == expelled && certain:
			w.endWait(s, i, w.closedReason(s, i))
		}
		if c.phase == asking && c.next == len(w.asks[i].keys) && !w.closing(s) {
			w.run(s, i)
		}
		if c.phase == running && c.told != untold && !w.closing(s) {
			w.endFn(s, i)
		}
		if c.phase == ending && len(c.under) == 0 {
			c.phase = over
		}
	}
}

// endsSoon reports whether a context is done, or about to be.
func (w *world) endsSoon(s *state, context int) bool {
	for ; context >= 0; context = w.contexts[context].parent {
		if s.ends[context] != 0 || w.due(s, context) != 0 {
			return true
		}
	}
	return false
}

// closing reports whether Client.Close still has something to take away.
func (w *world) closing(s *state) bool {
	left := false
	for client, closed := range s.closed {
		if closed {
			w.closeMoves(s, client, func(func(*state)) { left = true })
		}
	}
	return left
}

// resume is what a call does that learns of its grant.
func (w *world) resume(s *state, i int) {
	c := &s.calls[i]
	switch why := s.ends[w.asks[i].context]; {
	case why != 0:
		w.endWait(s, i, why)
	case w.robbed(s, i) >= 0:
		w.endWait(s, i, isClosed)
	default:
		st := w.statsOf(s, i)
		st.acquired++
		st.ticks += w.now - c.since
		c.phase = asking
		c.next++
	}
}

// run starts the fn of a call that has all its keys.
func (w *world) run(s *state, i int) {
	c := &s.calls[i]
	if key := w.robbed(s, i); key >= 0 {
		w.fail(s, i, w.closedReason(s, i))
		c.refused = key
		return
	}
	c.phase, c.ran = running, true
}

func (w *world) endFn(s *state, i int) {
	c := &s.calls[i]
	c.phase = ending
	c.result = [...]reason{0, isNil, isFnError, isPanic, isExit}[c.told]
}
