package processlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Group runs tasks, each under a key if it needs one and only so many at a time,
// and waits for all of them. It is golang.org/x/sync/errgroup for keyed work: a task whose key is
// busy waits in the key's own queue, with neither a goroutine nor a place among
// those that run, so that a busy key keeps nobody else from running.
//
// [NewGroup] makes one. Its methods may be called at any time from any
// goroutine, tasks included, but for what they say themselves.
//
// A task's fn gets the group's context with a [Client] of its own, named after
// the group: the first task of NewGroup(ctx, "mail") is mail-1. When fn ends the
// client is closed, which ends that context for whatever fn has left behind. It
// runs under the [runtime/pprof] labels of NewGroup's context. Lock with that
// context in a task, not with another: while a call made with it waits, the task
// does not count as running, so that those it waits for can. However the wait
// ends, the call goes on when the task has its place among those that run again:
// at the limit a call whose context is done leaves its queue at once, but may
// return later. A call made with another context keeps the task's slot while it
// waits, and if all of a limited group's tasks do that, they may wait for keys of
// tasks that wait for them.
//
// A task ends when its fn returns or calls [runtime.Goexit], which counts as
// returning nil. A panic is not caught: as in errgroup it ends the process.
type Group struct {
	name    string
	parent  context.Context
	ctx     context.Context // parent's, ends with the first error
	cancel  context.CancelCauseFunc
	unwatch func() bool
	base    call   // what all requests of tasks have in common
	scope   *scope // parent's innermost, if it has one

	// mu comes after every shard's mutex. No user code runs under it.
	mu        sync.Mutex
	limit     int // slots; less than 1: no limit. Not changed once begun
	begun     bool
	waited    bool // Wait has returned, or is about to
	canceled  bool // no task starts any more
	moving    bool // a goroutine runs move
	number    int  // of the last task
	active    int  // slots in use
	left      int  // tasks that have not ended
	skipped   int
	dropped   int
	err       error // the first
	done      chan struct{}
	returning []*slot // those whose request's wait has ended, in order

	// A task that has not started is in one of these, or somebody's.
	waiting taskList // for a key, each in its queue
	ready   taskList // for a slot, in the order of their grants
	news    taskList // for move
}

// NewGroup returns a Group and the context that its tasks' contexts descend
// from, which ends when a task returns an error, when ctx does, and when
// [Group.Wait] returns.
//
// Tasks lock on the coordinator that [WithCoordinator] put into ctx, else on
// [Default]. They have ctx's lineage: where NewGroup is called with the context
// of an fn that holds a key, a task that asks for that key is [ErrDeadlock],
// since fn is taken to wait for it. For a group that outlives fn use
// [Detach](ctx).
//
// Call Wait, as [context.WithCancel]'s cancel: until then the group stays
// registered on ctx. NewGroup panics if ctx is nil.
func NewGroup(ctx context.Context, name string) (*Group, context.Context) {
	check(ctx, false)
	g := &Group{name: name, parent: ctx}
	g.base.place(ctx, nil)
	_, g.scope = lineageOf(ctx)
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.base.ctx = g.ctx
	g.unwatch = context.AfterFunc(g.ctx, g.abandon)
	return g, g.ctx
}

// SetLimit sets how many tasks run at once; n < 1, and not calling it, mean
// any number. (In errgroup a limit of 0 lets none run.) A task that waits,
// for its keys or in a call made with its context, does not count. SetLimit
// panics after the first Go or GoLocked.
func (g *Group) SetLimit(n int) {
	g.check()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun {
		misuse("SetLimit after the group's first task; call it before Go and GoLocked")
	}
	g.limit = n
}

// Go adds a task without a key. It never blocks: at the limit the task waits
// for a slot, behind those that wait for one already. Once the group's context
// is done the task is dropped and fn never runs.
//
// Go panics if fn is nil, and after Wait has returned.
func (g *Group) Go(fn func(ctx context.Context) error) {
	g.check()
	if fn == nil {
		misuse("nil fn")
	}
	ended := g.ended() // user code, so before the task is added
	t := g.add(fn)
	if ended != nil {
		t.drop()
		return
	}
	t.getReady()
}

