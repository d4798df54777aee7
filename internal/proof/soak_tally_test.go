package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dbx-tools/processlock"
)

// section counts who is inside one key's critical section.
type section struct{ exclusive, shared atomic.Int64 }

func (s *section) enter(shared bool) (ok bool) {
	if shared {
		s.shared.Add(1)
		return s.exclusive.Load() == 0
	}
	return s.exclusive.Add(1) == 1 && s.shared.Load() == 0
}

func (s *section) leave(shared bool) {
	if shared {
		s.shared.Add(-1)
	} else {
		s.exclusive.Add(-1)
	}
}

// tally is what the callers saw, in the terms of Stats.
type tally struct {
	acquired, canceled, unavailable, deadlocks, closed, lost atomic.Int64

	mu     sync.Mutex
	wrongs []string
}

// wrong notes what must never be.
func (n *tally) wrong(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.wrongs) < 10 {
		n.wrongs = append(n.wrongs, fmt.Sprintf(format, args...))
	}
}

// add counts a call for keys, in the order in which they are taken.
func (n *tally) add(keys []processlock.Key, ran bool, err error) {
	var refusal *processlock.AcquireError
	refused := errors.As(err, &refusal)
	if ran {
		n.acquired.Add(int64(len(keys)))
		if errors.Is(err, processlock.ErrLost) {
			n.lost.Add(1)
		}
		return
	}
	if !refused {
		n.wrong("fn did not run, and the error is %v", err)
		return
	}
	if refusal.Error() == "" || refusal.Unwrap() != refusal.Err {
		n.wrong("a strange refusal: %#v", refusal)
	}
	n.acquired.Add(int64(max(0, slices.Index(keys, refusal.Key))))
	late := errors.Is(err, processlock.ErrWaitTimeout) || errors.Is(err, context.DeadlineExceeded)
	if late != refusal.Timeout() {
		n.wrong("Timeout() is %t of %v", refusal.Timeout(), err)
	}
	var deadlock *processlock.DeadlockError
	switch {
	case errors.As(err, &deadlock):
		n.deadlocks.Add(1)
		if len(deadlock.Cycle) == 0 || deadlock.Error() == "" || deadlock.Unwrap() != processlock.ErrDeadlock {
			n.wrong("a strange deadlock: %#v", deadlock)
		}
	case errors.Is(err, processlock.ErrUnavailable):
		n.unavailable.Add(1)
	case errors.Is(err, processlock.ErrClosed):
		n.closed.Add(1)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		n.canceled.Add(1)
	default:
		n.wrong("unknown: %v", err)
	}
}

// check compares an idle coordinator with the tally.
func (n *tally) check(t *testing.T, c *processlock.Coordinator) {
	t.Helper()
	for _, w := range n.wrongs {
		t.Error(w)
	}
	s := c.Stats()
	same := func(what string, got int64, want *atomic.Int64) {
		t.Helper()
		if got != want.Load() {
			t.Errorf("%s: Stats has %d, the callers saw %d", what, got, want.Load())
		}
	}
	same("Acquired", s.Acquired, &n.acquired)
	same("Unavailable", s.Unavailable, &n.unavailable)
	same("Deadlocks", s.Deadlocks, &n.deadlocks)
	same("Lost", s.Lost, &n.lost)
	// Some were refused before the table, which counts nothing.
	if s.Canceled > n.canceled.Load() || s.Closed > n.closed.Load() {
		t.Errorf("Stats has %d canceled and %d closed, the callers saw %d and %d",
			s.Canceled, s.Closed, n.canceled.Load(), n.closed.Load())
	}
	if s.Held != 0 || s.Waiting != 0 || s.WaitDuration < 0 {
		t.Errorf("Stats of an idle coordinator: %+v", s)
	}
	if left := c.Snapshot().Locks; len(left) > 0 {
		t.Errorf("left over: %+v", left)
	}
}
