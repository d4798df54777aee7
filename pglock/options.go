package pglock

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/dbx-tools/processlock"
)

// Options are the settings of a [Locker]. The zero Options are the defaults.
type Options struct {
	// Namespace, if set, is hashed in front of every key, so that lockers of
	// different namespaces have nothing to do with each other: see
	// [Locker.LockID]. Every replica must have the same one, in every language.
	Namespace string

	// MaxConns bounds the connections of the Locker: one for what needs no
	// waiting, the rest to wait on, one for each key that another process holds
	// (more such keys are polled for on the first). Calls that hold something
	// already may open more, and each [Locker.WithConn] and [Locker.WithTx] has a
	// session of its own, so that no call ever waits for a connection. Those that
	// can't do without are refused where the server has no room for one. Not more
	// than MaxConns are kept. 0 means 4; less than 2 panics.
	MaxConns int32

	// MaxKeys bounds how many keys this process holds on the server at once
	// through the Locker: one more waits until there is room, and with
	// [processlock.IfAvailable] is refused. Calls that hold something already
	// don't count it. The lock table of PostgreSQL is shared by the whole cluster,
	// and where it is full not even SELECT works. 0 means 1000; less panics.
	MaxKeys int

	// Wait tells how to wait for a key that another process holds.
	Wait WaitMode

	// Slice is how long one statement waits in the server's queue before it
	// goes to its end again, and so how long a wait can delay VACUUM and CREATE
	// INDEX CONCURRENTLY. 0 means 500 ms; less than 1 ms panics.
	Slice time.Duration

	// Handoff bounds how long a key stays in this process while goroutines here
	// wait for it.
	Handoff Handoff

	// Probe bounds how long it takes to notice that the session which holds the
	// lock is gone: fn's context ends within it, with cause
	// [processlock.ErrLost]. An answer of the server may take less than half of it,
	// so two round trips are too short a Probe: every call fails, and says so. 0
	// means 5 s; less than 10 ms panics.
	Probe time.Duration

	// Release bounds a release, which goes on when the caller's context is done.
	// A session that hasn't answered by then is closed. 0 means 5 s; less than
	// 10 ms panics.
	Release time.Duration

	// Local is where the goroutines of this process queue, by lock id; nil means
	// a coordinator of the Locker's own. Its Options.MaxWaiters counts, and its
	// Snapshot shows who waits, under the ids. Sharing one among Lockers of
	// different databases makes their equal ids one lock.
	Local *processlock.Coordinator

	// Logger is told of what no caller gets to see as an error: sessions that
	// were lost, releases that failed. nil means that nobody is.
	Logger *slog.Logger
}

// WaitMode tells how a request waits for a key that another process holds.
type WaitMode uint8

const (
	// Queue waits in the server's queue, in slices of Options.Slice: the key is
	// handed over in about a millisecond and turns between processes are even.
	Queue WaitMode = iota

	// Poll asks again and again, with a pause that grows and is jittered: no
	// statement ever waits, so nothing else in the database is ever delayed, and
	// no connection is needed; a hand-over takes as long as the pause.
	Poll
)

// String returns "queue" or "poll".
func (m WaitMode) String() string {
	switch m {
	case Queue:
		return "queue"
	case Poll:
		return "poll"
	}
	return "WaitMode(" + strconv.Itoa(int(m)) + ")"
}

// Handoff bounds how long a key stays with this process while goroutines here
// wait for it: so long it passes from one to the next without asking the
// server. After that other processes get their turn first.
type Handoff struct {
	// For is how long after it was granted by the server the key may be passed
	// on. With N processes one waits at most (N-1) x (For + one fn). 0 means 10 ms;
	// less panics.
	For time.Duration

	// Max is how many goroutines may have the key in that time: 0 means that
	// only For counts, 1 that it is never passed on. Less than 0 panics.
	Max int
}

func orDefault(d *time.Duration, def, least time.Duration, name string) {
	switch {
	case *d == 0:
		*d = def
	case *d < least:
		misuse(name + " is " + d.String() + "; want " + least.String() + " or more")
	}
	*d = min(*d, longest) // sums with it don't overflow
}

// complete checks o and fills in the defaults.
func (o *Options) complete() {
	if o.MaxConns == 0 {
		o.MaxConns = 4
	}
	if o.MaxConns < 2 {
		misuse("MaxConns is " + strconv.Itoa(int(o.MaxConns)) + "; want 2 or more")
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = 1000
	}
	if o.MaxKeys < 0 {
		misuse("MaxKeys is " + strconv.Itoa(o.MaxKeys) + "; want 0 or more")
	}
	if o.Wait != Queue && o.Wait != Poll {
		misuse("Wait is " + o.Wait.String() + "; want Queue or Poll")
	}
	if o.Handoff.Max < 0 {
		misuse("Handoff.Max is " + strconv.Itoa(o.Handoff.Max) + "; want 0 or more")
	}
	orDefault(&o.Slice, 500*time.Millisecond, time.Millisecond, "Slice")
	orDefault(&o.Handoff.For, 10*time.Millisecond, 0, "Handoff.For")
	orDefault(&o.Probe, 5*time.Second, 10*time.Millisecond, "Probe")
	orDefault(&o.Release, 5*time.Second, 10*time.Millisecond, "Release")
}
