package locktest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/dbx-tools/processlock"
)

// A client of another coordinator acts through the end of its context alone, so
// any locker can be asked what it does under one.
var clientRule = rule{24, "client_context", []check{
	{"closed_before", 0, func(k *kit) {
		ctx, client := processlock.WithClient(k.ctx, "worker")
		client.Close()
		k.refused(k.do(ctx, k.key("a"), nop), processlock.ErrClosed, context.Canceled)
		k.free(k.key("a"))
	}},
	{"closed_while_waiting", 0, func(k *kit) {
		ctx, client := processlock.WithClient(k.ctx, "worker")
		a := k.hold(k.key("a"))
		b := k.waits(k.start(ctx, k.key("a")))
		client.Close()
		k.refused(b, processlock.ErrClosed, context.Canceled)
		k.held(k.key("a"))
		a.open()
		k.served(a)
		k.free(k.key("a"))
	}},
	{"fn_has_the_clients_context", 0, func(k *kit) {
		parent, cancel := context.WithTimeout(context.WithValue(k.ctx, &errCause, 1), time.Hour)
		defer cancel()
		ctx, client := processlock.WithClient(parent, "worker")
		defer client.Close()
		a := k.runs(k.start(ctx, k.key("a")))
		_, ok := a.ctx.Deadline()
		if a.ctx.Value(&errCause) != 1 || !ok {
			k.fail("fn's context lacks the value or the deadline of the client's parent")
		}
		a.open()
		k.served(a)
	}},
}}

var closeRule = rule{25, "client_close", []check{
	{"hands_on", client, func(k *kit) {
		ctx, worker := k.opts.Client(k.ctx, k.l, "worker")
		a := k.runs(k.start(ctx, k.key("a")))
		waiting := k.waits(k.start(ctx, k.key("a")))
		b := k.waits(k.start(k.ctx, k.key("a")))
		worker.Close()
		worker.Close()
		k.refused(waiting, processlock.ErrClosed, context.Canceled)
		k.runs(b)
		k.refused(k.start(ctx, k.key("b")), processlock.ErrClosed)
		k.refused(k.start(context.WithoutCancel(ctx), k.key("b")), processlock.ErrClosed)
		if !errors.Is(context.Cause(a.ctx), processlock.ErrClosed) {
			k.fail("the cause of fn's context is %v, not ErrClosed", context.Cause(a.ctx))
		}
		a.open()
	}},
	{"within_fn", client, func(k *kit) {
		ctx, worker := k.opts.Client(k.ctx, k.l, "worker")
		a := k.startThen(ctx, k.key("a"), func(context.Context) error { worker.Close(); return nil }).open()
		if !k.closes(a.over) || !errors.Is(a.err, processlock.ErrLost) {
			k.fail("fn closed its own client, but the call %v", a)
		}
		k.free(k.key("a"))
	}},
	{"others_are_not_touched", client, func(k *kit) {
		_, worker := k.opts.Client(k.ctx, k.l, "worker")
		a := k.hold(k.key("a"))
		b := k.waits(k.start(k.ctx, k.key("a")))
		worker.Close()
		k.held(k.key("a"))
		k.waits(b)
		a.open()
		k.served(a)
		k.runs(b)
	}},
}}

var lostRule = rule{27, "lost", []check{
	{"is_told", client, func(k *kit) {
		for _, err := range []error{nil, errCause} {
			ctx, worker := k.opts.Client(k.ctx, k.l, "worker")
			a := k.runs(k.startThen(ctx, k.key("a"), returning(err)))
			worker.Close()
			b := k.hold(k.key("a"))
			a.open()
			if !k.closes(a.over) || !errors.Is(a.err, processlock.ErrLost) || isAcquireError(a.err) {
				k.fail("the lock was lost, but the call %v", a)
			}
			if err == nil && a.err != processlock.ErrLost || err != nil && !errors.Is(a.err, err) {
				k.fail("fn returned %v, the call %v", err, a.err)
			}
			k.held(k.key("a")) // by b: the late release is ignored
			b.open()
			k.served(b)
		}
	}},
	{"unwinding_goes_on", client, func(k *kit) {
		for _, how := range []string{"panic", "exit"} {
			ctx, worker := k.opts.Client(k.ctx, k.l, "worker")
			a := k.runs(k.startThen(ctx, k.key("a"), func(context.Context) error {
				if how == "exit" {
					runtime.Goexit()
				}
				panic(errCause)
			}))
			worker.Close()
			a.open()
			if !k.closes(a.over) || a.how != how || how == "panic" && a.value != errCause {
				k.fail("the call should end by %s, but it %v", how, a)
			}
			k.free(k.key("a"))
		}
	}},
}}
