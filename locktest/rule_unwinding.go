package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/dbx-tools/processlock"
)

var unwindingRule = rule{15, "unwinding", []check{
	{"panic", 0, func(k *kit) {
		for _, v := range []any{"a string", errCause, 7, &k.number, processlock.ErrClosed} {
			k.unwinds(func(context.Context) error { thePanic(v); return nil }, "panic", v)
		}
	}},
	{"panic_of_the_runtime", 0, func(k *kit) {
		b := k.unwinds(func(context.Context) error { _ = []int(nil)[k.number]; return nil }, "panic", nil)
		if _, ok := b.value.(runtime.Error); !ok {
			k.fail("the panic's value is %T, not a runtime.Error", b.value)
		}
	}},
	{"nil_panic", 0, func(k *kit) {
		b := k.unwinds(func(context.Context) error { var v any; panic(v) }, "panic", nil)
		if _, ok := b.value.(*runtime.PanicNilError); !ok {
			k.fail("the panic's value is %T, not a *runtime.PanicNilError", b.value)
		}
	}},
	{"panic_keeps_its_stack", 0, func(k *kit) {
		b := k.unwinds(func(context.Context) error { thePanic("x"); return nil }, "panic", "x")
		if !strings.Contains(b.stack, "locktest.thePanic") {
			k.fail("what panicked is not on the stack that the caller sees:\n%s", b.stack)
		}
		if n := strings.Count(b.stack, "\npanic("); n != 1 {
			k.fail("the panic was recovered and made anew:\n%s", b.stack)
		}
	}},
	{"goexit", 0, func(k *kit) {
		k.unwinds(func(context.Context) error { runtime.Goexit(); return nil }, "exit", nil)
	}},
	// t.FailNow is a Goexit below a lock and deferred functions of its own.
	{"fail_now", 0, func(k *kit) {
		cleaned := false
		k.unwinds(func(context.Context) error {
			var mu sync.Mutex
			defer func() { cleaned = true }()
			mu.Lock()
			defer mu.Unlock()
			runtime.Goexit()
			return nil
		}, "exit", nil)
		if !cleaned {
			k.fail("a deferred function of fn did not run")
		}
	}},
	{"panic_then_goexit", 0, func(k *kit) {
		k.unwinds(func(context.Context) error {
			defer runtime.Goexit()
			panic("replaced")
		}, "exit", nil)
	}},
	{"recovered_in_fn", 0, func(k *kit) {
		k.returns(k.do(k.ctx, k.key("a"), func(context.Context) (err error) {
			defer func() { recover(); err = errCause }()
			panic("x")
		}), errCause)
		k.free(k.key("a"))
	}},
	{"nested", 0, func(k *kit) {
		for _, how := range []string{"panic", "exit"} {
			a := k.startThen(k.ctx, k.key("outer"), func(ctx context.Context) error {
				return k.l.WithLock(ctx, k.key("inner"), func(context.Context) error {
					if how == "exit" {
						runtime.Goexit()
					}
					panic(errCause)
				})
			})
			k.runs(a).open()
			if !k.closes(a.over) || a.how != how || how == "panic" && a.value != errCause {
				k.fatal("the call should end by %s, but it %v", how, a)
			}
			k.free(k.key("outer"), k.key("inner"))
		}
	}},
	{"all", all, func(k *kit) {
		for _, how := range []string{"panic", "exit"} {
			a := k.do(k.ctx, processlock.All(k.key("a"), k.key("b")), func(context.Context) error {
				if how == "exit" {
					runtime.Goexit()
				}
				panic(errCause)
			})
			if a.how != how || how == "panic" && a.value != errCause {
				k.fatal("the call should end by %s, but it %v", how, a)
			}
			k.free(k.key("a"), k.key("b"))
		}
	}},
	{"shared", shared, func(k *kit) {
		a := k.hold(k.key("a"), processlock.Shared)
		b := k.do(k.ctx, k.key("a"), func(context.Context) error { panic(errCause) }, processlock.Shared)
		if b.how != "panic" || b.value != errCause {
			k.fatal("the call should panic, but it %v", b)
		}
		k.held(k.key("a")) // by a still: released once, not twice
		a.open()
		k.served(a)
		k.free(k.key("a"))
	}},
}}

//go:noinline
func thePanic(v any) { panic(v) }

// unwinds has two holders end by fn: one that found the key free, and one that
// waited, with another behind it.
func (k *kit) unwinds(fn lockFn, how string, value any) *call {
	k.Helper()
	a := k.runs(k.startThen(k.ctx, k.key("a"), fn))
	b := k.waits(k.startThen(k.ctx, k.key("a"), fn))
	a.open()
	k.runs(b)
	c := k.waits(k.start(k.ctx, k.key("a")))
	k.held(k.key("a")) // released once
	b.open()
	k.runs(c)
	k.held(k.key("a"))
	c.open()
	k.served(c)
	for _, x := range []*call{a, b} {
		if !k.closes(x.over) || x.how != how {
			k.fatal("the call should end by %s, but it %v", how, x)
		}
		if value != nil && x.value != value {
			k.fail("the panic's value is %v, not %v", x.value, value)
		}
	}
	k.free(k.key("a"))
	return b
}

var misuseRule = rule{16, "misuse", []check{
	{"panics", 0, func(k *kit) {
		var noContext context.Context
		for _, held := range []bool{false, true} {
			var a *call
			if held {
				a = k.hold(k.key("a"))
			}
			k.misused(func() error { return k.l.WithLock(noContext, k.key("a"), nop) })
			k.misused(func() error { return k.l.WithLock(k.ctx, k.key("a"), nil) })
			k.misused(func() error { return k.l.WithLock(k.ctx, k.key("a"), nop, nil) })
			k.misused(func() error { return k.l.WithLock(k.ctx, k.key("a"), nop, processlock.IfAvailable, nil) })
			if held {
				a.open()
				k.served(a)
			}
			k.free(k.key("a"))
		}
	}},
}}

// misused fails the check unless do panics as misuse does.
func (k *kit) misused(do func() error) {
	k.Helper()
	c := &call{over: make(chan struct{})}
	go c.run(do)
	if !k.closes(c.over) || c.how != "panic" {
		k.fatal("misuse should panic at once, but the call %v", c)
	}
	text := fmt.Sprint(c.value)
	var trap runtime.Error
	if err, ok := c.value.(error); ok && errors.As(err, &trap) || !strings.HasPrefix(text, "processlock: ") {
		k.fail(`misuse should panic with a message that begins "processlock: ", not with %v`, text)
	}
}
