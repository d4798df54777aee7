package pglock

import (
	"time"

	"github.com/dbx-tools/processlock"
)

// op is something to do on a session.
type op struct {
	// What the hub does for several keys in one query.
	unlock, try    lockRef
	unlocks, tries bool
	key            processlock.Key // of try

	// What is done alone: queries, or a release.
	queries []string
	lock    int  // which of the queries takes the lock
	looks   bool // the one before it looks for a deadlock
	release *tenure

	within time.Duration
	done   func(opResult) // called without the mutex
	again  bool           // was sent to a session that had ended meanwhile
}

type opResult struct {
	op       *op
	sess     *session
	unlocks  bool
	unlocked bool
	granted  bool
	replies  []reply
	err      error // the session has ended, or the statement was refused
	connect  bool  // err is about making a connection
}

// submit has o done. Called under mu.
func (s *session) submit(o *op) {
	if s.dead {
		go o.done(opResult{op: o, sess: s, err: s.err, unlocks: o.unlocks})
		return
	}
	s.queue = append(s.queue, o)
	if s.reading {
		(*s.raw.Load()).SetReadDeadline(time.Unix(1, 0))
	}
	s.start()
}

// start runs the goroutine, if it isn't there. Called under mu.
func (s *session) start() {
	if s.running || s.dead {
		return
	}
	s.running = true
	if l := s.l; l.inline != nil && *l.inline == nil && s.conn != nil && s.batched <= 1 {
		*l.inline = s
		return
	}
	go s.run()
}

// do has o done and returns what came of it.
func (s *session) do(o *op) opResult {
	answer := make(chan opResult, 1)
	o.done = func(r opResult) { answer <- r }
	s.l.mu.Lock()
	s.submit(o)
	s.l.mu.Unlock()
	return <-answer
}
