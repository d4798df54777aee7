package locktest

import (
	"context"
	"errors"

	"github.com/dbx-tools/processlock"
)

const reenter = reentrant | lineage

var reentrantRule = rule{22, "reentrant", []check{
	{"runs_under_the_hold", reenter, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.waits(k.start(k.ctx, k.key("a")))
		inner := k.runs(k.start(a.ctx, k.key("a"), processlock.Reentrant)) // whoever is queued
		deeper := k.runs(k.start(inner.ctx, k.key("a"), processlock.Reentrant))
		beside := k.runs(k.start(a.ctx, k.key("a"), processlock.Reentrant)) // two calls run together
		for _, c := range []*call{deeper, inner, beside} {
			c.open()
			k.served(c)
			k.held(k.key("a"))
			k.waits(b)
		}
		k.waits(b)
		a.open()
		k.served(a)
		k.runs(b)
	}},
	{"free_key", reenter, func(k *kit) {
		a := k.hold(k.key("a"), processlock.Reentrant)
		k.held(k.key("a"))
		other := k.hold(k.key("b"))
		k.waits(k.start(a.ctx, k.key("b"), processlock.Reentrant)) // held by somebody else
		other.open()
		k.served(other)
	}},
	{"through_nested_keys", reenter, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.runs(k.start(a.ctx, k.key("b")))
		k.served(k.do(b.ctx, k.key("a"), nop, processlock.Reentrant))
		k.returns(k.do(context.WithoutCancel(b.ctx), k.key("a"), returning(errCause), processlock.Reentrant), errCause)
		k.held(k.key("a"), k.key("b"))
	}},
	{"shared", reenter | shared, func(k *kit) {
		x := k.hold(k.key("a"))
		k.served(k.do(x.ctx, k.key("a"), nop, processlock.Reentrant, processlock.Shared))
		x.open()
		k.served(x)
		s := k.hold(k.key("a"), processlock.Shared)
		k.waits(k.start(k.ctx, k.key("a")))
		k.served(k.do(s.ctx, k.key("a"), nop, processlock.Reentrant, processlock.Shared))
		k.refused(k.start(s.ctx, k.key("a"), processlock.Reentrant), processlock.ErrDeadlock)
		k.refused(k.start(s.ctx, k.key("a"), processlock.Reentrant, processlock.IfAvailable), processlock.ErrUnavailable)
	}},
	{"outlives_the_hold", reenter, func(k *kit) {
		for _, err := range []error{nil, errCause} {
			a := k.hold(k.key("a"))
			inner := k.runs(k.startThen(a.ctx, k.key("a"), returning(err), processlock.Reentrant))
			a.open()
			k.served(a)
			k.free(k.key("a"))
			inner.open()
			if !k.closes(inner.over) || !errors.Is(inner.err, processlock.ErrLost) || err != nil && !errors.Is(inner.err, err) {
				k.fail("the hold ended before the inner fn, but the inner call %v", inner)
			}
		}
	}},
	{"all", reenter | all, func(k *kit) {
		b := k.hold(k.key("b"))
		c := k.runs(k.start(b.ctx, processlock.All(k.key("c"), k.key("b"), k.key("a")), processlock.Reentrant))
		k.held(k.key("a"), k.key("b"), k.key("c"))
		c.open()
		k.served(c)
		k.free(k.key("a"), k.key("c"))
		k.held(k.key("b"))
	}},
}}
