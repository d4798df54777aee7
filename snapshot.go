package processlock

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Snapshot is what a coordinator's keys looked like. Each key's row is
// consistent in itself; rows may be of slightly different instants. It shares
// nothing with the coordinator.
type Snapshot struct {
	Taken time.Time
	Locks []LockState // sorted by canonical text; never nil
}

// LockState is a key that is held.
type LockState struct {
	Key     Key      // as the request spelled it that found it free
	Holders []Holder // in order of their grants; never nil
	Waiters []Waiter // in queue order; never nil
}

// Holder is a request that has a key.
type Holder struct {
	Client     string // name of its client, if it has one
	Func, File string // where its fn begins; a method value has a name only
	Line       int
	Mode       Mode

	// Since is when the key was granted; zero if that is not known, see
	// Options.TrackHolds.
	Since time.Time

	// Running tells whether fn runs. A request that has just been granted its
	// key does not yet, nor does one of [All] that waits for other keys, nor one
	// of a [Group] that waits for a slot.
	Running bool
}

// Waiter is a request in a key's queue.
type Waiter struct {
	Client     string // name of its client, if it has one
	Func, File string // where its fn begins; a method value has a name only
	Line       int
	Mode       Mode
	Since      time.Time // when it began to wait

	// Holding lists the keys, of any coordinator, that it or the fn in which it
	// was made holds meanwhile, sorted by canonical text. Never nil.
	Holding []Key
}

// requestRow is a holder or waiter as copied under a shard's mutex.
type requestRow struct {
	client  *Client
	task    *task
	fn      uintptr
	mode    Mode
	since   int64
	running bool
	lineage []*hold
}

type lockRow struct {
	key              Key
	head             []byte // of its canonical text, for sorting
	holders, waiters []requestRow
}

// Snapshot lists every key that is held or waited for. Taking it stops no key
// for longer than it takes to copy one part of the table. It panics if c
// is nil or a copy of a used Coordinator.
func (c *Coordinator) Snapshot() Snapshot {
	c.check()
	var rows []lockRow
	for i := range c.shards {
		rows = c.shards[i].copyRows(rows)
	}
	snap := Snapshot{Taken: time.Now(), Locks: make([]LockState, 0, len(rows))}
	now := clock()
	for i := range rows {
		rows[i].head = rows[i].key.appendHead(nil)
	}
	slices.SortFunc(rows, func(a, b lockRow) int { return a.key.compareTo(b.key, a.head, b.head) })
	for _, r := range rows {
		l := LockState{Key: r.key, Holders: make([]Holder, 0, len(r.holders)), Waiters: make([]Waiter, 0, len(r.waiters))}
		for _, h := range r.holders {
			o := Holder{Client: h.clientName(), Mode: h.mode, Since: h.at(snap.Taken, now), Running: h.running}
			o.Func, o.File, o.Line = locate(h.fn)
			l.Holders = append(l.Holders, o)
		}
		for _, w := range r.waiters {
			o := Waiter{Client: w.clientName(), Mode: w.mode, Since: w.at(snap.Taken, now), Holding: w.holding()}
			o.Func, o.File, o.Line = locate(w.fn)
			l.Waiters = append(l.Waiters, o)
		}
		snap.Locks = append(snap.Locks, l)
	}
	return snap
}

// justNow stands for a time that its request is about to write down.
const justNow = math.MaxInt64

func (s *shard) copyRows(rows []lockRow) []lockRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.entries {
		l := lockRow{key: e.key()}
		if e.hold != nil {
			l.holders = append(l.holders, requestRow{client: e.client, fn: e.fn, mode: e.mode, running: true})
		}
		if e.crowd != nil {
			for w := e.crowd.holders.first; w != nil; w = w.next {
				st := w.state.Load() // before since, which is written before it
				r := w.row()
				r.running = w.running(st)
				if st == stateGranted && w.task == nil && !w.noted {
					r.since = justNow
				}
				l.holders = append(l.holders, r)
			}
			for w := e.crowd.queue.first; w != nil; w = w.next {
				l.waiters = append(l.waiters, w.row())
			}
		}
		rows = append(rows, l)
	}
	return rows
}

