package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dbx-tools/processlock"
)

var errGt, errGtCause = errors.New("gt: task failed"), errors.New("gt: cause")

// gtCrowd puts a task into each state that one can be in: running, with a key and
// without; waiting for a slot, with and without; waiting for a key, for the first
// of several, and for the second.
type gtCrowd struct {
	busy          *ltCall
	running       []*gtTask
	waiting       []*gtTask
	slots, queued int64 // keys of those that wait for a slot; requests in a queue
}

func (s *gtScene) crowd() *gtCrowd {
	c := &gtCrowd{busy: s.call("busy")}
	c.running = append(c.running, s.lock("r"), s.free())
	c.waiting = append(c.waiting,
		s.lock("slot"), s.free(), s.lock(processlock.All("s1", "s2")), s.lock(processlock.All()), s.lock("s3", processlock.Reentrant),
		s.lock("busy"), s.lock("busy", processlock.Shared), s.lock("r"), s.lock("busy", processlock.MaxWait(time.Hour)),
		s.lock(processlock.All("busy", "xxxx")), s.lock(processlock.All("aaaa", "busy", "xxxx")))
	s.states([]string{"runs", "runs"}, c.running...)
	for _, x := range c.waiting {
		assert.Equal(s, "waits", x.state())
	}
	c.slots, c.queued = 4, 6
	st := s.c.Stats()
	assert.EqualValues(s, 2+c.slots+1, st.Held, "busy's, the running task's, theirs, and aaaa")
	assert.EqualValues(s, c.queued, st.Waiting)
	return c
}

// dropped fails the test unless the tasks that had not started are gone, and the
// others are not disturbed.
func (s *gtScene) dropped(c *gtCrowd) {
	s.Helper()
	synctest.Wait()
	for i, x := range c.waiting {
		assert.Equal(s, "waits", x.state(), "task %d of those that wait", i)
	}
	assert.Equal(s, map[string][2][]string{`["busy"]`: {{"*"}, nil}, `["r"]`: {{"g-1*"}, nil}}, gtLocks(s.c), "at once")
	s.states([]string{"runs", "runs"}, c.running...)
	assert.Error(s, c.running[0].ctx.Err())
	assert.Error(s, c.running[1].ctx.Err())
}

// The first error is Wait's, as it is. It ends the group's context with it as the
// cause; running tasks see that, and the rest is dropped at once, wherever it is.
//
// Rules 9, 13 and 41.
func TestGroupFirstErrorDropsWhatHasNotStarted(t *testing.T) {
	gtBubble(t, 3, func(s *gtScene) {
		failing := s.lockLast("f", func(context.Context) error { return errGt })
		// The others are numbered from 2.
		busy := s.call("busy")
		r1, r2 := s.lock("r"), s.free()
		waiting := []*gtTask{s.lock("slot"), s.free(), s.lock(processlock.All("s1", "s2")), s.lock("busy"), s.lock("r"),
			s.lock(processlock.All("a", "busy")), s.lock("f"), s.lock("f", processlock.MaxWait(time.Hour))}
		w := gtWaits(s.g)
		failing.open()
		assert.Equal(s, map[string][2][]string{`["busy"]`: {{"*"}, nil}, `["r"]`: {{"g-2*"}, nil}}, gtLocks(s.c), "at once")
		for i, x := range waiting {
			assert.Equal(s, "waits", x.state(), "task %d of those that wait", i)
		}
		for _, x := range []*gtTask{r1, r2} {
			assert.Equal(s, "runs", x.state())
			assert.Equal(s, context.Canceled, x.ctx.Err())
			assert.Equal(s, errGt, context.Cause(x.ctx))
		}
		assert.Equal(s, errGt, context.Cause(s.ctx))
		assert.Equal(s, processlock.ErrClosed, context.Cause(failing.ctx), "its client was closed first")
		assert.False(s, w.isOver(), "two tasks run")
		r1.open()
		assert.False(s, w.isOver())
		r2.open()
		require.True(s, w.isOver())
		assert.True(s, w.err == errGt)
		assert.True(s, s.g.Wait() == errGt, "again")
		assert.Zero(s, s.g.Skipped())
		busy.open()
		assert.Equal(s, processlock.Stats{Acquired: 1 + 2 + 1 + 2 + 1, Waited: 5, Canceled: 5}, s.stats())
	})
}

// Errors after the first are not Wait's.
func TestGroupReturnsTheFirstErrorOnly(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		var tasks []*gtTask
		for i := range 3 {
			tasks = append(tasks, s.lockLast(i, func(context.Context) error { return fmt.Errorf("task %d", i) }))
		}
		tasks[1].open()
		tasks[0].open()
		tasks[2].open()
		assert.EqualError(s, s.g.Wait(), "task 1")
		assert.EqualError(s, context.Cause(s.ctx), "task 1")
	})
}

