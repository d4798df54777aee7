package processlock_test

import (
	"context"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// gtTask is a task of a Group whose fn waits at a gate.
type gtTask struct {
	gate chan struct{}
	once sync.Once
	last func(ctx context.Context) error // the rest of fn, behind the gate

	entered, over atomic.Bool
	ctx           context.Context // fn's; set when entered is
}

func gtNew(t testing.TB, last func(ctx context.Context) error) *gtTask {
	x := &gtTask{gate: make(chan struct{}), last: last}
	t.Cleanup(x.let) // a test that fails half-way must not end in a stuck bubble
	return x
}

func (x *gtTask) fn(ctx context.Context) error {
	x.ctx = ctx
	x.entered.Store(true)
	defer x.over.Store(true)
	<-x.gate
	return x.last(ctx)
}

// let lets fn go on.
func (x *gtTask) let() { x.once.Do(func() { close(x.gate) }) }

// open is let, in a bubble, until all that follows has settled.
func (x *gtTask) open() {
	x.let()
	synctest.Wait()
}

// state is "waits", also if fn will never run, "runs" or "over".
func (x *gtTask) state() string {
	switch {
	case x.over.Load():
		return "over"
	case x.entered.Load():
		return "runs"
	default:
		return "waits"
	}
}

func gtStates(tasks ...*gtTask) []string {
	states := make([]string, len(tasks))
	for i, x := range tasks {
		states[i] = x.state()
	}
	return states
}

// gtScene is a bubble with a coordinator and a group of its own.
type gtScene struct {
	*testing.T
	c      *processlock.Coordinator
	root   context.Context // with the coordinator
	cancel context.CancelCauseFunc
	g      *processlock.Group
	ctx    context.Context // the group's
}

// gtBubble runs fn in a bubble with a group g of the given limit. In the end
// nothing must be left.
func gtBubble(t *testing.T, limit int, fn func(s *gtScene)) {
	t.Helper()
	gtBubbleWith(t, processlock.Options{}, limit, fn)
}

func gtBubbleWith(t *testing.T, opts processlock.Options, limit int, fn func(s *gtScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &gtScene{T: t, c: processlock.New(opts)}
		s.root, s.cancel = context.WithCancelCause(processlock.WithCoordinator(t.Context(), s.c))
		s.g, s.ctx = processlock.NewGroup(s.root, "g")
		s.g.SetLimit(limit)
		fn(s)
		_ = s.g.Wait()
		synctest.Wait()
		ctRequireIdle(t, s.c)
	})
}

// free adds a task without a key, and returns once everybody is at rest.
func (s *gtScene) free() *gtTask { return s.freeLast(ltNop) }

func (s *gtScene) freeLast(last func(context.Context) error) *gtTask {
	x := gtNew(s, last)
	s.g.Go(x.fn)
	synctest.Wait()
	return x
}

// lock adds a task with a key, and returns once everybody is at rest.
func (s *gtScene) lock(key any, opts ...processlock.Option) *gtTask {
	return s.lockLast(key, ltNop, opts...)
}

func (s *gtScene) lockLast(key any, last func(context.Context) error, opts ...processlock.Option) *gtTask {
	x := gtNew(s, last)
	s.g.GoLocked(key, x.fn, opts...)
	synctest.Wait()
	return x
}

// call is a call of WithLock by nobody's task.
func (s *gtScene) call(key any, opts ...processlock.Option) *ltCall {
	return ltGo(s.Context(), s.c, key, opts...)
}

// states fails the test unless the tasks are in the given states.
func (s *gtScene) states(want []string, tasks ...*gtTask) {
	s.Helper()
	require.Equal(s, want, gtStates(tasks...))
}

// stats are the counters without WaitDuration.
func (s *gtScene) stats() processlock.Stats {
	st := s.c.Stats()
	st.WaitDuration = 0
	return st
}

// gtWait is Wait on a goroutine of its own.
type gtWait struct {
	over chan struct{}
	err  error
}

func gtWaits(g *processlock.Group) *gtWait {
	w := &gtWait{over: make(chan struct{})}
	go func() {
		defer close(w.over)
		w.err = g.Wait()
	}()
	return w
}

func (w *gtWait) isOver() bool { return ctClosed(w.over) }

var gtCreated = regexp.MustCompile(`(?m)^goroutine \d+ \[.*synctest bubble.*\]:\n(?:.+\n)*?created by github\.com/dbx-tools/processlock\.\(\*(?:Group|task|slot)\)`)

// gtGoroutines counts the goroutines that groups have started in a bubble. Those
// of an earlier test's group outside may still be about to exit.
func gtGoroutines() int {
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); ; n = runtime.Stack(buf, true) {
		if n < len(buf) {
			return len(gtCreated.FindAll(buf[:n], -1))
		}
		buf = make([]byte, 2*len(buf))
	}
}

// gtLocks are the rows of a snapshot as texts: for each key, holders with "*"
// if they run, then waiters.
func gtLocks(c *processlock.Coordinator) map[string][2][]string {
	rows := make(map[string][2][]string)
	for _, l := range c.Snapshot().Locks {
		var r [2][]string
		for _, h := range l.Holders {
			name := h.Client
			if h.Running {
				name += "*"
			}
			r[0] = append(r[0], name)
		}
		for _, w := range l.Waiters {
			r[1] = append(r[1], w.Client)
		}
		rows[l.Key.String()] = r
	}
	return rows
}
