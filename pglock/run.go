package pglock

import (
	"context"
	"runtime"
	"time"
)

// background governs nothing; see session.
var background = context.Background()

// run does what the session is asked to.
func (s *session) run() {
	if s.conn == nil {
		if s.after != nil {
			<-s.after
		}
		if final, err := s.connect(); err != nil {
			if final {
				s.refuse(err)
			} else {
				s.fail(err)
			}
			return
		}
	}
	s.work(false)
}

// work is run for a connection that stands; with watch it begins by watching
// over what the session holds.
func (s *session) work(watch bool) {
	l := s.l
	for {
		l.mu.Lock()
		if s.batched > 1 {
			// Those whom the last query served are likely to come again: let
			// them go into one.
			l.mu.Unlock()
			runtime.Gosched()
			l.mu.Lock()
		}
		batch := s.next()
		watch = watch && batch == nil && !s.dead && !s.lent && len(s.tenures) > 0
		if s.dead || batch == nil && !watch {
			s.rest()
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if watch {
			s.attend()
		} else if s.serve(batch) != nil {
			return
		}
		watch = false
	}
}

// rest ends the work for now. Called under mu.
func (s *session) rest() {
	s.running = false
	if !s.dead && !s.lent && len(s.tenures) > 0 {
		s.rested = time.Now()
		s.startTimer()
	}
}

// refuse answers all that is queued with the reason why there is no connection.
func (s *session) refuse(err error) {
	s.l.mu.Lock()
	queue := s.queue
	s.queue = nil
	s.l.mu.Unlock()
	s.fail(err)
	for _, o := range queue {
		s.finish(o, opResult{err: err, connect: true})
	}
}

// finish calls o's done.
func (s *session) finish(o *op, r opResult) {
	r.op, r.sess, r.unlocks = o, s, o.unlocks
	o.done(r)
}

// serve does what batch asks for. Its error means that the session has ended.
func (s *session) serve(batch []*op) error {
	o := batch[0]
	if o.release != nil {
		ok, err := s.giveUp(o)
		if err == nil {
			s.finish(o, opResult{unlocked: ok})
		}
		return s.checkEnd(batch, err)
	}
	within, queries := o.within, o.queries
	if queries == nil {
		within, queries = s.within(batch), []string{compose(batch)}
	}
	replies, err := s.roundTrip(within, queries...)
	return s.answer(batch, replies, err)
}

// answer tells those who wait for batch.
func (s *session) answer(batch []*op, replies []reply, err error) error {
	switch o := batch[0]; {
	case err != nil:
	case o.queries != nil:
		s.finish(o, opResult{replies: replies})
	case replies[0].err != nil:
		err = s.apart(batch)
	default:
		s.distribute(batch, replies[0])
	}
	return s.checkEnd(batch, err)
}

// checkEnd follows the end of the session, if err is not nil, and tells those of
// batch who haven't got an answer.
func (s *session) checkEnd(batch []*op, err error) error {
	if err == nil {
		return nil
	}
	s.fail(err)
	for _, o := range batch {
		if o != nil { // else it is finished
			s.orphan(o, err)
		}
	}
	return err
}
