package processlock

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Coordinator owns a table of keys, each with its holders and its queue. Locks
// of different coordinators have nothing to do with each other, but for the
// deadlock search, which sees all of them.
//
// The zero Coordinator is ready to use and equal to New(Options{}). A
// Coordinator must not be copied after first use. It has no goroutine and no
// timer of its own, so it can be dropped without closing it.
type Coordinator struct {
	options Options

	// self is set by the first request, after which options don't change. In a
	// copy it points elsewhere.
	self atomic.Pointer[Coordinator]

	// observer is nil where nobody looks, so that nothing is measured.
	observer atomic.Pointer[observer]

	mu sync.Mutex // serializes start, Configure, AddHooks and the sweep of Shutdown

	drain  drain
	shards [shardCount]shard
}

// Options are the settings of a [Coordinator]. The zero Options are the
// defaults.
type Options struct {
	// MaxWaiters bounds the queue of each key: a request that would be one too
	// many gets [ErrQueueFull]. 0 means no bound; less panics.
	MaxWaiters int

	// TrackHolds makes a snapshot know since when each key is held, also where
	// the key was free when it was asked for. It costs a reading of the clock
	// for each lock.
	TrackHolds bool

	// Hooks are called as requests come and go. They cost each of them a
	// reading of the clock or two, and what they do.
	Hooks Hooks

	// SlowWait and SlowHold, if not 0, make the coordinator log a warning for
	// each wait and each hold that takes that long; less than 0 panics. There is
	// no timer: a wait is judged when it ends, a hold when it ends and when
	// others come to wait for its key or give up waiting, once. So a hold that
	// lasts for ever is reported only if somebody is kept from the key.
	//
	// A warning says which key, whose wait or hold (by: client, func, source),
	// how long (waited, held), and how many were in the queue; that of a wait
	// also who held the key (holder) when it began, or when it was given up for
	// the reason that error tells, and, if it was another's hold that kept it
	// waiting the longest, whose and how long (longest: client, func, source,
	// waited). Holds shorter than a tenth of SlowWait don't count for that, and
	// of shared holders only the last to leave.
	SlowWait, SlowHold time.Duration

	// Logger gets the warnings; nil means slog.Default(). It is called as hooks
	// are: outside locks, by the request's goroutine.
	Logger *slog.Logger
}

func (o Options) check() {
	if o.MaxWaiters < 0 {
		misuse("MaxWaiters is " + strconv.Itoa(o.MaxWaiters) + "; want 0 or more")
	}
	if o.SlowWait < 0 || o.SlowHold < 0 {
		misuse("SlowWait is " + o.SlowWait.String() + " and SlowHold " + o.SlowHold.String() + "; want 0 or more")
	}
}

// New returns a Coordinator of its own. It panics if an option is out of its
// range.
func New(opts Options) *Coordinator {
	opts.check()
	c := &Coordinator{options: opts}
	c.observer.Store(newObserver(opts))
	return c
}

var defaultCoordinator = New(Options{})

// Default returns the coordinator that package-level functions use where
// [WithCoordinator] has not put another into the context.
func Default() *Coordinator { return defaultCoordinator }

// Configure sets the options of [Default]. Call it from main or a test's
// TestMain: it panics once Default has served a request or a [Group] was made for
// it, and if an option is out of its range. Hooks that AddHooks has added go.
func Configure(opts Options) {
	opts.check()
	c := Default()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.self.Load() != nil {
		misuse("Configure after Default() has served a request; call it first in main")
	}
	c.options = opts
	c.observer.Store(newObserver(opts))
}

// WithCoordinator returns a context with which the package-level functions use
// c instead of [Default]: it isolates all locking below it, in a test or in a
// host of several tenants. It panics if ctx or c is nil.
func WithCoordinator(ctx context.Context, c *Coordinator) context.Context {
	check(ctx, false)
	c.check()
	h, s := lineageOf(ctx)
	return s.with(scope{Context: ctx, coordinator: c, hold: h})
}

// check panics on a coordinator that can't be used.
func (c *Coordinator) check() {
	if c == nil {
		misuse("nil *Coordinator")
	}
	if self := c.self.Load(); self != nil && self != c {
		misuse("copy of a Coordinator that was used; pass a pointer")
	}
}

// start makes c ready for its first request.
func (c *Coordinator) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.self.Load() != nil {
		return
	}
	for i := range c.shards {
		c.shards[i].coordinator = c
		c.shards[i].inline.shard = &c.shards[i]
	}
	c.self.Store(c)
}
