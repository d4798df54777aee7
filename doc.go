// Package processlock runs a function alone among all callers in the process
// that name the same key, in order of arrival:
//
//	err := processlock.WithLock(ctx, []any{"invoice", id}, func(ctx context.Context) error {
//		return settle(ctx, id)
//	})
//
// [WithLock] is the way in; everything else refines it.
//
// # Guarantees
//
// Exclusion. For one key there is one exclusive holder, or any number of
// [Shared] ones, never both. Different keys never wait for each other, and any
// two can be nested: keys are compared exactly, not by a hash.
//
// Order. Requests for a key are granted in order of arrival. A release hands
// the lock to the next in the same step, so nobody gets in between, not the
// releaser and not [IfAvailable]. A request that gives up leaves the order of
// the others as it was.
//
// Context. A done context ends a wait at once and never runs fn, not on a free
// key either; if the grant and the end of the context meet, the context wins
// and the lock is passed on. Once fn runs, the context is fn's business: a lock
// is no lease, and nothing takes it from a running fn but [Client.Close].
//
// Results. fn's error comes back as it is. An error of WithLock's own is an
// [*AcquireError] and means that fn did not run; the one exception is
// [ErrLost]. A panic or [runtime.Goexit] in fn releases the lock and goes on
// unchanged.
//
// Deadlocks. A wait for locks that would close a cycle is refused with a
// [*DeadlockError] that names it, whatever keys, modes, clients and coordinators
// it goes through, as long as nested calls are made with the context of the fn
// around them. Requests that are on no cycle are never refused. Channels,
// WaitGroups and other locks are not seen.
//
// Nothing left behind. A key that is neither held nor waited for costs nothing.
// A call starts no goroutine, and a timer only while one with [MaxWait] waits.
// It registers nothing on its context; a [Client] does, until it is closed.
//
// # Memory model
//
// In the terms of [the Go memory model], for one key: the return of an fn that
// held it exclusively is synchronized before the start of every fn that is
// granted it later, and the return of an fn that held it Shared before the
// start of every exclusive fn that is granted it later. Nothing is promised
// between fns under one hold ([Shared], [Reentrant]), nor once a hold was lost.
//
// # Keys
//
// A key is any value with a stable identity, see [KeyOf]. Two keys are one lock
// exactly if their canonical texts are equal. The text, and the advisory lock
// id that is derived from it ([Key.ID]), are those of the TypeScript toolkit
// dbx-tools. Strings and integers are fastest; a key that is used often can be
// made once with [MustKey].
//
// # Clients
//
// A [Client] is the identity of a worker: errors and snapshots say which worker
// it is. Closing a client takes away all that it holds and waits for. It does not
// stop its goroutines: close it when its worker is dead.
//
// # Worker pools
//
// A [Group] runs tasks, so many at a time, each under its key. A task whose key
// is busy waits in the key's queue and takes neither a goroutine nor a place among
// those that run, so that a busy key keeps no other from running. With any other
// pool wrap what it runs with [Worker].
//
// # Seeing locks
//
// [Coordinator.Snapshot] tells who holds a key and who waits for it, and
// [Coordinator.Stats] counts; package lockdebug shows both on a page. [Hooks] are
// called as requests come and go, and [Options] has warnings of slow ones. While
// an execution trace is taken (see [runtime/trace]) each wait in a goroutine is a
// region of type processlock.wait, and each run of fn under its keys one of type
// processlock.hold, with the keys in logs of that category. The block profile has
// waits with WithLock on the stack. Where nobody looks nothing is measured.
//
// # Testing
//
// Waits are durably blocking in the sense of [testing/synctest], so the package
// works inside bubbles, its package-level coordinator too: many bubbles one
// after the other, and code outside them. A key must not be contended across a
// bubble's edge, by code inside and outside or by two bubbles in parallel,
// since the runtime ends the process then. Likewise [Client.Close] and
// [Coordinator.Shutdown] belong on the side of those whose waits they end or
// whose holds they wait for, and a [Group] with its tasks on one side. Give each
// of several bubbles that run in parallel a coordinator of its own with
// [WithCoordinator].
//
// # What it is not
//
// It does not reach beyond the process. It is not a lease, not a semaphore with weights, and does not
// deduplicate work: every fn runs. One fixed resource needs no keyed lock but a
// [sync.Mutex]. Where two keys may share a lock, an array of mutexes indexed by
// a hash is cheaper.
//
// # Where it comes from
//
// It is the Go form of withProcessLock of the TypeScript toolkit dbx-tools, and
// keeps its words: a coordinator owns a queue for each key, and a client that
// waits receives its grant on a port, here a channel. Shared and exclusive
// modes, and queues that neither passes, are those of the [Web Locks API]. The
// deadlock search follows Coffman, Elphick and Shoshani, "System Deadlocks"
// (Computing Surveys 3, 1971), with edges that all must be satisfied.
//
// [the Go memory model]: https://go.dev/ref/mem
// [Web Locks API]: https://www.w3.org/TR/web-locks/
package processlock
