package processlock

import (
	"errors"
	"time"
)

// await waits for w's turn. It runs user code, the methods of ctx, so whatever
// way it ends but by a grant, w leaves the queue or passes the key on.
func (a *attempt) await(s *shard, w *claim, g *grant) (err error) {
	start := clock()
	w.since.CompareAndSwap(0, start)
	count := &s.stats.canceled
	resumed, waited := false, w.wait == nil
	defer func() {
		if !a.several {
			a.stopTimer()
		}
		if !resumed {
			s.withdraw(w, count)
			if waited {
				s.addWait(elapsed(start, clock()))
			}
		}
	}()
	if w.wait != nil {
		if err := w.wait.search(); err != nil {
			count = &s.stats.deadlocks
			return err
		}
		s.mu.Lock()
		s.stats.waited++
		s.mu.Unlock()
		waited = true
	}

	timedOut := false
	if done, expired := a.ctx.Done(), a.expired(); done == nil && expired == nil {
		<-w.port
	} else {
		select {
		case <-w.port:
		case <-done:
		case <-expired:
			// If the grant came first it counts.
			if timedOut = s.leave(w); !timedOut {
				<-w.port
			}
		}
	}

	// Grant or not, a context that is done wins.
	if err := ended(a.ctx); err != nil {
		if a.client.closed() && errors.Is(err, ErrClosed) {
			count = &s.stats.closed
		}
		return err
	}
	if timedOut {
		count = &s.stats.unavailable
		return ErrWaitTimeout
	}
	if !w.proceed(a.resumed()) {
		count = &s.stats.closed
		return ErrClosed
	}
	resumed = true
	now := clock()
	w.since.Store(now)
	s.stats.resumed.Add(1)
	s.addWait(elapsed(start, now))
	if w.wait != nil {
		waits.remove(w.wait)
	}
	g.claim = w
	return nil
}

// expired returns the channel of MaxWait's timer, or nil.
func (a *attempt) expired() <-chan time.Time {
	if a.maxWait == 0 {
		return nil
	}
	if a.timer == nil {
		a.timer = time.NewTimer(a.maxWait)
	}
	return a.timer.C
}

func (a *attempt) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// leave takes w out of its queue, if it is still there.
func (s *shard) leave(w *claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.state.Load() != stateQueued {
		return false
	}
	held := s.held
	w.entry.dequeue(w)
	w.client.leave()
	w.state.Store(stateLeft)
	w.entry.grantNext()
	s.report(held)
	return true
}

// withdraw ends a wait that did not come to anything, wherever w is by now, and
// counts it.
func (s *shard) withdraw(w *claim, count *int64) {
	if w.wait != nil {
		waits.remove(w.wait) // while w still is what the graph takes it for
	}
	s.leave(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	*count++
	var c *crowd
	if w.state.Load() == stateGranted {
		held := s.held
		e := w.entry
		e.dropHolder(w)
		e.settle()
		s.report(held)
		c = e.crowd
	}
	select { // a token that nobody waited for
	case <-w.port:
	default:
	}
	s.recycle(w, c)
}
