package pglock

import (
	"slices"
	"time"
)

const (
	// batchMost is how many keys one query of the hub may serve.
	batchMost = 200

	// unwatched is how long a session may hold a lock before it is watched:
	// starting to read costs as much as an uncontended lock.
	unwatched = 10 * time.Millisecond
)

// next takes the next op of the queue, or as many as go into one query.
func (s *session) next() []*op {
	n := 0
	for n < len(s.queue) && n < batchMost && (s.queue[n].unlocks || s.queue[n].tries) {
		n++
	}
	if n == 0 && len(s.queue) > 0 {
		n = 1
	}
	if n == 0 {
		return nil
	}
	s.batched = n
	batch := s.queue[:n:n]
	s.queue = s.queue[n:]
	if len(s.queue) == 0 {
		s.queue = nil
	}
	return batch
}

// within is how long the answer to batch may take.
func (s *session) within(batch []*op) time.Duration {
	if slices.ContainsFunc(batch, func(o *op) bool { return o.unlocks }) {
		return min(s.l.bound(), s.l.opts.Release)
	}
	return s.l.bound()
}

// apart does one by one what failed together. What the failed query has done
// nobody knows: an unlock may find its work done, and a try the lock taken, which
// is why it unlocks first, and again should it fail.
func (s *session) apart(batch []*op) error {
	for i, o := range batch {
		r, err := s.alone(o)
		if err != nil {
			return err
		}
		s.finish(o, r)
		batch[i] = nil
	}
	return nil
}

func (s *session) alone(o *op) (opResult, error) {
	r := opResult{unlocked: o.unlocks}
	var queries []string
	if o.unlocks {
		queries = append(queries, "select "+o.unlock.unlock())
	}
	if o.tries {
		queries = append(queries, "select "+o.try.unlock(), "select "+o.try.try()+comment(o.key))
	}
	replies, err := s.roundTrip(s.l.bound(), queries...)
	if err != nil {
		return r, err
	}
	if o.unlocks && replies[0].err != nil {
		return r, replies[0].err // it may be held still
	}
	if !o.tries {
		return r, nil
	}
	last := replies[len(replies)-1]
	if last.err == nil {
		r.granted = last.last() == "t"
		return r, nil
	}
	r.err = last.err
	replies, err = s.roundTrip(s.l.bound(), "select "+o.try.unlock())
	if err == nil && replies[0].err != nil {
		err = replies[0].err
	}
	return r, err
}
