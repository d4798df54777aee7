package processlock

// slot is a running task's share of its Group's limit. It belongs to running
// code only: while a request of the task waits, another task has it. If tasks
// kept their slots while they wait, they could hold all of them and wait for
// keys of tasks that wait for a slot.
//
// It is apart from the task, since contexts lead to it that fn may keep.
type slot struct {
	group *Group

	// Guarded by group.mu.
	held  bool
	over  bool          // the task has ended; what is left of it needs no slot
	waits int           // requests of the task that wait
	back  chan struct{} // closed when the slot is had again; nil: nobody wants it
}

// park gives the slot up, since a request waits. s may be nil.
func (s *slot) park() {
	if s == nil || s.group.limit < 1 {
		return
	}
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	s.waits++
	if s.held {
		s.held = false
		g.active--
		g.dispatch()
	}
}

// unpark returns when the request whose wait has ended may go on: when the slot
// is had again. If other requests of the task still wait it is given up again
// at once: whoever goes on meanwhile does so without, as the task's other
// goroutines do. s may be nil.
func (s *slot) unpark() {
	if back := s.reclaim(); back != nil {
		<-back
	}
}

// reclaim is unpark for those who wait for themselves: until what it returns is
// closed, if it returns something.
func (s *slot) reclaim() <-chan struct{} {
	if s == nil || s.group.limit < 1 {
		return nil
	}
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	s.waits--
	if s.held || s.over {
		return nil
	}
	if s.back == nil {
		s.back = make(chan struct{})
		g.returning = append(g.returning, s)
		g.dispatch()
	}
	return s.back // nil if dispatch had one to spare
}

// end gives the slot up for good. The next task starts outside the mutex, whose
// Unlock may let others run first: so that the goroutine that is about to exit
// and the new one are not both there meanwhile, and so on without bound.
func (s *slot) end() {
	if t := s.handOver(); t != nil {
		go t.run()
	}
}

// endAfter is end, deferred: it follows user code.
func (s *slot) endAfter() {
	goOn(recover())
	s.end()
}

// endUnless is end where user code has exited the goroutine.
func (s *slot) endUnless(done *bool) {
	if !*done {
		goOn(recover())
		s.end()
	}
}

// handOver returns the task that has the slot next, if there is one.
func (s *slot) handOver() *task {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	s.over = true
	s.resume()
	if s.held {
		s.held = false
		g.active--
	}
	return g.next() // one slot, one task
}

// resume lets go on who waits for the slot.
func (s *slot) resume() {
	if s.back != nil {
		close(s.back)
		s.back = nil
	}
}

// dispatch starts tasks while there are slots. Called under mu, and whenever
// there may be one to spare.
func (g *Group) dispatch() {
	for t := g.next(); t != nil; t = g.next() {
		go t.run()
	}
}

// next gives a free slot away: to tasks that take theirs again, then to the first
// that has not started, which it returns. Called under mu.
func (g *Group) next() *task {
	for g.limit < 1 || g.active < g.limit {
		switch {
		case len(g.returning) > 0:
			s := g.returning[0]
			g.returning[0] = nil
			if g.returning = g.returning[1:]; len(g.returning) == 0 {
				g.returning = nil // an array grown by a burst
			}
			s.resume()
			if s.waits == 0 && !s.over {
				s.held = true
				g.active++
			}
		case g.ready.first != nil:
			t := g.ready.first
			g.ready.remove(t)
			g.active++
			return t
		default:
			return nil
		}
	}
	return nil
}
