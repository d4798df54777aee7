package locktest

import (
	"context"
	"time"

	"github.com/dbx-tools/processlock"
)

var allRule = rule{23, "all", []check{
	{"holds_each", all, func(k *kit) {
		a := k.hold(processlock.All(k.key("b"), k.key("a"), k.key("c")))
		k.held(k.key("a"), k.key("b"), k.key("c"))
		k.held(processlock.All(k.key("c"), k.key("d")))
		k.free(k.key("d"))
		a.open()
		k.served(a)
		k.free(k.key("a"), k.key("b"), k.key("c"))
	}},
	{"each_once", all, func(k *kit) {
		seven := 7
		a := k.hold(processlock.All(k.key("a"), []any{k.key("b"), 7}, k.key("a"), []any{k.key("a")}, []any{k.key("b"), &seven}))
		k.held(k.key("a"))
		a.open()
		k.served(a)
		k.free(k.key("a"), []any{k.key("b"), 7})
	}},
	{"of_none", all, func(k *kit) {
		k.served(k.do(k.ctx, processlock.All(), nop))
		k.served(k.do(k.ctx, processlock.Keys{}, nop, processlock.IfAvailable))
		k.returns(k.do(k.ctx, processlock.All(), returning(errCause)), errCause)
	}},
	{"of_all", all, func(k *kit) {
		a := k.hold(processlock.All(k.key("c"), processlock.All(k.key("a"), processlock.All(k.key("b")))))
		k.held(k.key("a"), k.key("b"), k.key("c"))
		a.open()
		k.served(a)
	}},
	{"shared", all | shared, func(k *kit) {
		k.hold(processlock.All(k.key("a"), k.key("b")), processlock.Shared)
		k.hold(k.key("b"), processlock.Shared)
		k.held(k.key("a"), k.key("b"))
	}},
	{"canonical_order", all | order | certainty, func(k *kit) {
		b := k.hold(k.key("b"))
		c := k.waitsFor(k.start(k.ctx, processlock.All(k.key("c"), k.key("b"), k.key("a"))), k.key("b"))
		k.held(k.key("a")) // what it has taken so far keeps others out
		k.free(k.key("c"))
		b.open()
		k.runs(c)
		k.held(k.key("c"))
	}},
	{"keeps_its_place", all | order | certainty, func(k *kit) {
		b := k.hold(k.key("b"))
		both := k.waitsFor(k.start(k.ctx, processlock.All(k.key("a"), k.key("b"))), k.key("b"))
		later := k.waits(k.start(k.ctx, k.key("b")))
		b.open()
		k.runs(both)
		k.waits(later)
		both.open()
		k.runs(later)
	}},
	{"a_try_waits_for_nothing", all, func(k *kit) {
		b := k.hold(k.key("b"))
		keys := processlock.All(k.key("c"), k.key("a"), k.key("b"))
		k.names(k.refused(k.start(k.ctx, keys, processlock.IfAvailable), processlock.ErrUnavailable), k.key("b"))
		k.free(k.key("a"), k.key("c"))
		b.open()
		k.served(b)
		k.free(k.key("b"))
	}},
	{"nothing_stays_after_cancel", all, func(k *kit) {
		ctx, cancel := context.WithCancel(k.ctx)
		k.partial(ctx, cancel, context.Canceled)
	}},
	{"nothing_stays_after_max_wait", all, func(k *kit) {
		k.partial(k.ctx, func() {}, processlock.ErrWaitTimeout, processlock.MaxWait(k.timeout()))
	}},
	{"nothing_stays_after_deadlock", all | lineage, func(k *kit) {
		b := k.hold(k.key("b"))
		keys := processlock.All(k.key("a"), k.key("b"), k.key("c"))
		k.names(k.refused(k.start(b.ctx, keys), processlock.ErrDeadlock), k.key("b"))
		k.free(k.key("a"), k.key("c"))
	}},
	{"never_deadlock", all, func(k *kit) {
		var in [3]inside
		names := []string{k.key("a"), k.key("b"), k.key("c")}
		k.parallel(6, func(i int) {
			for range 20 {
				first, second := i%3, (i+1+i/3)%3
				err := k.l.WithLock(k.ctx, processlock.All(names[first], names[second]), func(context.Context) error {
					defer in[first].enter(false)()
					defer in[second].enter(false)()
					return nil
				})
				if err != nil {
					k.fail("a caller got %v", err)
					return
				}
			}
		})
		for i := range in {
			if in[i].broken.Load() {
				k.fail("a holder was not alone")
			}
		}
		k.free(names[0], names[1], names[2])
	}},
	// Whoever gets the first key, because it was released, must find the second
	// free: it was released before.
	{"released_in_reverse", all | order, func(k *kit) {
		for range k.rounds() {
			both := k.hold(processlock.All(k.key("a"), k.key("b")))
			var second error
			a := k.startThen(k.ctx, k.key("a"), func(ctx context.Context) error {
				second = k.l.WithLock(ctx, k.key("b"), nop, processlock.IfAvailable)
				return nil
			}).open()
			k.waits(a)
			both.open()
			k.served(both)
			k.served(a)
			if second != nil {
				k.fatal("the first key was released before the second: %v", second)
			}
		}
	}},
}}

// partial ends the wait of a request that has one of its keys.
func (k *kit) partial(ctx context.Context, end func(), want error, opts ...processlock.Option) {
	k.Helper()
	b := k.hold(k.key("b"))
	c := k.start(ctx, processlock.All(k.key("c"), k.key("b"), k.key("a")), opts...)
	if len(opts) == 0 {
		k.until(func() bool { return !c.pending() || k.try(k.key("a")) != nil }) // it has the first
		k.waitsFor(c, k.key("b"))
	}
	end()
	if !k.closesWithin(c.over, 2*time.Minute) {
		k.fatal("the call %v", c)
	}
	e := k.refused(c, want)
	// A locker that asks a server may show the first key as taken while it still
	// asks for it, so that on real time the request must be seen to wait.
	if !k.opts.RealTime || len(opts) == 0 && k.opts.Waiters != nil {
		k.names(e, k.key("b"))
	}
	k.free(k.key("a"), k.key("c"))
	b.open()
	k.served(b)
	k.free(k.key("b"))
}
