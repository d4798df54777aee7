package locktest

import (
	"context"
	"time"

	"github.com/dbx-tools/processlock"
)

// Options name what a [processlock.Locker] does not promise, and what helps the
// suite to look at it. The zero Options are those of a locker inside the
// process that promises everything. What an option excludes is skipped, and
// reported with the number of its rule.
type Options struct {
	// RealTime is for a locker whose waits are not durably blocking in the
	// sense of testing/synctest (rule 37), since it talks to a server or waits
	// for a sync.Mutex. The rules then run outside a bubble, on real time, and
	// every wait for the locker is bounded by the deadline of the test.
	RealTime bool

	// Waiters, if not nil, returns how many requests wait for key. On real time
	// nothing else tells for certain that a request waits, so without it the
	// checks that must know it are skipped: most of order (3, 4, 5). In a bubble
	// it is not used.
	Waiters func(l processlock.Locker, key any) int

	// Client, if not nil, returns a context that carries a client of l, as
	// Coordinator.WithClient does. Without it only the end of a client's
	// context is looked at (24), not what closing it takes away (25, 27).
	Client func(ctx context.Context, l processlock.Locker, name string) (context.Context, *processlock.Client)

	// Unordered is for a locker that grants in some other order than that of
	// arrival: where it arbitrates between processes, say. It excludes rules 3
	// and 5, of 4 and 19 that a shared request passes no exclusive one that
	// waits, and of 23 the order in which keys are taken and released.
	Unordered bool

	// NoShared is for a locker to which Shared means nothing. It excludes rule 4
	// and what others say of shared holds.
	NoShared bool

	// NoReentrant is for a locker to which Reentrant means nothing (18, 22).
	NoReentrant bool

	// NoAll is for a locker that takes one key at a time. It excludes rule 23 and
	// what others say of All.
	NoAll bool

	// NoLineage is for a locker that does not know under which of its locks a
	// call is made. It excludes Reentrant (22), all deadlocks (30, 31), and what
	// other rules say of the lineage.
	NoLineage bool

	// NoDetach is for a locker that keeps a lineage of its own, which
	// processlock.Detach does not know and can't take away (32).
	NoDetach bool

	// NoCycles is for a locker that refuses to wait for its own lineage, but
	// does not search for longer cycles (31).
	NoCycles bool

	// CycleWithin is how long a cycle may stay before it is found (31). Zero
	// means that it is found at once, by the request that closes it.
	CycleWithin time.Duration

	// KeepsGoroutines is for a locker that has goroutines while it is idle, as
	// a connection pool does (35).
	KeepsGoroutines bool

	// Skip excludes whole rules by their number, for the reason given, where no
	// field above says it.
	Skip map[int]string
}

// need is what a check takes for granted of the locker or of the way in which
// it is run.
type need uint16

const (
	// certainty: it can be told that a request waits.
	certainty need = 1 << iota
	order
	shared
	reentrant
	all
	lineage
	detach
	cycles
	client
	noGoroutines
	bubble
)

// missing returns why what is needed is not there, or "".
func (o *Options) missing(n need) string {
	for _, m := range []struct {
		need   need
		absent bool
		why    string
	}{
		{certainty, o.RealTime && o.Waiters == nil, "on real time without Options.Waiters nothing tells that a request waits"},
		{order, o.Unordered, "Options.Unordered: requests are not granted in order of arrival"},
		{shared, o.NoShared, "Options.NoShared: there are no shared holds"},
		{reentrant, o.NoReentrant, "Options.NoReentrant: Reentrant means nothing"},
		{all, o.NoAll, "Options.NoAll: one key at a time"},
		{lineage, o.NoLineage, "Options.NoLineage: under which lock a call is made is not known"},
		{detach, o.NoDetach, "Options.NoDetach: processlock.Detach does not take the lineage away"},
		{cycles, o.NoCycles, "Options.NoCycles: cycles are not searched for"},
		{client, o.Client == nil, "Options.Client is nil: no client of this locker can be made"},
		{noGoroutines, o.KeepsGoroutines, "Options.KeepsGoroutines: goroutines stay while idle"},
		{bubble, o.RealTime, "Options.RealTime: waits are not durably blocking"},
	} {
		if n&m.need != 0 && m.absent {
			return m.why
		}
	}
	return ""
}
