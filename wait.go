package processlock

import (
	"context"
	"errors"
	"runtime/trace"
	"time"
)

// await waits for w's turn. It runs user code, the methods of ctx, so whatever
// way it ends but by a grant, w leaves the queue or passes the key on.
func (a *attempt) await(s *shard, w *claim, g *grant) (err error) {
	start := w.since.Load()
	count := &s.stats.canceled
	resumed, waited, parked := false, w.wait == nil, false
	var now int64            // when it was granted, once that is known
	var back <-chan struct{} // where the slot of a Group's task comes back
	var region *trace.Region
	defer func() {
		if a.all == nil {
			a.stopTimer()
		}
		endRegion(region)
		if !resumed {
			a.sight.lookBack(s, w)
			s.withdraw(w, count)
			if now == 0 {
				now = clock()
			}
			if waited {
				s.addWait(elapsed(start, now))
			}
		}
		if parked {
			back = a.slot.reclaim()
		}
		if back != nil {
			<-back
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

	done, expired := a.ctx.Done(), a.expired() // hooks don't put MaxWait off
	if a.sight != nil {
		a.sight.waits()
		region = a.sight.region(waitRegion)
	}
	if a.slot != nil {
		a.slot.park()
		parked = true
	}
	timedOut, canceled := false, false
	if done == nil && expired == nil {
		<-w.port
	} else {
		select {
		case <-w.port:
		case <-done:
			canceled = true
		case <-expired:
			// If the grant came first it counts, but for All the time is up.
			a.sight.lookBack(s, w)
			if timedOut = s.leave(w); !timedOut {
				<-w.port
				a.timer.Reset(0)
			}
		}
	}

	if parked && !canceled && !timedOut {
		back, parked = a.slot.reclaim(), false
		if back != nil {
			// It has its key. The wait for the slot is none for a key, but must
			// not keep the key from others either when nothing will come of it.
			now = clock()
			s.note(w, now)
			select {
			case <-back:
				back = nil
			case <-done:
				canceled = true
			}
		}
	}
	// Grant or not, a context that is done wins.
	err = ended(a.ctx)
	if err == nil && canceled { // Done sent a value, whatever that is to mean
		err = context.Canceled
	}
	if err == nil && timedOut {
		count = &s.stats.unavailable
		return ErrWaitTimeout
	}
	if err == nil {
		if now == 0 {
			now = clock()
		}
		w.since.Store(now) // before it shows as running
		if !w.state.CompareAndSwap(stateGranted, a.resumed()) {
			err = a.closedReason()
		}
	}
	if err != nil {
		if err == ErrClosed || a.client.closed() && errors.Is(err, ErrClosed) {
			count = &s.stats.closed
		}
		return err
	}
	if a.sight != nil {
		a.sight.since = now
	}
	resumed = true
	s.stats.resumed.Add(1)
	s.addWait(elapsed(start, now))
	if w.wait != nil {
		waits.remove(w.wait)
	}
	g.claim = w
	return nil
}

// note writes down since when w, which has been granted, holds its key, before
// it goes on.
func (s *shard) note(w *claim, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.since.Store(now)
	w.noted = true
}

// closedReason is the reason of a call that Client.Close or Shutdown ended. If
// its context is done too, that is: by the client, with ErrClosed as its cause,
// or earlier by another.
func (a *attempt) closedReason() error {
	if err := ended(a.ctx); err != nil {
		return err
	}
	return ErrClosed
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
		w.sight.blame(w)
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