// GoLocked adds a task that runs under a key, as fn does in [WithLock]; several
// keys with [All]. It never blocks. The task queues for its key at once, in
// order with other tasks and with calls of WithLock; when the key is granted it
// holds it and waits for a slot, if need be, first granted first.
//
// The options are WithLock's. A task that [IfAvailable], [MaxWait] (which bounds
// the wait for the keys, not for the slot) or Options.MaxWaiters keeps from
// starting is no error of the group; [Group.Skipped] counts it. Any other reason
// why a task does not get its key is: a [*DeadlockError] or [ErrClosed], or
// [ErrKey] for a key without a stable identity, in an [*AcquireError]. So is
// [ErrLost], joined with the error of the fn that ran.
//
// With [Reentrant], Wait for the group within the fn that holds. A task that has
// taken a hold over, and finds it gone when it has all its keys and a slot, does
// not start: it gives both back and asks again, as if it had just been added,
// for its keys and then for a slot, behind all that have come meanwhile.
// IfAvailable and the deadlock search decide anew, and MaxWait has what it had
// left.
//
// Once the group's context is done the task is dropped and fn never runs.
// GoLocked panics if fn or an Option is nil, and after Wait has returned.
func (g *Group) GoLocked(key any, fn func(ctx context.Context) error, opts ...Option) {
	g.check()
	if fn == nil {
		misuse("nil fn")
	}
	var s settings
	s.read(opts)
	all, several := key.(Keys)
	var k Key
	err := all.err
	if !several {
		k, err = keyOf(key)
	}
	ended := g.ended()
	t := g.add(fn) // after all user code that may panic
	switch {
	case ended != nil:
		t.drop()
	case err != nil:
		t.fail(&AcquireError{Key{}, err})
	case several && len(all.keys) == 0:
		t.getReady()
	case several:
		t.askAll(all.keys, s)
	case s.reentrant && g.base.hold != nil: // else there is nothing to take over
		t.askAll([]Key{k}, s)
	default:
		t.ask(k, s)
	}
}

// Skipped returns how many tasks have been dropped so far because of
// [IfAvailable], [MaxWait] or Options.MaxWaiters.
func (g *Group) Skipped() int {
	g.check()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.skipped
}

// Wait waits until every task has ended and returns the first error of one, as
// it was returned. If there was none but tasks were dropped, since the context
// given to NewGroup was done, the error says how many and satisfies
// [errors.Is] for the context's Err and its [context.Cause].
//
// With the first error the group's context ends, with that error as its cause,
// and before [Hooks] are told that the task has given its keys up. Tasks that
// have not started are then dropped at once and never run; running ones see their
// context end, and Wait waits for them. When Wait returns the group can't be used
// again. In a task of another group, NewGroup's context being the task's, the
// task does not count as running while it waits here.
func (g *Group) Wait() error {
	g.check()
	if done := g.atEnd(); done != nil {
		g.base.slot.park()
		defer g.base.slot.unpark()
		<-done
	}
	g.unwatch()
	err := g.result(g.ended())
	g.cancel(err)
	return err
}

// result returns the group's error, once all tasks have ended.
func (g *Group) result(ended error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil && g.dropped > 0 {
		g.err = &droppedError{g.name, g.dropped, ended}
	}
	return g.err
}

// atEnd returns what to wait for, or nil if all tasks have ended: then none is
// added any more.
func (g *Group) atEnd() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left == 0 {
		g.waited = true
		return nil
	}
	if g.done == nil {
		g.done = make(chan struct{})
	}
	return g.done
}

// add returns a new task, which is the caller's.
func (g *Group) add(fn func(context.Context) error) *task {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waited {
		misuse("Go after Wait has returned; make a new Group")
	}
	g.begun = true
	g.left++
	g.number++
	return &task{group: g, fn: fn, number: g.number, owned: true}
}

// ended returns why no task is to start any more, or nil. The group's own
// context follows a parent of a type of its own with a delay.
func (g *Group) ended() error {
	if err := ended(g.ctx); err != nil {
		return err
	}
	return ended(g.parent)
}

// over reports whether no task is to start any more.
func (g *Group) over() bool {
	g.mu.Lock()
	canceled := g.canceled
	g.mu.Unlock()
	return canceled || g.ended() != nil
}

// fail makes err the group's error if it is the first.
func (g *Group) fail(err error) {
	g.abandon()
	g.mu.Lock()
	first := g.err == nil
	if first {
		g.err = err
	}
	g.mu.Unlock()
	if first {
		g.cancel(err)
	}
}

// abandon takes every task that has not started out of its list, to be dropped.
func (g *Group) abandon() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.canceled = true
	for _, l := range []*taskList{&g.ready, &g.waiting} {
		for t := l.first; t != nil; t = l.first {
			l.remove(t)
			t.waits, t.owned, t.apart = false, true, true
			g.news.push(t)
		}
	}
	g.summon()
}

// closed reports whether the group has ended since the client was closed under
// which its tasks ask for their keys.
func (g *Group) closed() bool {
	return g.base.client.closed() && errors.Is(g.ended(), ErrClosed)
}

// closedReason is the reason of a task that Client.Close or Shutdown ended.
func (g *Group) closedReason() error {
	a := attempt{call: g.base}
	return a.closedReason()
}

func (g *Group) check() {
	if g == nil {
		misuse("nil *Group")
	}
	if g.ctx == nil {
		misuse("Group that NewGroup has not made")
	}
}

// droppedError is Wait's where tasks were dropped for no error of theirs.
type droppedError struct {
	group string
	tasks int
	err   error
}

func (e *droppedError) Error() string {
	return fmt.Sprintf("%sgroup %s: %s (tasks dropped before they started: %d)", prefix, quoteName(e.group), bare(e.err), e.tasks)
}

func (e *droppedError) Unwrap() error { return e.err }
