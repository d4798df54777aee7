package locktest

import (
	"context"
	"sync/atomic"

	"github.com/dbx-tools/processlock"
)

// callingContext calls do whenever it is asked something.
type callingContext struct {
	context.Context
	do func()
}

func (c callingContext) Done() <-chan struct{} { c.do(); return c.Context.Done() }
func (c callingContext) Err() error            { c.do(); return c.Context.Err() }
func (c callingContext) Value(key any) any     { c.do(); return c.Context.Value(key) }

type callingText struct {
	do   func()
	text string
}

func (c callingText) MarshalText() ([]byte, error) { c.do(); return []byte(c.text), nil }

var userCodeRule = rule{36, "user_code", []check{
	{"context_calls_back", 0, func(k *kit) {
		// The same key is busy for it, if this call holds or waits.
		back := func() {
			_ = k.l.WithLock(k.ctx, k.key("a"), nop, processlock.IfAvailable)
			_ = k.l.WithLock(k.ctx, k.key("b"), nop)
		}
		ctx, cancel := context.WithCancel(k.ctx)
		a := k.runs(k.start(callingContext{ctx, back}, k.key("a")))
		b := k.waits(k.start(callingContext{ctx, back}, k.key("a")).open())
		a.open()
		k.served(a)
		k.served(b)
		cancel()
		k.refused(k.do(callingContext{ctx, back}, k.key("a"), nop), context.Canceled)
		k.free(k.key("a"), k.key("b"))
	}},
	{"key_calls_back", 0, func(k *kit) {
		text := callingText{func() { _ = k.l.WithLock(k.ctx, k.key("a"), nop) }, k.key("a")}
		k.served(k.do(k.ctx, text, nop))
		k.free(k.key("a"))
	}},
	{"context_panics_in_the_queue", 0, func(k *kit) {
		var armed atomic.Bool
		a := k.hold(k.key("a"))
		b := k.waits(k.start(callingContext{k.ctx, func() {
			if armed.Load() {
				panic(errCause)
			}
		}}, k.key("a")).open())
		c := k.waits(k.start(k.ctx, k.key("a")).open())
		armed.Store(true)
		a.open()
		k.served(a)
		k.served(c)
		// On real time it may not have been in the queue, nor been asked.
		if !k.closes(b.over) || b.how != "panic" && b.err != nil || b.how == "panic" && b.value != errCause {
			k.fail("the waiter's context panicked, but its call %v", b)
		}
		k.free(k.key("a"))
	}},
}}
