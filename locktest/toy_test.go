package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
)

// toy is a locker that is obviously right, unless it is told to be wrong: one
// mutex, and a list of holders and a queue for each key. It knows its own
// lineage, but neither clients nor cycles.
type toy struct {
	fault string // one of wrongLockers; "" is none

	mu   sync.Mutex
	keys map[string]*toyKey
}

// is reports whether the toy has a fault.
func (y *toy) is(fault string) bool { return y.fault == fault }

// toyCall is a call: what it asks for and what it has.
type toyCall struct {
	*toy
	ctx     context.Context
	r       processlock.Request
	lineage *toyHold   // the innermost hold that the call is made under
	taken   []*toyHold // by this call
	under   []*toyHold // of the lineage, for Reentrant
	expired <-chan time.Time
}

type toyLineage struct{}

func (y *toy) WithLock(ctx context.Context, key any, fn func(context.Context) error, opts ...processlock.Option) error {
	if ctx == nil {
		panic("processlock: nil context")
	}
	if fn == nil && !y.is("takes a nil fn") {
		panic("processlock: nil fn")
	}
	r, kerr := y.resolve(key, opts)
	if kerr != nil && y.is("reads the key first") {
		return kerr
	}
	if y.is("takes All in reverse") {
		slices.Reverse(r.Keys)
	}
	if err := toyEnded(ctx); err != nil && !y.is("runs under a dead context") {
		return y.refuse(r, 0, err)
	}
	if kerr != nil {
		if y.is("takes bad keys") {
			return fn(ctx)
		}
		return kerr
	}
	if y.is("ignores Shared") {
		r.Mode = processlock.ModeExclusive
	}
	if y.is("ignores IfAvailable") {
		r.IfAvailable = false
	}
	if y.is("needs a Done channel") && ctx.Done() == nil {
		return y.refuse(r, 0, processlock.ErrUnavailable)
	}
	if parent, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok && y.is("watches its contexts") {
		parent.AfterFunc(func() {})
	}
	if y.is("leaks a goroutine") {
		go func() { <-ctx.Done() }()
	}
	c := &toyCall{toy: y, ctx: ctx, r: r}
	c.lineage, _ = ctx.Value(toyLineage{}).(*toyHold)
	return c.run(key, fn)
}

func (c *toyCall) run(key any, fn func(context.Context) error) error {
	if c.r.MaxWait > 0 && !c.is("ignores MaxWait") {
		timer := time.NewTimer(c.r.MaxWait)
		defer timer.Stop()
		c.expired = timer.C
	}
	ran, returned := false, false
	defer func() {
		if c.is("keeps part of All") && !ran {
			return
		}
		if c.is("Goexit strands the waiters") && ran && !returned {
			v := recover()
			if v == nil {
				return
			}
			defer panic(v)
		}
		c.release()
	}()
	for i, k := range c.r.Keys {
		if err := c.acquire(c.text(key, k), k); err != nil {
			return c.refuse(c.r, i, err)
		}
	}
	ran = true
	err := c.call(fn)
	returned = true
	if c.lost() {
		return errors.Join(err, processlock.ErrLost)
	}
	return err
}

// call runs fn under what the call holds.
func (c *toyCall) call(fn func(context.Context) error) (err error) {
	ctx := context.WithValue(c.ctx, toyLineage{}, c.innermost())
	switch c.fault {
	case "recovers panics":
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("fn panicked: %v", v)
			}
		}()
	case "panics again":
		defer func() {
			if v := recover(); v != nil {
				panic(v)
			}
		}()
	case "panics later":
		value, err := caught(func() error { return fn(ctx) })
		if value != nil {
			panic(value)
		}
		return err
	case "wraps fn's error":
		if err := fn(ctx); err != nil {
			return fmt.Errorf("fn: %w", err)
		}
		return nil
	case "ends fn's context":
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return fn(ctx)
	case "MaxWait bounds fn":
		if c.r.MaxWait > 0 {
			ctx, cancel := context.WithTimeout(ctx, c.r.MaxWait)
			defer cancel()
			return fn(ctx)
		}
	case "the context decides the result":
		if err := fn(ctx); c.ctx.Err() == nil {
			return err
		}
		return &processlock.AcquireError{Key: c.r.Keys[0], Err: c.ctx.Err()}
	case "runs fn elsewhere":
		return elsewhere(func() error { return fn(ctx) })
	}
	return fn(ctx)
}

// caught runs do and returns the value that it panics with.
func caught(do func() error) (value any, err error) {
	defer func() { value = recover() }()
	return nil, do()
}

// elsewhere runs do on another goroutine, but hands on how it ends.
func elsewhere(do func() error) (err error) {
	var value any
	exited, done := true, make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				value, exited = v, false
			}
		}()
		err = do()
		exited = false
	}()
	<-done
	switch {
	case value != nil:
		panic(value)
	case exited:
		runtime.Goexit()
	}
	return err
}

func (y *toy) resolve(key any, opts []processlock.Option) (processlock.Request, error) {
	if y.is("calls user code under its mutex") {
		y.mu.Lock()
		defer y.mu.Unlock()
	}
	return processlock.Resolve(key, opts...)
}

func (y *toy) refuse(r processlock.Request, i int, reason error) error {
	switch {
	case y.is("returns bare reasons"):
		return reason
	case i < len(r.Keys):
		return &processlock.AcquireError{Key: r.Keys[i], Err: reason}
	default:
		return &processlock.AcquireError{Err: reason}
	}
}

// text is what the toy takes for the identity of a key.
func (y *toy) text(key any, k processlock.Key) string {
	if _, several := key.(processlock.Keys); y.is("prints its keys") && !several {
		return fmt.Sprint(key)
	}
	if y.is("has one lock for all keys") {
		return "lock"
	}
	return k.Canonical()
}

// toyEnded returns why ctx is done, or nil.
func toyEnded(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		select {
		case <-ctx.Done():
			err = context.Canceled
		default:
			return nil
		}
	}
	if cause := context.Cause(ctx); cause != nil && cause != err {
		return errors.Join(err, cause)
	}
	return err
}
