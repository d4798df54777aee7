package processlock

import (
	"log/slog"
	"slices"
	"time"
)

// Hooks are functions that a [Coordinator] calls as requests for keys come and
// go, for metrics, logs and tests. Each may be nil. A request for several keys
// ([All]) calls them for each key. Give them in [Options], or later with
// [Coordinator.AddHooks].
//
// They are called outside all locks, by the goroutine of the request, which
// waits for them: in WithLock the caller's; for a [Group] task whichever works
// on it, and its own from its start on. They may call this package, on any key;
// but a Waiting or Acquired that waits for the request's own key waits for
// itself, and that is no [ErrDeadlock]. A hook that panics does so with the key
// released, or the request out of the queue; others are called all the same. In
// a goroutine of a Group a panic ends the process, as fn's does.
//
// A request that finds its key free calls Acquired and Released; one that has to
// wait calls Waiting first. One that does not get its key calls Failed instead
// of Acquired; so, with [ErrLost], does [Client.Close] for each hold that it
// takes from a running fn, in its own goroutine and instead of Released: it may
// overtake an Acquired that is about to be called. Calls whose context is done,
// or whose key has no identity, before they ask for the key call none; nor do
// those that [Reentrant] runs under a hold that is there.
type Hooks struct {
	Waiting  func(Event) // the request is in the key's queue
	Acquired func(Event) // fn is about to run, or with All the next key to be asked for
	Released func(Event) // after the key was handed on, so the next Acquired may come first

	// Failed is told the *AcquireError that the call returns (or would, if user
	// code did not panic or exit while it waits), or ErrLost itself.
	Failed func(Event)
}

// Event is what a hook is told.
type Event struct {
	Key        Key
	Client     string // name of the request's client, if it has one
	Func, File string // where fn begins; a method value has a name only
	Line       int
	Mode       Mode

	// Waited is how long the request waited for the key, if it did: of Acquired,
	// Released and Failed. It is 0 only if it did not: a wait of no time that the
	// clock can tell is 1 ns. Held is how long it had it: of Released, and of
	// Failed with ErrLost. Neither has in it what hooks take after its end. The
	// wait of a [Group]'s task for a slot is part of Held, though Acquired comes
	// after it.
	Waited, Held time.Duration

	// Err is of Failed only.
	Err error
}

// observer is who looks at a coordinator's requests. It is not changed: AddHooks
// puts another in its place.
type observer struct {
	hooks              []*Hooks
	slowWait, slowHold time.Duration
	logger             *slog.Logger // nil: slog.Default()
}

// newObserver returns what opts ask for, or nil if nobody looks.
func newObserver(opts Options) *observer {
	o := &observer{slowWait: opts.SlowWait, slowHold: opts.SlowHold, logger: opts.Logger}
	if h := opts.Hooks; h.any() {
		o.hooks = []*Hooks{&h}
	}
	return o.orNil()
}

func (h *Hooks) any() bool {
	return h.Waiting != nil || h.Acquired != nil || h.Released != nil || h.Failed != nil
}

// orNil returns nil if o has nothing to do.
func (o *observer) orNil() *observer {
	if len(o.hooks) == 0 && o.slowWait == 0 && o.slowHold == 0 {
		return nil
	}
	return o
}

// AddHooks makes c call h beside the hooks that it has, after them, until remove
// is called, which may be done at any time and more than once. Requests keep the
// hooks with which they began, to their end: h is not told of those that are
// under way when it comes, and is of those that are when it goes. AddHooks is for
// what comes to a Coordinator from outside, such as a collector of metrics, and
// works on one that is in use. It panics if c is nil or a copy of a used
// Coordinator.
func (c *Coordinator) AddHooks(h Hooks) (remove func()) {
	c.check()
	if !h.any() {
		return func() {}
	}
	c.changeHooks(func(hooks []*Hooks) []*Hooks { return append(slices.Clone(hooks), &h) })
	return func() {
		c.changeHooks(func(hooks []*Hooks) []*Hooks {
			return slices.DeleteFunc(slices.Clone(hooks), func(other *Hooks) bool { return other == &h })
		})
	}
}

func (c *Coordinator) changeHooks(change func([]*Hooks) []*Hooks) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := observer{}
	if old := c.observer.Load(); old != nil {
		o = *old
	}
	o.hooks = change(o.hooks)
	c.observer.Store(o.orNil())
}

// The hooks by kind.
func waitingHook(h *Hooks) func(Event)  { return h.Waiting }
func acquiredHook(h *Hooks) func(Event) { return h.Acquired }
func releasedHook(h *Hooks) func(Event) { return h.Released }
func failedHook(h *Hooks) func(Event)   { return h.Failed }

// tell calls the hooks of a kind, each whatever those before it do: they need
// not know of each other.
func tell(hooks []*Hooks, kind func(*Hooks) func(Event), e Event) {
	if len(hooks) == 0 {
		return
	}
	if len(hooks) > 1 {
		defer tell(hooks[1:], kind, e)
	}
	if h := kind(hooks[0]); h != nil {
		h(e)
	}
}