// errgroup's Wait, of tasks that do the same, returns the same.
func TestGroupWaitIsErrgroups(t *testing.T) {
	for name, fns := range map[string][]func(context.Context) error{
		"none":   {},
		"nil":    {ltNop, ltNop},
		"errors": {ltNop, func(context.Context) error { return errGt }, ltNop, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		"cause":  {func(context.Context) error { return errGt }, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				eg, egCtx := errgroup.WithContext(t.Context())
				g, ctx := processlock.NewGroup(t.Context(), "g")
				for _, fn := range fns {
					eg.Go(func() error { return fn(egCtx) })
					g.Go(fn)
				}
				assert.Equal(t, eg.Wait(), g.Wait())
				assert.Equal(t, egCtx.Err(), ctx.Err(), "after Wait the context is done")
				assert.Equal(t, context.Cause(egCtx), context.Cause(ctx))
			})
		})
	}
}

// When the context given to NewGroup ends, what has not started is dropped at
// once and never runs. Wait's error, if no task has one, satisfies the context's
// Err and Cause and says how many.
//
// Rules 8, 9 and 41.
func TestGroupParentsEndDropsWhatHasNotStarted(t *testing.T) {
	gtBubble(t, 2, func(s *gtScene) {
		c := s.crowd()
		s.cancel(errGtCause)
		s.dropped(c)
		assert.Equal(s, errGtCause, context.Cause(c.running[0].ctx))
		late := []*gtTask{s.lock("late"), s.free(), s.lock(processlock.All("l1", "l2")), s.lock("busy"), s.lock("l", processlock.IfAvailable)}
		w := gtWaits(s.g)
		synctest.Wait()
		assert.False(s, w.isOver())
		c.running[0].open()
		c.running[1].open()
		c.busy.open()
		s.states([]string{"waits", "waits", "waits", "waits", "waits"}, late...)
		require.True(s, w.isOver())
		assert.ErrorIs(s, w.err, context.Canceled)
		assert.ErrorIs(s, w.err, errGtCause)
		assert.EqualError(s, w.err, "processlock: group g: context canceled: gt: cause (tasks dropped before they started: 16)")
		assert.NotErrorAs(s, w.err, new(*processlock.AcquireError))
		assert.Zero(s, s.g.Skipped())
		st := s.stats()
		assert.Equal(s, processlock.Stats{Acquired: 2 + 4 + 1, Waited: 6, Canceled: 6}, st)
	})
}

// If every task has started by then, the group has no error of its own.
func TestGroupParentsEndIsNoErrorIfAllHaveStarted(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		x := s.lock("k")
		s.cancel(nil)
		x.open()
		assert.NoError(s, s.g.Wait())
	})
	gtBubble(t, 0, func(s *gtScene) {
		x := s.lockLast("k", func(ctx context.Context) error { return ctx.Err() })
		s.cancel(errGtCause)
		x.open()
		assert.Equal(s, context.Canceled, s.g.Wait(), "as errgroup's")
	})
}

// A deadline of the parent is a done context like any other.
func TestGroupParentsDeadline(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		ctx, cancel := context.WithTimeout(s.root, time.Second)
		defer cancel()
		g, _ := processlock.NewGroup(ctx, "late")
		busy := s.call("k")
		g.GoLocked("k", ctNever(s))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Zero(s, s.c.Stats().Waiting)
		err := g.Wait()
		assert.ErrorIs(s, err, context.DeadlineExceeded)
		assert.EqualError(s, err, "processlock: group late: context deadline exceeded (tasks dropped before they started: 1)")
		busy.open()
	})
}

// gtManual is a context of a type that the context package does not know.
type gtManual struct {
	context.Context
	mu   sync.Mutex
	done chan struct{}
	err  error
}

func (c *gtManual) Done() <-chan struct{} { return c.done }

func (c *gtManual) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *gtManual) end(err error) {
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	close(c.done)
}

// A parent of a type of its own ends the group too, and no task starts between
// its end and the moment when the group's own context has followed.
//
// Rules 8, 10 and 12.
func TestGroupParentOfATypeOfItsOwn(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		parent := &gtManual{Context: s.root, done: make(chan struct{})}
		g, ctx := processlock.NewGroup(parent, "m")
		busy := s.call("k")
		running := gtNew(s, ltNop)
		g.GoLocked("r", running.fn)
		g.GoLocked("k", ctNever(s))
		synctest.Wait()
		parent.end(errGt)
		g.Go(ctNever(s))
		g.GoLocked("free", ctNever(s))
		busy.open()
		assert.Error(s, ctx.Err())
		assert.Error(s, running.ctx.Err())
		running.open()
		var errs [3]error
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = g.Wait() })
		}
		all.Wait()
		for _, err := range errs {
			assert.ErrorIs(s, err, errGt)
			assert.True(s, err == errs[0], "one error for all: %v", err)
			assert.EqualError(s, err, "processlock: group m: gt: task failed (tasks dropped before they started: 3)")
		}
	})
	for _, ctx := range []context.Context{context.Background(), context.TODO(), context.WithoutCancel(t.Context()), struct{ context.Context }{context.Background()}} {
		g, _ := processlock.NewGroup(ctx, "never ends")
		ran := false
		g.GoLocked("gt never ends", func(context.Context) error { ran = true; return nil })
		require.NoError(t, g.Wait())
		require.True(t, ran)
	}
}

