// Package locktest holds a [processlock.Locker] to the contract, as
// testing/slogtest does with a slog.Handler. It is for those who write a backend
// of their own, or wrap one, and want to know whether it promises what
// processlock promises:
//
//	func TestLocker(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) processlock.Locker {
//			return mylock.New()
//		}, locktest.Options{})
//	}
//
// Each rule is a subtest with its number in the name, and each of its checks one
// below it, so that a failure tells what is broken:
//
//	--- FAIL: TestLocker/rule05_leaving/next_in_at_once
//
// # What is asked
//
// Only what can be asked through the Locker interface: exclusion (1), keys (2,
// 17), order (3), Shared (4), leaving the queue (5), the goroutine of fn (6),
// the memory model (7, with the race detector), contexts (8 to 12, 24), results
// (13), panics and runtime.Goexit (15), misuse (16), the order of checks (18),
// IfAvailable (19), MaxWait (20), Reentrant (22), All (23), deadlocks (30 to 32),
// what is left behind (34, 35), user code (36) and bubbles (37). A client that
// is closed (25, 27) needs Options.Client.
//
// Not asked are rules about functions and settings that a Locker does not have:
// WithLockValue (14), MaxWaiters (21), Worker (28), Shutdown (29), snapshots,
// counters and hooks (39 to 42); and about costs (26, 33) and builds (38). Nor
// can it be arranged from outside that a grant and the end of MaxWait meet in
// one given order (20).
//
// # Bubbles and real time
//
// A check runs in a bubble of testing/synctest, with a locker of its own that is
// made there. That a request waits is then certain, "at once" means without
// another event, and no time is lost. A wait that nothing can end fails its
// check; so does a goroutine that stays behind.
//
// With Options.RealTime a check runs outside a bubble, for lockers that talk to
// a server. It waits for what it is owed until a quarter of the time is over
// that is left to the test, and then ends the contexts of what hangs. It makes
// only claims that hold however slow the machine is.
//
// # What a locker may leave out
//
// [Options] name what a locker does not promise. Checks that would need it are
// skipped, and Run logs each with its rule and the reason, see them with go test
// -v: a suite that is passed because it asks nothing should look like it.
//
// Nothing else should run at the same time: rule 34 compares the memory in use
// and, on real time, rule 35 counts goroutines.
package locktest
