package pglock

import "time"

// standIn does what the goroutine of the session would, on the goroutine of a
// caller who has nothing else to do than wait for it: that saves two switches.
// If the answer isn't there soon, or more is asked for meanwhile, the goroutine
// goes on with it, so that the caller can leave.
func (s *session) standIn() {
	l := s.l
	l.mu.Lock()
	batch := s.next()
	inline := batch != nil && (batch[0].unlocks || batch[0].tries)
	if inline {
		s.stoodIn = time.Now()
		s.startTimer()
	}
	l.mu.Unlock()
	switch {
	case batch == nil:
	case !inline:
		s.serve(batch)
	case !s.standInFor(batch):
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.leave()
	if len(s.queue) > 0 && !s.dead {
		go s.work(false)
	} else {
		s.rest()
	}
}

// leave ends the standing in. Called under mu.
func (s *session) leave() {
	s.stoodIn = time.Time{}
	if s.sentOff {
		s.sentOff = false
		(*s.raw.Load()).SetReadDeadline(time.Time{})
	}
}

// standInFor serves a batch, or has the goroutine go on with it and reports
// false.
func (s *session) standInFor(batch []*op) bool {
	answers := make([]reply, 1)
	err := s.send(compose(batch))
	if err == nil {
		if err = s.receive(&answers[0]); timedOut(err) { // the rest is yet to come
			s.l.mu.Lock()
			s.leave()
			s.l.mu.Unlock()
			go s.resume(batch, answers)
			return false
		}
	}
	if answers[0].err != nil {
		// What follows a refusal has its own deadlines, which nobody may move.
		s.l.mu.Lock()
		s.leave()
		s.l.mu.Unlock()
	}
	s.answer(batch, answers, err)
	return true
}

// resume does what is left of a batch whose answer has come in part, or not yet.
func (s *session) resume(batch []*op, answers []reply) {
	conn := s.conn.PgConn().Conn()
	within := s.within(batch)
	conn.SetDeadline(time.Now().Add(within))
	err := late(s.receive(&answers[0]), within)
	conn.SetDeadline(time.Time{})
	if s.answer(batch, answers, err) == nil {
		s.work(false)
	}
}
