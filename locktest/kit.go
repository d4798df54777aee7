package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
)

// kit is what a check works with: a locker, and the calls made on it.
//
// A check's own goroutine never calls the locker, so that nothing which the
// locker does can keep it from reporting.
type kit struct {
	*testing.T
	suite  *suite
	number int
	opts   *Options
	l      processlock.Locker

	// ctx is that of calls which need no other. It ends only to free calls that
	// hang.
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex // startThen is called from fns, too
	calls []*call
}

func newKit(t *testing.T, s *suite, number int) *kit {
	ctx, cancel := context.WithCancel(context.Background())
	return &kit{T: t, suite: s, number: number, opts: &s.opts, l: s.newLocker(t), ctx: ctx, cancel: cancel}
}

// finish ends all that is left of the check. It reports whether all calls have
// returned.
//
// Only if some have not does their context end: what the locker has left to wait
// for the end of a context shall be found.
func (k *kit) finish() bool {
	calls := k.made()
	for _, c := range calls {
		c.open()
	}
	settled := func() bool { return !slices.ContainsFunc(calls, func(c *call) bool { return !c.isOver() }) }
	if k.settle(); k.opts.RealTime {
		for end := time.Now().Add(min(time.Second, k.patience())); !settled() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
	}
	if !settled() {
		k.cancel()
	}
	for _, c := range calls {
		if !k.closes(c.over) {
			k.fail("a call with key %v %v for ever", c.key, c)
		}
		if n := c.runs.Load(); n > 1 {
			k.fail("fn was called %d times", n)
		}
	}
	return settled()
}

func (k *kit) made() []*call {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*call(nil), k.calls...)
}

// key returns a key that no other check uses.
func (k *kit) key(name string) string { return k.Name() + "/" + name }

// fail reports that the rule is broken and goes on.
func (k *kit) fail(format string, args ...any) {
	k.Helper()
	k.Errorf("rule %d: "+format, append([]any{k.number}, args...)...)
}

// fatal reports that the rule is broken and ends the check.
func (k *kit) fatal(format string, args ...any) {
	k.Helper()
	k.fail(format, args...)
	k.FailNow()
}

// settle returns, in a bubble, when nothing moves any more. On real time there
// is no telling.
func (k *kit) settle() {
	if !k.opts.RealTime {
		synctest.Wait()
	}
}

// patience bounds a wait for what the locker owes us. In a bubble it is longer
// than any timeout that a check sets.
func (k *kit) patience() time.Duration {
	if !k.opts.RealTime {
		return 24 * time.Hour
	}
	limit := 10 * time.Second
	if deadline, ok := k.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/4)
	}
	return limit
}

// closes reports whether c is closed: at once in a bubble, that is without
// another event and without any time; soon on real time.
func (k *kit) closes(c <-chan struct{}) bool {
	k.settle()
	if isClosed(c) || !k.opts.RealTime {
		return isClosed(c)
	}
	return k.closesWithin(c, k.patience())
}

func (k *kit) closesWithin(c <-chan struct{}, d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-c:
		return true
	case <-limit.C:
		return false
	}
}

// until reports whether what becomes true: at once in a bubble, soon on real
// time.
func (k *kit) until(what func() bool) bool {
	k.settle()
	if !k.opts.RealTime {
		return what()
	}
	pause := 10 * time.Microsecond
	for end := time.Now().Add(k.patience()); !what(); time.Sleep(pause) {
		if time.Now().After(end) {
			return false
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
	return true
}

// do makes a call with an fn that does not wait, and returns when it is over.
func (k *kit) do(ctx context.Context, key any, fn lockFn, opts ...processlock.Option) *call {
	k.Helper()
	c := k.startThen(ctx, key, fn, opts...).open()
	if !k.closes(c.over) {
		k.fatal("a call with key %v is not over: it %v", key, c)
	}
	return c
}

// try asks for key with IfAvailable and returns the error.
func (k *kit) try(key any, opts ...processlock.Option) error {
	k.Helper()
	return k.do(k.ctx, key, nop, append(opts, processlock.IfAvailable)...).err
}

// hold makes a call and returns when its fn runs.
func (k *kit) hold(key any, opts ...processlock.Option) *call {
	k.Helper()
	return k.runs(k.start(k.ctx, key, opts...))
}

// parallel runs n goroutines and waits for all of them.
func (k *kit) parallel(n int, do func(i int)) {
	k.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	done := make(chan struct{})
	go func() { defer close(done); wg.Wait() }()
	if !k.closesWithin(done, k.patience()) {
		k.cancel()
		k.fail("callers are stuck")
		if !k.closes(done) {
			k.fatal("not even the end of their context frees them")
		}
		k.FailNow()
	}
}

// timeout is a bound that a wait reaches: long in a bubble, where it costs
// nothing, short on real time.
func (k *kit) timeout() time.Duration {
	if k.opts.RealTime {
		return 50 * time.Millisecond
	}
	return time.Minute
}

// rounds is how often a race is tried.
func (k *kit) rounds() int {
	switch {
	case k.opts.RealTime, testing.Short():
		return 20
	default:
		return 200
	}
}

func isAcquireError(err error) bool {
	_, ok := err.(*processlock.AcquireError)
	return ok
}

func unavailable(err error) bool { return errors.Is(err, processlock.ErrUnavailable) }
