package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/dbx-tools/processlock"
)

var errCause = errors.New("locktest: the cause")

// dead returns contexts that are done, each in another way, with what the error
// must be.
func (k *kit) dead() map[string]struct {
	ctx  context.Context
	want []error
} {
	canceled, cancel := context.WithCancel(k.ctx)
	cancel()
	caused, cancelCause := context.WithCancelCause(k.ctx)
	cancelCause(errCause)
	late, cancelLate := context.WithDeadlineCause(k.ctx, time.Now().Add(-time.Second), errCause)
	cancelLate()
	return map[string]struct {
		ctx  context.Context
		want []error
	}{
		"canceled":              {canceled, []error{context.Canceled}},
		"with a cause":          {caused, []error{context.Canceled, errCause}},
		"past its deadline":     {late, []error{context.DeadlineExceeded, errCause}},
		"below a canceled one":  {context.WithValue(canceled, &errCause, 1), []error{context.Canceled}},
		"closed, but Err nil":   {oddContext{Context: k.ctx, done: closedChan}, []error{context.Canceled}},
		"Err set, but Done nil": {oddContext{Context: k.ctx, err: errCause}, []error{errCause}},
	}
}

var doneBeforeRule = rule{8, "done_before", []check{
	{"free_key", 0, func(k *kit) { k.deadOn(k.key("a")) }},
	{"free_key_if_available", 0, func(k *kit) { k.deadOn(k.key("a"), processlock.IfAvailable) }},
	{"free_key_max_wait", 0, func(k *kit) { k.deadOn(k.key("a"), processlock.MaxWait(time.Hour)) }},
	{"free_key_shared", shared, func(k *kit) { k.deadOn(k.key("a"), processlock.Shared) }},
	{"free_keys_of_all", all, func(k *kit) { k.deadOn(processlock.All(k.key("a"), k.key("b"))) }},
	{"held_key", 0, func(k *kit) {
		a := k.hold(k.key("a"))
		for name, d := range k.dead() {
			for _, opts := range [][]processlock.Option{nil, {processlock.IfAvailable}} {
				c := k.start(d.ctx, k.key("a"), opts...)
				k.refused(c, d.want...)
				if unavailable(c.err) {
					k.fail("a context %s comes before IfAvailable, but the error is %v", name, c.err)
				}
			}
		}
		a.open()
		k.served(a)
	}},
	{"clean_up_without_cancel", 0, func(k *kit) {
		canceled, cancel := context.WithCancel(k.ctx)
		cancel()
		k.served(k.do(context.WithoutCancel(canceled), k.key("a"), nop))
	}},
}}

func (k *kit) deadOn(key any, opts ...processlock.Option) {
	k.Helper()
	for name, d := range k.dead() {
		c := k.do(d.ctx, key, nop, opts...)
		if c.runs.Load() != 0 {
			k.fail("fn ran under a context that is %s", name)
			continue
		}
		k.refused(c, d.want...)
		k.free(key)
	}
}

var doneWaitingRule = rule{9, "done_while_waiting", []check{
	{"cancel", 0, func(k *kit) {
		ctx, cancel := context.WithCancelCause(k.ctx)
		k.endsWait(ctx, func() { cancel(nil) }, context.Canceled)
	}},
	{"cause", 0, func(k *kit) {
		ctx, cancel := context.WithCancelCause(k.ctx)
		k.endsWait(ctx, func() { cancel(errCause) }, context.Canceled, errCause)
	}},
	{"deadline", 0, func(k *kit) {
		ctx, cancel := context.WithTimeoutCause(k.ctx, k.timeout(), errCause)
		defer cancel()
		e := k.endsWait(ctx, func() {}, context.DeadlineExceeded, errCause)
		if !e.Timeout() {
			k.fail("AcquireError.Timeout is false for a deadline")
		}
	}},
	{"shared", shared, func(k *kit) {
		ctx, cancel := context.WithCancelCause(k.ctx)
		k.endsWait(ctx, func() { cancel(errCause) }, context.Canceled, errCause)
	}},
	{"with_max_wait", 0, func(k *kit) {
		ctx, cancel := context.WithCancelCause(k.ctx)
		k.endsWait(ctx, func() { cancel(nil) }, context.Canceled)
	}},
	{"odd_context", 0, func(k *kit) {
		done := make(chan struct{})
		k.endsWait(oddContext{Context: k.ctx, done: done}, func() { close(done) }, context.Canceled)
	}},
}}

