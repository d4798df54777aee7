package processlock

import (
	"context"
	"runtime/trace"
	"time"
)

// sight is what one request for one key shows to those who look: hooks, the log
// of what is slow, and an execution trace. A request that nobody looks at has
// none. It is its request's goroutine's, but for what Client.Close reads and a
// holder that hands on writes.
type sight struct {
	observer *observer // this, ctx and event don't change
	ctx      context.Context
	traced   bool
	event    Event // what there is to say from the start

	start   int64 // when it queued; 0: it has not. Set under the shard's mutex
	waiting bool  // it waits or has waited: one that would close a cycle queues, but does not
	waited  time.Duration
	since   int64 // when it was granted its key, or its wait was given up
	view    view
	longest *pastHold // who kept it waiting the longest; under the shard's mutex while it is in a queue
	lost    bool      // Client.Close has taken the key from fn, and told so
}

// view is what a key looks like under its shard's mutex to a request that comes
// to wait for it, leaves, or gives it up.
type view struct {
	holder step // the first
	queue  int
	slow   []slowHold // those that this request is to warn of
	warned bool       // of its own hold, by another
}

var nobody observer

// looked reports whether anybody looks at requests for keys of c.
func (c *Coordinator) looked() bool { return c.observer.Load() != nil || trace.IsEnabled() }

// sight returns that of a request for k, or nil if nobody looks.
func (q *call) sight(k Key) *sight {
	t := &sight{observer: q.coordinator.observer.Load(), ctx: q.ctx, traced: trace.IsEnabled()}
	if t.observer == nil {
		if !t.traced {
			return nil
		}
		t.observer = &nobody
	}
	t.event = Event{Key: k, Client: clientName(q.client, nil), Mode: q.mode}
	t.event.Func, t.event.File, t.event.Line = locate(q.fn)
	return t
}

// errUnwound is the reason that hooks are given of a request that has none to
// return.
var errUnwound error = &sentinel{text: "a hook or a context's method panicked or exited"}

// contendSeen is contend where somebody may look, who is told of a failure also
// where user code unwinds the stack. The error is for the call to return.
func (a *attempt) contendSeen(k *Key, g *grant) error {
	unwound := true
	defer func() {
		if unwound {
			a.sight.refused(&AcquireError{*k, errUnwound})
		}
	}()
	hash := k.hash()
	err := a.contend(a.coordinator.shardOf(hash), k, hash, g)
	unwound = false
	if err != nil {
		err := &AcquireError{*k, err}
		a.sight.refused(err)
		return err
	}
	return nil
}

// The regions' types, and the categories of their logs.
const (
	waitRegion = "processlock.wait"
	holdRegion = "processlock.hold"
)

// region begins a region of the execution trace, with the key in the log.
func (t *sight) region(name string) *trace.Region {
	if t == nil || !t.traced {
		return nil
	}
	r := trace.StartRegion(t.ctx, name)
	trace.Log(t.ctx, name, t.event.Key.String())
	return r
}

func endRegion(r *trace.Region) {
	if r != nil {
		r.End()
	}
}

// waits tells that the request is in the queue. Like what follows it may be
// called on nil, and may call user code.
func (t *sight) waits() {
	if t == nil {
		return
	}
	t.waiting = true
	v := t.view
	t.view.slow = nil
	defer t.warnHolds(v)
	tell(t.observer.hooks, waitingHook, t.event)
}

// granted tells that the request has its key, before fn runs.
func (t *sight) granted() {
	if t == nil {
		return
	}
	e := t.event
	if t.waiting {
		t.waited = waitFrom(t.start, t.since)
		e.Waited = t.waited
	}
	defer t.judge(e)
	tell(t.observer.hooks, acquiredHook, e)
}

// refused tells that the request doesn't get its key.
func (t *sight) refused(err *AcquireError) {
	if t == nil {
		return
	}
	e := t.event
	e.Err = err
	if t.waiting {
		e.Waited = waitFrom(t.start, t.since)
	}
	defer t.judge(e)
	tell(t.observer.hooks, failedHook, e)
}

// released tells that the key was given up, which was at end.
func (t *sight) released(end int64) {
	if t == nil || t.lost {
		return
	}
	e := t.event
	e.Waited, e.Held = t.waited, sinceThen(t.since, end)
	defer t.observer.warnHold(t.ctx, e, t.view)
	tell(t.observer.hooks, releasedHook, e)
}

// lostHold is a hold that Client.Close has taken from a running fn.
type lostHold struct {
	sight *sight
	waited,
	held time.Duration
	view view
}

// lose returns w's hold, which is lost at now. Called under the shard's mutex.
func (t *sight) lose(w *claim, now int64) lostHold {
	since := w.since.Load()
	l := lostHold{sight: t, held: sinceThen(since, now), view: viewOut(w)}
	if t.start != 0 {
		l.waited = waitFrom(t.start, since)
	}
	return l
}

// tell tells that the hold was lost. It is called in Close's goroutine, while
// the request's goes on.
func (l lostHold) tell() {
	e := l.sight.event
	e.Waited, e.Held, e.Err = l.waited, l.held, ErrLost
	defer l.sight.observer.warnHold(l.sight.ctx, e, l.view)
	tell(l.sight.observer.hooks, failedHook, e)
}

func sinceThen(from, to int64) time.Duration { return time.Duration(elapsed(from, to)) }

// waitFrom is how long a wait took. One that the clock is too coarse for, or that
// took no time in a testing/synctest bubble, was one all the same.
func waitFrom(from, to int64) time.Duration { return max(sinceThen(from, to), 1) }
