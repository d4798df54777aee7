package proof

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/dbx-tools/processlock"
)

// liveCall is a call of the library on a goroutine of its own. Its fn waits
// until it is told how to end.
type liveCall struct {
	gate chan outcome
	told bool // by the driver
	task bool // of a group

	ctx     context.Context // fn's; set when ran is
	ran     atomic.Bool
	running atomic.Bool

	err  error // set when over is
	how  reason
	over atomic.Bool
}

var errPanic = errors.New("fn's panic")

// start makes the call.
func (x *liveCall) start(ctx context.Context, c *processlock.Coordinator, key any, opts []processlock.Option) {
	x.gate = make(chan outcome, 1)
	go func() {
		x.how = isExit
		defer x.over.Store(true)
		defer func() {
			if v := recover(); v != nil {
				if x.how = isPanic; v != errPanic {
					panic(v)
				}
			}
		}()
		x.err = c.WithLock(ctx, key, func(ctx context.Context) error { return x.fn(ctx) }, opts...)
		x.how = reasonOf(x.err)
	}()
}

// add makes it a task.
func (x *liveCall) add(g *processlock.Group, key any, opts []processlock.Option) {
	x.gate, x.task = make(chan outcome, 1), true
	g.GoLocked(key, func(ctx context.Context) error { return x.fn(ctx) }, opts...)
}

func (x *liveCall) fn(ctx context.Context) error {
	x.ctx = ctx
	x.ran.Store(true)
	x.running.Store(true)
	how := <-x.gate
	x.running.Store(false)
	switch how {
	case returnsError:
		return errFn
	case panics:
		panic(errPanic)
	case exits:
		runtime.Goexit()
	}
	return nil
}

// tell lets fn end.
func (x *liveCall) tell(how outcome) {
	if !x.told {
		x.told = true
		x.gate <- how
	}
}

// state is the end of the call's line in seen.
func (x *liveCall) state() string {
	var refusal *processlock.AcquireError
	switch {
	case x.task && x.ran.Load() && !x.running.Load():
		return " has run"
	case x.running.Load():
		return " runs"
	case !x.over.Load():
		return " waits"
	case errors.As(x.err, &refusal):
		return fmt.Sprintf(": %v of %s", x.how, shortKey(refusal.Key))
	}
	return fmt.Sprintf(": %v", x.how)
}

// liveShut is a call of Shutdown.
type liveShut struct {
	err  error
	over atomic.Bool
}

func (x *liveShut) start(ctx context.Context, c *processlock.Coordinator) {
	go func() {
		x.err = c.Shutdown(ctx)
		x.over.Store(true)
	}()
}

func (x *liveShut) result() reason {
	if !x.over.Load() {
		return 0
	}
	return reasonOf(x.err)
}
