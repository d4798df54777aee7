package processlock_test

import (
	"context"
	"os"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// ltBubble runs fn in a bubble with a coordinator of its own, which must be
// idle at the end.
func ltBubble(t *testing.T, fn func(t *testing.T, c *processlock.Coordinator)) {
	t.Helper()
	ltBubbleWith(t, processlock.Options{}, fn)
}

func ltBubbleWith(t *testing.T, opts processlock.Options, fn func(t *testing.T, c *processlock.Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := processlock.New(opts)
		fn(t, c)
		synctest.Wait()
		ltIdle(t, c)
	})
}

// ltIdle fails the test unless c holds and keeps nothing.
func ltIdle(t testing.TB, c *processlock.Coordinator) {
	t.Helper()
	assert.Empty(t, c.Snapshot().Locks, "keys left in the table")
	s := c.Stats()
	assert.Zero(t, s.Held, "Stats.Held")
	assert.Zero(t, s.Waiting, "Stats.Waiting")
}

// ltEnds is how many requests of c have ended, in whatever way.
func ltEnds(c *processlock.Coordinator) int64 {
	s := c.Stats()
	return s.Acquired + s.Canceled + s.Unavailable + s.Deadlocks + s.Closed
}

// ltCall is a call on a goroutine of its own. Its fn waits at a gate.
type ltCall struct {
	gate chan struct{}
	last func(ctx context.Context) error // the rest of fn, behind the gate

	entered atomic.Bool
	ctx     context.Context // fn's; set when entered is

	how   atomic.Value // see ended
	err   error        // set, like the rest, when how is
	value any          // of the panic
	stack string       // from where the panic is seen
}

// ltGo starts a call in a bubble and returns once it waits, runs or is over.
func ltGo(ctx context.Context, l processlock.Locker, key any, opts ...processlock.Option) *ltCall {
	return ltGoLast(ctx, l, key, ltNop, opts...)
}

// ltGoLast is ltGo with an fn that goes on with last.
func ltGoLast(ctx context.Context, l processlock.Locker, key any, last func(context.Context) error, opts ...processlock.Option) *ltCall {
	call := &ltCall{gate: make(chan struct{}), last: last}
	go call.run(func() error { return l.WithLock(ctx, key, call.fn, opts...) })
	synctest.Wait()
	return call
}

func (call *ltCall) fn(ctx context.Context) error {
	call.ctx = ctx
	call.entered.Store(true)
	<-call.gate
	return call.last(ctx)
}

func (call *ltCall) run(do func() error) {
	how := "exit"
	defer func() {
		if v := recover(); v != nil {
			how, call.value, call.stack = "panic", v, string(debug.Stack())
		}
		call.how.Store(how)
	}()
	call.err = do()
	how = "return"
}

// ended tells how the goroutine has ended: "return", "panic" or "exit".
func (call *ltCall) ended() string {
	how, _ := call.how.Load().(string)
	return how
}

// open lets fn return and waits until all that follows has settled.
func (call *ltCall) open() {
	close(call.gate)
	synctest.Wait()
}

// state is "waits", "runs" or "over".
func (call *ltCall) state() string {
	switch {
	case call.ended() != "":
		return "over"
	case call.entered.Load():
		return "runs"
	default:
		return "waits"
	}
}

// ltStates are the states of calls, in order.
func ltStates(calls ...*ltCall) []string {
	states := make([]string, len(calls))
	for i, call := range calls {
		states[i] = call.state()
	}
	return states
}

// ltRefused fails the test unless call ended with want and fn did not run.
func ltRefused(t testing.TB, call *ltCall, want error) {
	t.Helper()
	assert.Equal(t, "over", call.state())
	assert.False(t, call.entered.Load(), "fn ran")
	assert.ErrorIs(t, call.err, want)
	var refusal *processlock.AcquireError
	assert.ErrorAs(t, call.err, &refusal)
}

// ltServed fails the test unless call ran fn and returned nil.
func ltServed(t testing.TB, call *ltCall) {
	t.Helper()
	assert.Equal(t, "over", call.state())
	assert.True(t, call.entered.Load(), "fn did not run")
	assert.NoError(t, call.err)
}

func ltNop(context.Context) error { return nil }

// ltFree reports whether key can be had right now.
func ltFree(c *processlock.Coordinator, key any) bool {
	return c.WithLock(context.Background(), key, ltNop, processlock.IfAvailable) == nil
}

// ltStress is how long a storm lasts: PROCESSLOCK_STRESS, or part of a second.
func ltStress(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("PROCESSLOCK_STRESS")
	if text == "" {
		return 250 * time.Millisecond
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PROCESSLOCK_STRESS: %v", err)
	}
	return d
}

// ltInside counts who is inside one key's critical section.
type ltInside struct {
	exclusive, shared atomic.Int64
	broken            atomic.Bool
}

// enter notes a breach if the section is not to be shared with whoever is in
// it, and returns the function that leaves.
func (in *ltInside) enter(shared bool) (leave func()) {
	if shared {
		in.shared.Add(1)
		if in.exclusive.Load() != 0 {
			in.broken.Store(true)
		}
		return func() { in.shared.Add(-1) }
	}
	if in.exclusive.Add(1) != 1 || in.shared.Load() != 0 {
		in.broken.Store(true)
	}
	return func() { in.exclusive.Add(-1) }
}
