package locktest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dbx-tools/processlock"
)

type lockFn = func(ctx context.Context) error

// call is one call of WithLock, on a goroutine of its own. Its fn waits at a
// gate and then does what last says.
type call struct {
	key  any
	last lockFn

	gate    chan struct{}
	opened  sync.Once
	entered chan struct{} // closed by fn
	over    chan struct{} // closed when the goroutine has ended

	runs   atomic.Int32    // how often fn was called
	ctx    context.Context // fn's; set before entered is closed
	caller string          // the goroutines of the call and of fn
	inside string

	waitsFor string // canonical text of the key; the check's own

	// Set before over is closed.
	how   string // "return", "panic" or "exit"
	err   error
	value any    // of the panic
	stack string // from where the panic is seen
}

// start makes a call whose fn stays inside until it is opened.
func (k *kit) start(ctx context.Context, key any, opts ...processlock.Option) *call {
	return k.startThen(ctx, key, nop, opts...)
}

// startThen is start with an fn that goes on with last.
func (k *kit) startThen(ctx context.Context, key any, last lockFn, opts ...processlock.Option) *call {
	c := &call{key: key, last: last, gate: make(chan struct{}), entered: make(chan struct{}), over: make(chan struct{})}
	k.mu.Lock()
	k.calls = append(k.calls, c)
	k.mu.Unlock()
	go c.run(func() error { return k.l.WithLock(ctx, key, c.fn, opts...) })
	return c
}

func (c *call) fn(ctx context.Context) error {
	if c.runs.Add(1) > 1 {
		return fmt.Errorf("locktest: fn was called again")
	}
	c.ctx, c.inside = ctx, goroutine()
	close(c.entered)
	<-c.gate
	return c.last(ctx)
}

func (c *call) run(do func() error) {
	c.how = "exit"
	c.caller = goroutine()
	defer close(c.over)
	defer func() {
		if v := recover(); v != nil {
			c.how, c.value, c.stack = "panic", v, string(debug.Stack())
		}
	}()
	c.err = do()
	c.how = "return"
}

// open lets fn go on.
func (c *call) open() *call {
	c.opened.Do(func() { close(c.gate) })
	return c
}

func (c *call) hasEntered() bool { return isClosed(c.entered) }
func (c *call) isOver() bool     { return isClosed(c.over) }

// pending reports whether fn has not started and the call is not over.
func (c *call) pending() bool { return !c.hasEntered() && !c.isOver() }

// String tells what has become of the call.
func (c *call) String() string {
	switch {
	case !c.isOver() && !c.hasEntered():
		return "waits"
	case !c.isOver():
		return "runs"
	case c.how == "panic":
		return fmt.Sprintf("panicked with %v", c.value)
	case c.how == "exit":
		return "exited its goroutine"
	case c.runs.Load() == 0:
		return fmt.Sprintf("did not run and returned %v", c.err)
	default:
		return fmt.Sprintf("ran and returned %v", c.err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func nop(context.Context) error { return nil }

// goroutine names the goroutine that it is called on.
func goroutine() string {
	var buf [64]byte
	name, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), " [")
	return name
}
