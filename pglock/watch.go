package pglock

import (
	"time"
)

// tick is how often a session is looked at that somebody stands in for, or that
// holds a lock and is not watched. One timer for all of that goes on while locks
// come and go. A timer, or a deadline, that each lock sets anew would cost more
// than what it is for: to set one may wake a thread, which, where processors are
// few, takes one from the server.
const tick = 2 * time.Millisecond

// startTimer has the session looked at before long. Called under mu.
func (s *session) startTimer() {
	switch {
	case s.ticking:
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(tick, s.look)
	default:
		s.timer.Reset(tick)
	}
	s.ticking = true
}

// look sends off who has stood in for long, and starts to watch what was held
// for long.
func (s *session) look() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.ticking = false
	s.mindSoon()
	if !s.stoodIn.IsZero() {
		switch stood := time.Since(s.stoodIn); {
		case stood >= s.l.bound(): // he can't even send
			s.discard()
		case stood >= tick:
			s.sentOff = true
			(*s.raw.Load()).SetReadDeadline(time.Unix(1, 0))
		}
		s.startTimer()
		return
	}
	switch {
	case s.running || s.dead || s.lent || len(s.tenures) == 0:
	case time.Since(s.rested) < unwatched:
		s.startTimer()
	default:
		s.running = true
		go s.work(true)
	}
}

// attend reads in the background, and asks for an answer when nothing has come
// for a while, until there is something to do or nothing left that is held.
func (s *session) attend() {
	l := s.l
	conn := s.conn.PgConn().Conn()
	defer conn.SetReadDeadline(time.Time{})
	for silence := time.Now(); ; {
		l.mu.Lock()
		s.mindSoon()
		if s.dead || len(s.queue) > 0 || len(s.tenures) == 0 || s.lent {
			l.mu.Unlock()
			return
		}
		// Under the mutex: whoever comes from now on moves the deadline.
		s.reading = true
		conn.SetReadDeadline(silence.Add(l.opts.Probe * 2 / 5))
		l.mu.Unlock()
		msg, err := s.conn.PgConn().ReceiveMessage(background)
		l.mu.Lock()
		s.reading = false
		busy := len(s.queue) > 0
		l.mu.Unlock()
		if err == nil {
			_, err = new(reply).add(msg)
		}
		switch {
		case err == nil: // a notification, or a setting that changed
			silence = time.Now()
		case !timedOut(err):
			s.fail(err)
			return
		case busy:
			return
		default:
			if _, err := s.roundTrip(l.opts.Probe*2/5, "-- ping"); err != nil {
				s.fail(err)
				return
			}
			silence = time.Now()
		}
	}
}
