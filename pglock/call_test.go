package pglock_test

import (
	"context"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// call is one call of WithLock that goes on beside the test, in this process or
// in another. Its fn waits until it is opened.
type call struct {
	b      *bed
	key    any
	opened sync.Once
	open   func() // lets fn return; through let
	cancel func() // ends the context

	entered chan struct{} // closed when fn runs
	over    chan struct{} // closed when the call has returned

	ctx context.Context // fn's, in this process; set before entered is closed
	err error           // the call's; set before over is closed
}

func (b *bed) newCall(key any) *call {
	return &call{b: b, key: key, entered: make(chan struct{}), over: make(chan struct{})}
}

// start makes a call in this process.
func (b *bed) start(ctx context.Context, l processlock.Locker, key any, opts ...processlock.Option) *call {
	return b.startWith(ctx, key, func(ctx context.Context, fn func(context.Context) error) error {
		return l.WithLock(ctx, key, fn, opts...)
	})
}

// startWith is start for another way to lock.
func (b *bed) startWith(ctx context.Context, key any, lock func(context.Context, func(context.Context) error) error) *call {
	c := b.newCall(key)
	gate := make(chan struct{})
	c.open = func() { close(gate) }
	ctx, c.cancel = context.WithCancel(ctx)
	b.ends(c)
	go func() {
		defer close(c.over)
		c.err = lock(ctx, func(ctx context.Context) error {
			c.ctx = ctx
			close(c.entered)
			<-gate
			return nil
		})
	}()
	return c
}

// ends makes sure that a call does not outlive its test.
func (b *bed) ends(c *call) {
	b.Cleanup(func() {
		c.let()
		c.cancel()
		select {
		case <-c.over:
		case <-time.After(patience):
			assert.Fail(b, "a call is left", "key %v", c.key)
		}
	})
}

// hold makes a call in this process and returns when its fn runs.
func (b *bed) hold(l processlock.Locker, key any, opts ...processlock.Option) *call {
	b.Helper()
	return b.start(context.Background(), l, key, opts...).runs()
}

// let lets fn return.
func (c *call) let() *call {
	c.opened.Do(c.open)
	return c
}

// runs waits until fn runs.
func (c *call) runs() *call {
	c.b.Helper()
	select {
	case <-c.entered:
	case <-c.over:
		require.Fail(c.b, "fn did not run", "key %v: %v", c.key, c.err)
	case <-time.After(patience):
		require.Fail(c.b, "fn does not run", "key %v; locks: %+v", c.key, c.b.locks())
	}
	return c
}

// returns waits until the call has returned, and returns its error.
func (c *call) returns() error {
	c.b.Helper()
	select {
	case <-c.over:
	case <-time.After(patience):
		require.Fail(c.b, "the call does not return", "key %v; locks: %+v", c.key, c.b.locks())
	}
	return c.err
}

// ok lets fn return and fails the test unless the call returns nil.
func (c *call) ok() {
	c.b.Helper()
	require.NoError(c.b, c.let().returns())
}

// pending fails the test if fn has run or the call has returned.
func (c *call) pending() *call {
	c.b.Helper()
	require.False(c.b, isClosed(c.entered), "key %v: fn should not run yet", c.key)
	if isClosed(c.over) {
		require.Fail(c.b, "the call should wait", "key %v: it returned %v", c.key, c.err)
	}
	return c
}

// queued waits until n sessions wait for the call's key in the server's queue.
func (c *call) queued(n int) *call {
	c.b.Helper()
	c.b.eventually(func() bool { c.pending(); return len(c.b.waiting(c.key)) == n }, "nobody waits on the server")
	return c
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// bounded fails the test if what does not return.
func (b *bed) bounded(what func() error) error {
	b.Helper()
	done := make(chan error, 1)
	go func() { done <- what() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		require.Fail(b, "a call does not return", "locks: %+v", b.locks())
		return nil
	}
}

func nop(context.Context) error { return nil }

// refused fails the test unless err says that fn did not run, for the reasons.
func (b *bed) refused(err error, reasons ...error) *processlock.AcquireError {
	b.Helper()
	require.Error(b, err)
	for _, reason := range reasons {
		require.ErrorIs(b, err, reason)
	}
	var e *processlock.AcquireError
	require.ErrorAs(b, err, &e)
	return e
}
