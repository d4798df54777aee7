package pglock

import (
	"strconv"
	"strings"

	"github.com/dbx-tools/processlock"
)

// deadlockError is a deadlock with the ids by which the server, and who looks
// there, knows the keys on the cycle.
type deadlockError struct {
	*processlock.DeadlockError
	ids map[processlock.Key]int64
}

func (e *deadlockError) Error() string {
	var known []string
	told := make(map[processlock.Key]bool)
	for _, w := range e.Cycle {
		// Of a key that stands for an id nothing is to be added.
		if id, ok := e.ids[w.Key]; ok && !told[w.Key] && w.Key != processlock.MustKey(localKey(id)) {
			told[w.Key] = true
			known = append(known, w.Key.String()+" is advisory lock "+strconv.FormatInt(id, 10))
		}
	}
	text := e.DeadlockError.Error()
	if len(known) > 0 {
		text += " (" + strings.Join(known, ", ") + ")"
	}
	return text
}

func (e *deadlockError) Unwrap() error { return e.DeadlockError }

// translate puts the caller's keys in the place of ids.
func (l *Locker) translate(d *processlock.DeadlockError, r *request) error {
	ids := make(map[processlock.Key]int64)
	cycle := make([]processlock.Wait, len(d.Cycle))
	copy(cycle, d.Cycle)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range cycle {
		id := cycle[i].Key.ID()
		e := l.entries[id]
		if e == nil || cycle[i].Key != processlock.MustKey(localKey(id)) {
			continue
		}
		if h := e.someHold(r); h != nil {
			w := h.wait()
			w.Client, w.Mode = cycle[i].Client, cycle[i].Mode
			cycle[i] = w
		}
		if id == r.ref.id {
			cycle[i].Key = r.key
		}
		ids[cycle[i].Key] = id
	}
	return &deadlockError{&processlock.DeadlockError{Cycle: cycle}, ids}
}