func (w *claim) row() requestRow {
	r := requestRow{client: w.client, task: w.task, fn: w.fn, mode: w.mode, since: w.since.Load()}
	if w.wait != nil {
		r.lineage = w.wait.lineage
	}
	return r
}

func (r requestRow) clientName() string { return clientName(r.client, r.task) }

// clientName is the name by which a request goes. A task has the name of the
// client that it will get before it has the client.
func clientName(c *Client, t *task) string {
	switch {
	case t != nil:
		return t.name()
	case c != nil:
		return c.name
	}
	return ""
}

// at returns when r began, given that it was now when the wall clock said taken.
func (r requestRow) at(taken time.Time, now int64) time.Time {
	switch r.since {
	case 0:
		return time.Time{}
	case justNow:
		return taken
	}
	return taken.Add(-time.Duration(elapsed(r.since, now)))
}

// holding returns the keys that r's lineage still holds, in order of their
// canonical texts.
func (r requestRow) holding() []Key {
	keys := make([]Key, 0, len(r.lineage))
	for _, h := range r.lineage {
		if k, ok := h.live(); ok {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, Key.compare)
	return slices.CompactFunc(keys, Key.same)
}

// Stats are a coordinator's counters. Held and Waiting are what is now, the
// rest has been counted since it was made. Every request that reached the table
// (its context live, its key readable, its client and coordinator open) ends in
// exactly one of Acquired, Canceled, Unavailable, Deadlocks and Closed. A
// request for several keys counts once for each that it asked for.
type Stats struct {
	Held        int64 // holders, over all keys
	Waiting     int64 // requests in a queue
	Acquired    int64 // the key was granted, Reentrant too
	Waited      int64 // requests that had to queue
	Canceled    int64 // the context ended the wait
	Unavailable int64 // IfAvailable, MaxWait, MaxWaiters
	Deadlocks   int64 // ErrDeadlock
	Closed      int64 // Client.Close or Shutdown ended the wait
	Lost        int64 // holds that Client.Close took from a running fn

	// WaitDuration is how long the ended waits of Waited took together. It
	// stays at the largest Duration rather than wrap.
	WaitDuration time.Duration
}

// String returns the counters as a JSON object, so that a Stats is an
// [expvar.Var]; to publish those of a coordinator as they are when asked for:
//
//	expvar.Publish("locks", expvar.Func(func() any { return json.RawMessage(c.Stats().String()) }))
//
// The names are the fields' in lower case, but for wait_seconds.
func (s Stats) String() string {
	return fmt.Sprintf(`{"held":%d,"waiting":%d,"acquired":%d,"waited":%d,"canceled":%d,"unavailable":%d,"deadlocks":%d,"closed":%d,"lost":%d,"wait_seconds":%s}`,
		s.Held, s.Waiting, s.Acquired, s.Waited, s.Canceled, s.Unavailable, s.Deadlocks, s.Closed, s.Lost,
		strconv.FormatFloat(s.WaitDuration.Seconds(), 'g', -1, 64))
}

// Stats returns the counters. Each part of the table is read at one instant. It panics if c is nil or a copy of a used Coordinator.
func (c *Coordinator) Stats() Stats {
	c.check()
	var t Stats
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		t.Held += s.held
		t.Waiting += s.stats.waiting
		t.Acquired += s.taken + s.stats.resumed.Load()
		t.Waited += s.stats.waited
		t.Canceled += s.stats.canceled
		t.Unavailable += s.stats.unavailable
		t.Deadlocks += s.stats.deadlocks
		t.Closed += s.stats.closed
		t.Lost += s.stats.lost
		t.WaitDuration += min(time.Duration(s.stats.waitTime.Load()), math.MaxInt64-t.WaitDuration)
		s.mu.Unlock()
	}
	return t
}
