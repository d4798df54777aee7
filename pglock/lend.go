package pglock

import "time"

// lookEvery is how often the socket of a lent session is looked at.
const lookEvery = 20 * time.Millisecond

// lend hands the session over to fn. Called under mu.
func (s *session) lend(t *tenure) {
	s.lent = true
	s.mute.Store(false)
	go s.peer(t)
}

// peer watches the socket of a lent session without touching what fn uses, and
// whether fn's client is there.
func (s *session) peer(t *tenure) {
	every := min(lookEvery, s.l.opts.Probe*2/5)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-t.over:
			return
		case <-timer.C:
		}
		s.l.mu.Lock()
		s.mindSoon()
		s.l.mu.Unlock()
		if hungUp(*s.raw.Load()) {
			s.fail(errConnLost)
			return
		}
		timer.Reset(every)
	}
}
