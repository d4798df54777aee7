package processlock_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// ctCall is a call of WithLock on a goroutine of its own, whose fn goes on
// until finish.
type ctCall struct {
	entered chan struct{} // closed when fn starts
	gate    chan struct{} // fn returns when it is closed
	open    sync.Once
	over    chan struct{} // closed when the call has ended

	fnCtx context.Context // what fn was given; read after entered
	fnErr error           // what fn returns; set before finish
	err   error           // what the call returned; read after over
}

func ctStart(t testing.TB, l processlock.Locker, ctx context.Context, key any, opts ...processlock.Option) *ctCall {
	c := &ctCall{
		entered: make(chan struct{}),
		gate:    make(chan struct{}),
		over:    make(chan struct{}),
	}
	t.Cleanup(c.letGo) // a test that fails half-way must not end in a stuck bubble
	go func() {
		defer close(c.over)
		c.err = l.WithLock(ctx, key, func(ctx context.Context) error {
			c.fnCtx = ctx
			close(c.entered)
			<-c.gate
			return c.fnErr
		}, opts...)
	}()
	return c
}

// ctHold is ctStart once fn runs.
func ctHold(t testing.TB, l processlock.Locker, ctx context.Context, key any, opts ...processlock.Option) *ctCall {
	c := ctStart(t, l, ctx, key, opts...)
	select {
	case <-c.entered:
	case <-c.over:
		if !c.ran() {
			t.Errorf("fn did not run: %v", c.err)
		}
	}
	return c
}

func (c *ctCall) running() bool { return ctClosed(c.entered) && !ctClosed(c.over) }

func (c *ctCall) ran() bool { return ctClosed(c.entered) }

func (c *ctCall) ended() bool { return ctClosed(c.over) }

// finish lets fn return, if it runs, and returns what the call did.
func (c *ctCall) finish() error {
	c.letGo()
	<-c.over
	return c.err
}

func (c *ctCall) letGo() { c.open.Do(func() { close(c.gate) }) }

func ctClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ctNop is an fn for calls of which only the error counts.
func ctNop(context.Context) error { return nil }

// ctNever is an fn for calls that must be refused.
func ctNever(t testing.TB) func(context.Context) error {
	return func(context.Context) error {
		t.Error("fn ran")
		return nil
	}
}

// ctRequireIdle fails unless c has nothing left.
func ctRequireIdle(t testing.TB, c *processlock.Coordinator) {
	t.Helper()
	require.NoError(t, processlock.CTLeft(c))
	require.Empty(t, c.Snapshot().Locks)
	s := c.Stats()
	require.Zero(t, s.Held, "Stats.Held")
	require.Zero(t, s.Waiting, "Stats.Waiting")
}

// ctRequireClosed fails unless err means that fn did not run since something
// was closed.
func ctRequireClosed(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, processlock.ErrClosed)
	require.ErrorAs(t, err, new(*processlock.AcquireError))
}

// ctBound is how long what must happen in real time may take.
func ctBound(t *testing.T) time.Duration {
	d := 30 * time.Second
	if end, ok := t.Deadline(); ok {
		d = min(d, time.Until(end)*9/10)
	}
	return d
}

// ctWithin fails the test unless done closes in time. Call it on the test's
// goroutine.
func ctWithin(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(ctBound(t)):
		t.Fatalf("not in time: %s", what)
	}
}

// ctSlowCtx is a context whose Err, once armed, says so and answers when it is
// let go: between its wake-up and its resuming, a waiter asks for it.
type ctSlowCtx struct {
	context.Context
	armed       atomic.Bool
	asked, gate chan struct{}
}

func ctSlowly(ctx context.Context) *ctSlowCtx {
	return &ctSlowCtx{Context: ctx, asked: make(chan struct{}), gate: make(chan struct{})}
}

func (c *ctSlowCtx) Err() error {
	if c.armed.CompareAndSwap(true, false) {
		close(c.asked)
		<-c.gate
	}
	return c.Context.Err()
}

// ctAwaitWaiters returns once n requests wait in c.
func ctAwaitWaiters(t *testing.T, c *processlock.Coordinator, n int64) {
	t.Helper()
	if now := time.Now(); now == now.Round(0) { // in a bubble
		synctest.Wait()
		require.Equal(t, n, c.Stats().Waiting)
		return
	}
	for end := time.Now().Add(ctBound(t)); c.Stats().Waiting != n; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d requests wait, want %d", c.Stats().Waiting, n)
		}
	}
}

// ctInChild runs the calling test again in a process of its own and there, run
// in its place: for what would end the process if it failed, and for what can
// be done once in a process.
func ctInChild(t *testing.T, run func(t *testing.T)) {
	const env = "PROCESSLOCK_CT_CHILD"
	if os.Getenv(env) == t.Name() {
		run(t)
		return
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), exe, "-test.run="+pattern, "-test.v", "-test.timeout=10s")
	cmd.Env = append(os.Environ(), env+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in a process of its own: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("the child did not run the test:\n%s", out)
	}
}
