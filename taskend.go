package processlock

import "context"

// giveUp takes t, whose fn has not run, out of its queue and gives up what it
// has got.
func (t *task) giveUp(why error) {
	if t.timer != nil {
		t.timer.Stop()
	}
	err := &AcquireError{t.key, why}
	w := t.last()
	if w != nil {
		defer w.sight.refused(err) // user code, so when nothing is held any more
		if w.entry != nil {
			w.sight.lookBack(w.entry.shard, w)
			w.entry.shard.forsake(w, t.group.closed())
		}
	}
	if v := t.several; v != nil {
		v.giveBack(why)
	}
}

// forsake ends a task's claim, wherever it is by now. If it has not been counted
// as granted it is counted as what it ended by: closed, or its context.
func (s *shard) forsake(w *claim, closed bool) {
	if w.wait != nil {
		waits.remove(w.wait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	st := w.state.Load()
	switch st {
	case stateLeft: // counted by whoever took it out
		return
	case stateQueued:
		w.entry.dequeue(w)
		w.client.leave()
		w.entry.grantNext()
	case stateGranted:
		w.sight.blame(w)
		w.entry.dropHolder(w)
		w.entry.settle()
	}
	if !w.noted {
		if closed || st == stateEnded || st == stateRevoked {
			s.stats.closed++
		} else {
			s.stats.canceled++
		}
		s.addWait(elapsed(w.since.Load(), clock()))
	}
	w.state.Store(stateLeft)
	s.report(held)
}

// recount counts a grant that was not expected to come to anything, if that is
// what w's was.
func (s *shard) recount(w *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.noted {
		s.countTask(w)
	}
}

// drop ends t, since its group starts no task any more. What is wrong with the
// group is no error of t's, unless it is that the client was closed under which
// t has asked for a key: then it ends as a call does.
func (t *task) drop() {
	why, closed := t.whyDropped()
	if closed {
		if v := t.several; v != nil && len(v.got.list) == len(v.keys) {
			t.key = v.got.revoked(v.keys)
		}
		t.refuse(why)
		return
	}
	defer t.endAfter(&t.group.dropped)
	t.giveUp(why)
}

func (t *task) whyDropped() (why error, closed bool) {
	g := t.group
	done := false
	defer t.unlessDone(&done)
	if t.key != (Key{}) && g.closed() {
		why, closed = g.closedReason(), true
	} else if why = g.ended(); why == nil {
		why = context.Canceled // by an error that is about to end the context
	}
	done = true
	return why, closed
}

// refuse ends t, which doesn't get its key. err is told by identity: the reason
// of a context may be anything.
func (t *task) refuse(err error) {
	switch err {
	case ErrUnavailable, ErrWaitTimeout, ErrQueueFull:
		defer t.endAfter(&t.group.skipped)
		t.giveUp(err)
	default:
		t.fail(&AcquireError{t.key, err})
	}
}

// fail ends t, which is the group's error.
func (t *task) fail(err *AcquireError) {
	t.group.fail(err)
	defer t.endAfter(nil)
	t.giveUp(err.Err)
}

// endAfter is end for a task whose fn has not run, deferred: it follows user code,
// hooks. In GoLocked a panic of theirs is the caller's.
func (t *task) endAfter(count *int) {
	if t.apart {
		goOn(recover())
	}
	t.end(count)
}

// end takes t off the group's accounts.
func (t *task) end(count *int) {
	g := t.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if count != nil {
		*count++
	}
	if g.left--; g.left == 0 && g.done != nil {
		g.waited = true
		close(g.done)
	}
}
