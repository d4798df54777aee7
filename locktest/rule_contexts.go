package locktest

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dbx-tools/processlock"
)

// oddContext is one that no context of the standard library is: Done and Err
// say what they are told to.
type oddContext struct {
	context.Context
	done chan struct{}
	err  error
}

func (o oddContext) Done() <-chan struct{} { return o.done }
func (o oddContext) Err() error            { return o.err }

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// countingContext counts what is registered on it.
type countingContext struct {
	context.Context
	registered *atomic.Int64
}

// AfterFunc is what the context package calls to learn of the end of a parent
// that it does not know.
func (c countingContext) AfterFunc(f func()) func() bool {
	c.registered.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool { c.registered.Add(-1); return stop() }
}

var contextsRule = rule{12, "contexts", []check{
	{"that_never_end", 0, func(k *kit) {
		for _, ctx := range []context.Context{
			context.Background(), context.TODO(), context.WithoutCancel(k.ctx),
			oddContext{Context: context.Background()}, context.WithValue(context.Background(), &errCause, 1),
		} {
			a := k.hold(k.key("a"))
			b := k.waits(k.start(ctx, k.key("a")))
			a.open()
			k.served(a)
			k.runs(b).open()
			k.served(b)
			k.served(k.do(ctx, k.key("a"), nop))
		}
	}},
	{"fn_has_the_callers", 0, func(k *kit) {
		ctx, cancel := context.WithTimeout(context.WithValue(k.ctx, &errCause, "value"), time.Hour)
		defer cancel()
		want, _ := ctx.Deadline()
		a := k.runs(k.start(ctx, k.key("a")))
		if got, ok := a.ctx.Deadline(); !ok || !got.Equal(want) {
			k.fail("fn's deadline is %v, not %v", got, want)
		}
		if got := a.ctx.Value(&errCause); got != "value" {
			k.fail("fn's context has the value %v, not that of its caller's", got)
		}
		if a.ctx.Err() != nil {
			k.fail("fn's context is done: %v", a.ctx.Err())
		}
		a.open()
		k.served(a)
		if a.ctx.Err() != nil {
			k.fail("fn's context ended when fn returned: %v", a.ctx.Err())
		}
		cancel()
		if !k.closes(a.ctx.Done()) || a.ctx.Err() == nil {
			k.fail("fn's context did not end with its caller's")
		}
	}},
	{"no_lineage_after_fn", lineage, func(k *kit) {
		a := k.hold(k.key("a")).open()
		k.served(a)
		b := k.hold(k.key("a"))
		c := k.waits(k.start(a.ctx, k.key("a")))
		b.open()
		k.runs(c)
	}},
	{"without_cancel_keeps_the_lineage", lineage, func(k *kit) {
		a := k.hold(k.key("a"))
		k.refused(k.start(context.WithoutCancel(a.ctx), k.key("a")), processlock.ErrDeadlock)
	}},
	{"parent_keeps_nothing", 0, func(k *kit) {
		parent := countingContext{k.ctx, new(atomic.Int64)}
		a := k.runs(k.start(parent, k.key("a")))
		b := k.waits(k.start(parent, k.key("a")).open())
		a.open()
		k.served(a)
		k.served(b)
		if !k.until(func() bool { return parent.registered.Load() == 0 }) {
			k.fail("%d finished calls are still registered on their context", parent.registered.Load())
		}
	}},
}}

// baseName is the last part of a subtest's name.
func baseName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
