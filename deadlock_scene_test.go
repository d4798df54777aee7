package processlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dtCall is a call of WithLock on a goroutine of its own. Its fn stays until it
// is told to return.
type dtCall struct {
	scene  *dtScene
	within *dtCall // whose fn waits for this call before it returns, or nil
	cancel context.CancelFunc
	gate   chan struct{}
	told   bool

	ctx      context.Context // fn's, once ran
	ran      atomic.Bool     // fn was started
	running  atomic.Bool
	over     atomic.Bool
	err      error // once over
	panicked any   // once over
}

// dtScene is a bubble with a coordinator. When the test is through, every fn
// returns once all requests under it are over, again and again: whoever still
// waits after that was deadlocked, and not told.
type dtScene struct {
	*testing.T
	c     *Coordinator
	calls []*dtCall
}

func dtBubble(t *testing.T, opts Options, body func(d *dtScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &dtScene{T: t, c: New(opts)}
		// After a failure too, since blocked goroutines end the process.
		t.Cleanup(func() {
			stuck := d.drain()
			for _, x := range d.calls {
				x.cancel()
				x.tell()
			}
			synctest.Wait()
			assert.Empty(t, stuck, "calls that wait for ever")
			dtAssertNothingLeft(t, d.c)
		})
		body(d)
	})
}

// dtAssertNothingLeft is for when no call is under way.
func dtAssertNothingLeft(t testing.TB, cs ...*Coordinator) {
	t.Helper()
	assert.Zero(t, dtGraphSize(), "holds in the wait-for graph")
	for _, c := range cs {
		assert.Empty(t, c.Snapshot().Locks)
		s := c.Stats()
		assert.Zero(t, s.Held, "held")
		assert.Zero(t, s.Waiting, "waiting")
	}
}

// dtGraphSize counts the holds in the wait-for graph.
func dtGraphSize() int {
	waits.mu.Lock()
	defer waits.mu.Unlock()
	return len(waits.under)
}

// drain reports the calls that are left.
func (d *dtScene) drain() (stuck []int) {
	for progress := true; progress; {
		progress = false
		for _, x := range d.calls {
			if x.running.Load() && !x.told && !x.busy() {
				x.let()
				progress = true
			}
		}
	}
	for i, x := range d.calls {
		if !x.over.Load() {
			stuck = append(stuck, i)
		}
	}
	return stuck
}

// busy reports whether x's fn waits for requests that it made.
func (x *dtCall) busy() bool {
	for _, y := range x.scene.calls {
		if y.within == x && !y.over.Load() {
			return true
		}
	}
	return false
}

// begin starts a call. With raw the context goes in as it is.
func (d *dtScene) begin(within *dtCall, c *Coordinator, ctx context.Context, raw bool, key any, opts ...Option) *dtCall {
	x := &dtCall{scene: d, within: within, gate: make(chan struct{}), cancel: func() {}}
	if !raw {
		ctx, x.cancel = context.WithCancel(ctx)
	}
	d.calls = append(d.calls, x)
	go func() {
		defer func() {
			x.panicked = recover()
			x.running.Store(false)
			x.over.Store(true)
		}()
		x.err = c.WithLock(ctx, key, func(ctx context.Context) error {
			x.ctx = ctx
			x.ran.Store(true)
			x.running.Store(true)
			<-x.gate
			return nil
		}, opts...)
	}()
	return x
}

// ask is a call without lineage. Its context is not the test's, which ends
// before the clean-up.
func (d *dtScene) ask(key any, opts ...Option) *dtCall {
	d.Helper()
	return d.askWith(context.Background(), key, opts...)
}

// askWith is a call with a context of the test's.
func (d *dtScene) askWith(ctx context.Context, key any, opts ...Option) *dtCall {
	d.Helper()
	x := d.begin(nil, d.c, ctx, false, key, opts...)
	synctest.Wait()
	return x
}

// ask is a call made in x's fn, which waits for it.
func (x *dtCall) ask(key any, opts ...Option) *dtCall {
	x.scene.Helper()
	return x.askOn(x.scene.c, key, opts...)
}

func (x *dtCall) askOn(c *Coordinator, key any, opts ...Option) *dtCall {
	x.scene.Helper()
	require.True(x.scene, x.ran.Load(), "fn did not run: %v", x.state())
	return x.askWith(c, x.ctx, key, opts...)
}

// askWith is ask with a context derived from that of x's fn.
func (x *dtCall) askWith(c *Coordinator, ctx context.Context, key any, opts ...Option) *dtCall {
	x.scene.Helper()
	y := x.scene.begin(x, c, ctx, false, key, opts...)
	synctest.Wait()
	return y
}

// askRaw is askWith for a context whose own methods are to be asked.
func (x *dtCall) askRaw(ctx context.Context, key any, opts ...Option) *dtCall {
	x.scene.Helper()
	y := x.scene.begin(x, x.scene.c, ctx, true, key, opts...)
	synctest.Wait()
	return y
}

func (x *dtCall) tell() {
	if !x.told {
		x.told = true
		close(x.gate)
	}
}

// let has x's fn return.
func (x *dtCall) let() {
	x.tell()
	synctest.Wait()
}

func (x *dtCall) mustRun() *dtCall {
	x.scene.Helper()
	require.True(x.scene, x.running.Load(), "fn doesn't run: %v", x.state())
	return x
}

func (x *dtCall) mustWait() *dtCall {
	x.scene.Helper()
	require.False(x.scene, x.ran.Load() || x.over.Load(), "the call doesn't wait: %v", x.state())
	return x
}

func (x *dtCall) mustFail(target error) {
	x.scene.Helper()
	require.True(x.scene, x.over.Load() && !x.ran.Load(), "fn runs, or the call waits: %v", x.state())
	require.ErrorIs(x.scene, x.err, target)
	require.ErrorAs(x.scene, x.err, new(*AcquireError))
	if target == ErrUnavailable {
		require.NotErrorIs(x.scene, x.err, ErrDeadlock)
	}
}

// mustBeVictim checks that x failed with the cycle of these keys.
func (x *dtCall) mustBeVictim(keys ...any) *DeadlockError {
	x.scene.Helper()
	x.mustFail(ErrDeadlock)
	var deadlock *DeadlockError
	require.ErrorAs(x.scene, x.err, &deadlock)
	var want, got []string
	for _, k := range keys {
		want = append(want, MustKey(k).String())
	}
	for _, w := range deadlock.Cycle {
		got = append(got, w.Key.String())
	}
	require.Equal(x.scene, want, got)
	var acquire *AcquireError
	require.ErrorAs(x.scene, x.err, &acquire)
	require.Equal(x.scene, deadlock.Cycle[0].Key, acquire.Key)
	return deadlock
}

func (x *dtCall) state() string {
	switch {
	case x.panicked != nil:
		return fmt.Sprint("panicked with ", x.panicked)
	case x.running.Load():
		return "fn runs"
	case !x.over.Load():
		return "waits"
	case x.err == nil:
		return "done"
	case errors.Is(x.err, ErrLost):
		return "lost"
	}
	return x.err.Error()
}