// gtPanicky panics in Value, once it is armed.
type gtPanicky struct {
	context.Context
	armed atomic.Bool
}

func (c *gtPanicky) Value(key any) any {
	if c.armed.Load() {
		panic(errGt)
	}
	return c.Context.Value(key)
}

// A context that panics where its lineage is read panics on from GoLocked. The
// task is out of the queue and off the group's accounts.
//
// Rules 15 and 36.
func TestGroupContextThatPanics(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		busy := s.call("k")
		assert.NoError(s, s.c.WithLock(s.root, "outer", func(ctx context.Context) error {
			parent := &gtPanicky{Context: ctx}
			return s.c.WithLock(parent, "inner", func(ctx context.Context) error {
				g, _ := processlock.NewGroup(ctx, "p")
				parent.armed.Store(true)
				assert.PanicsWithValue(s, errGt, func() { g.GoLocked("k", ctNever(s)) })
				assert.PanicsWithValue(s, errGt, func() { g.GoLocked(processlock.All("j", "k"), ctNever(s)) })
				parent.armed.Store(false)
				assert.EqualValues(s, 0, s.c.Stats().Waiting)
				assert.NoError(s, g.Wait())
				return nil
			})
		}))
		busy.open()
		assert.Equal(s, processlock.Stats{Acquired: 4, Canceled: 2}, s.stats())
	})
}

// gtPanickyErr panics in Err when it is asked for the n'th time.
type gtPanickyErr struct {
	context.Context
	n atomic.Int64
}

func (c *gtPanickyErr) Err() error {
	if c.n.Add(-1) == 0 {
		panic(errGt)
	}
	return c.Context.Err()
}

// Wherever GoLocked asks its parent's Err, a panic leaves nothing of the task.
//
// Rules 34 and 36.
func TestGroupContextThatPanicsLater(t *testing.T) {
	for n, last := int64(1), false; !last; n++ {
		require.Less(t, n, int64(100))
		gtBubble(t, 1, func(s *gtScene) {
			parent := &gtPanickyErr{Context: s.root}
			g, ctx := processlock.NewGroup(parent, "p")
			running := gtNew(s, ltNop)
			g.SetLimit(1)
			g.Go(running.fn) // so that no task asks
			synctest.Wait()
			parent.n.Store(n)
			last = gtPanicsWith(func() { g.GoLocked(processlock.All("i", "j", "k"), ltNop) }) == nil
			parent.n.Store(0)
			assert.Equal(s, last, len(s.c.Snapshot().Locks) > 0)
			running.open()
			assert.NoError(s, g.Wait())
			assert.Error(s, ctx.Err())
		})
	}
}

// gtPanicsWith returns what fn panics with.
func gtPanicsWith(fn func()) (value any) {
	defer func() { value = recover() }()
	fn()
	return nil
}

// A task drops out of the middle of a queue without changing the order of the
// rest, and whoever has become grantable is granted at once.
//
// Rules 4 and 5.
func TestGroupDropLeavesTheOrderOfTheOthers(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		reader := s.call("k", processlock.Shared)
		x := s.lock("k")
		r2 := s.call("k", processlock.Shared)
		y := s.lock("k")
		w := s.call("k")
		assert.Equal(s, "waits", r2.state())
		s.cancel(nil)
		synctest.Wait()
		assert.Equal(s, "runs", r2.state(), "nobody exclusive is ahead of it any more")
		assert.Equal(s, "waits", w.state())
		reader.open()
		r2.open()
		assert.Equal(s, "runs", w.state())
		w.open()
		s.states([]string{"waits", "waits"}, x, y)
	})
}

// Cancel, releases and GoLocked at once, from many goroutines: no task is lost or
// runs after it was dropped, and each request is counted once.
//
// Rules 10, 38 and 41.
func TestGroupCancelStorm(t *testing.T) {
	for round := range 200 {
		var c processlock.Coordinator
		root, cancel := context.WithCancelCause(processlock.WithCoordinator(t.Context(), &c))
		g, _ := processlock.NewGroup(root, "g")
		g.SetLimit(round % 4)
		var ran atomic.Int64
		var all sync.WaitGroup
		for a := range 3 {
			all.Go(func() {
				for i := range 40 {
					g.GoLocked((a+i)%3, func(ctx context.Context) error {
						ran.Add(1)
						if round%2 == 0 && i == 20+a {
							return errGt
						}
						return nil
					})
				}
			})
		}
		all.Go(func() {
			ctYield(round % 20)
			if round%2 == 1 {
				cancel(errGtCause)
			}
		})
		all.Wait()
		err := g.Wait()
		cancel(nil)
		if round%2 == 0 {
			require.Equal(t, errGt, err)
		} else if err != nil {
			require.ErrorIs(t, err, errGtCause)
		}
		st := c.Stats()
		require.LessOrEqual(t, ran.Load(), st.Acquired)
		require.LessOrEqual(t, st.Acquired+st.Canceled, int64(120))
		require.Zero(t, st.Closed+st.Deadlocks+st.Unavailable+st.Lost)
		ctRequireIdle(t, &c)
	}
}