// endsWait ends ctx, with which a request waits.
func (k *kit) endsWait(ctx context.Context, end func(), want ...error) *processlock.AcquireError {
	k.Helper()
	opts := map[string][]processlock.Option{
		"shared":        {processlock.Shared},
		"with_max_wait": {processlock.MaxWait(time.Hour)},
	}
	a := k.hold(k.key("a"))
	b := k.start(ctx, k.key("a"), opts[baseName(k.Name())]...)
	if _, soon := ctx.Deadline(); !soon || !k.opts.RealTime {
		k.waits(b)
	}
	end()
	if !k.closesWithin(ctx.Done(), k.patience()) {
		k.fatal("the context did not end")
	}
	e := k.refused(b, want...)
	k.names(e, k.key("a"))
	k.held(k.key("a"))
	a.open()
	k.served(a)
	k.free(k.key("a"))
	return e
}

var meetRule = rule{10, "grant_meets_cancel", []check{
	// The holder ends the waiter's context before it lets go: by the time the
	// waiter resumes it is done, whichever of the two it looks at first.
	{"the_context_wins", certainty, func(k *kit) {
		for range k.rounds() {
			ctx, cancel := context.WithCancelCause(k.ctx)
			a := k.startThen(k.ctx, k.key("a"), func(context.Context) error { cancel(errCause); return nil })
			k.runs(a)
			b := k.waits(k.start(ctx, k.key("a")).open())
			a.open()
			k.served(a)
			k.refused(b, context.Canceled, errCause)
		}
		k.free(k.key("a"))
	}},
	{"never_both_never_neither", 0, func(k *kit) {
		for range k.rounds() {
			ctx, cancel := context.WithCancel(k.ctx)
			a := k.hold(k.key("a"))
			b := k.waits(k.start(ctx, k.key("a")).open())
			go cancel()
			a.open()
			if !k.closes(b.over) || (b.runs.Load() == 1) != (b.err == nil) {
				k.fatal("the call %v", b)
			}
			if b.err != nil {
				k.refused(b, context.Canceled)
			}
		}
		k.free(k.key("a"))
	}},
}}

var runningRule = rule{11, "running", []check{
	{"fn_decides", 0, func(k *kit) {
		ctx, cancel := context.WithCancel(k.ctx)
		a := k.runs(k.start(ctx, k.key("a")))
		b := k.waits(k.start(k.ctx, k.key("a")))
		cancel()
		k.waits(b)
		k.runs(a)
		k.held(k.key("a"))
		if a.ctx.Err() == nil {
			k.fail("fn's context did not end with its caller's")
		}
		a.open()
		k.served(a)
		k.runs(b)
	}},
	{"result_is_fns", 0, func(k *kit) {
		ctx, cancel := context.WithCancel(k.ctx)
		k.returns(k.do(ctx, k.key("a"), func(context.Context) error { cancel(); return errCause }), errCause)
	}},
	{"fn_outlives_its_deadline", 0, func(k *kit) {
		ctx, cancel := context.WithTimeout(k.ctx, k.timeout())
		defer cancel()
		a := k.start(ctx, k.key("a"))
		if k.until(func() bool { return !a.pending() }); !a.hasEntered() && k.opts.RealTime {
			return // the deadline came first
		}
		k.runs(a)
		<-ctx.Done()
		k.held(k.key("a"))
		k.runs(a)
		a.open()
		k.served(a)
	}},
}}
