package locktest

import (
	"context"
	"slices"
	"sync"

	"github.com/dbx-tools/processlock"
)

var orderRule = rule{3, "order", []check{
	{"first_come_first_served", order | certainty, func(k *kit) {
		turns := new(guarded[int])
		var calls []*call
		a := k.hold(k.key("a"))
		for i := range 12 {
			calls = append(calls, k.waits(k.startThen(k.ctx, k.key("a"), func(context.Context) error {
				turns.add(i)
				return nil
			}).open()))
		}
		a.open()
		for _, c := range append(calls, a) {
			k.served(c)
		}
		if got := turns.all(); !slices.IsSorted(got) {
			k.fail("requests were granted in the order %v", got)
		}
	}},
	{"handed_over_at_release", order | certainty, func(k *kit) { k.repeat(func() { k.handOver() }) }},
	// Behind a shared holder it can be told on real time too that the first
	// exclusive request waits.
	{"handed_over_at_shared_release", order | shared, func(k *kit) { k.repeat(func() { k.handOver(processlock.Shared) }) }},
	{"releaser_queues_again", order | certainty, func(k *kit) { k.repeat(k.queueAgain) }},
}}

// repeat runs one try of a race again and again.
func (k *kit) repeat(try func()) {
	for range k.rounds() / 5 {
		try()
	}
}

// handOver has a holder release, behind which a request waits, and try to get in
// between at once.
func (k *kit) handOver(opts ...processlock.Option) {
	k.Helper()
	key := k.key("a")
	var try error
	driver, leave := k.releaser(key, func() error {
		try = k.l.WithLock(k.ctx, key, nop, processlock.IfAvailable)
		return nil
	}, opts...)
	defer leave()
	b := k.start(k.ctx, key)
	if k.opts.missing(certainty) == "" {
		k.waits(b)
	} else {
		k.blocks(b)
	}
	leave()
	k.runs(b)
	k.served(driver)
	if !unavailable(try) {
		k.fatal("a try right after the release returned %v, though another request waited", try)
	}
	b.open()
	k.served(b)
}

// queueAgain has a holder release, behind which a request waits, and ask for the
// key again at once.
func (k *kit) queueAgain() {
	k.Helper()
	key, turns := k.key("a"), new(guarded[string])
	turn := func(name string) lockFn {
		return func(context.Context) error { turns.add(name); return nil }
	}
	driver, leave := k.releaser(key, func() error { return k.l.WithLock(k.ctx, key, turn("releaser")) })
	defer leave()
	b := k.waits(k.startThen(k.ctx, key, turn("waiter")).open())
	leave()
	k.served(b)
	k.served(driver)
	if got := turns.all(); !slices.Equal(got, []string{"waiter", "releaser"}) {
		k.fatal("granted in the order %v: the releaser got in before who waited", got)
	}
}

// releaser makes a call that holds key until leave is called. Right after the
// release, and on the same goroutine, it goes on with next.
func (k *kit) releaser(key any, next func() error, opts ...processlock.Option) (driver *call, leave func()) {
	k.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	leave = sync.OnceFunc(func() { close(gate) })
	driver = k.startThen(k.ctx, k.key("driver"), func(context.Context) error {
		err := k.l.WithLock(k.ctx, key, func(context.Context) error { close(entered); <-gate; return nil }, opts...)
		if err != nil {
			return err
		}
		return next()
	}).open()
	if !k.closes(entered) {
		leave()
		k.fatal("the first call %v", driver)
	}
	return driver, leave
}

var sharedRule = rule{4, "shared", []check{
	{"together", shared, func(k *kit) {
		for range 5 {
			k.hold(k.key("a"), processlock.Shared)
		}
		k.held(k.key("a"))
		for _, c := range k.made() {
			c.open()
			if c.hasEntered() {
				k.served(c)
			}
		}
		k.free(k.key("a"))
	}},
	{"exclusive_waits_for_all", shared, func(k *kit) {
		a, b := k.hold(k.key("a"), processlock.Shared), k.hold(k.key("a"), processlock.Shared)
		x := k.waits(k.start(k.ctx, k.key("a")))
		a.open()
		k.served(a)
		k.waits(x)
		k.held(k.key("a"))
		b.open()
		k.served(b)
		k.runs(x)
	}},
	{"exclusive_keeps_shared_out", shared, func(k *kit) {
		x := k.hold(k.key("a"))
		s := k.waits(k.start(k.ctx, k.key("a"), processlock.Shared))
		if err := k.try(k.key("a"), processlock.Shared); !unavailable(err) {
			k.fail("a shared try on a key that is held returned %v", err)
		}
		x.open()
		k.runs(s)
	}},
	{"neighbours_together", shared | certainty | order, func(k *kit) {
		x := k.hold(k.key("a"))
		s1 := k.waits(k.start(k.ctx, k.key("a"), processlock.Shared))
		s2 := k.waits(k.start(k.ctx, k.key("a"), processlock.Shared))
		x2 := k.waits(k.start(k.ctx, k.key("a")))
		s3 := k.waits(k.start(k.ctx, k.key("a"), processlock.Shared))
		x.open()
		k.runs(s1)
		k.runs(s2)
		k.waits(x2)
		k.waits(s3)
		s1.open()
		k.served(s1)
		k.waits(x2)
		k.waits(s3)
		s2.open()
		k.runs(x2)
		k.waits(s3)
		x2.open()
		k.runs(s3)
	}},
	{"no_passing", shared | order, func(k *kit) {
		s1 := k.hold(k.key("a"), processlock.Shared)
		x := k.blocks(k.start(k.ctx, k.key("a")))
		s2 := k.waits(k.start(k.ctx, k.key("a"), processlock.Shared))
		s1.open()
		k.runs(x)
		k.waits(s2)
		x.open()
		k.runs(s2)
	}},
}}

var leavingRule = rule{5, "leaving", []check{
	{"cancel_keeps_the_order", order | certainty, func(k *kit) {
		leave, cancel := context.WithCancel(k.ctx)
		defer cancel()
		k.leaver(leave, cancel)
	}},
	{"max_wait_keeps_the_order", order | bubble, func(k *kit) {
		k.leaver(k.ctx, func() {}, processlock.MaxWait(k.timeout()))
	}},
	{"next_in_at_once", order | shared, func(k *kit) {
		ctx, cancel := context.WithCancel(k.ctx)
		defer cancel()
		k.hold(k.key("a"), processlock.Shared)
		x := k.blocks(k.start(ctx, k.key("a")))
		s := k.waits(k.start(k.ctx, k.key("a"), processlock.Shared))
		cancel()
		k.refused(x, context.Canceled)
		k.runs(s)
	}},
	{"next_in_after_max_wait", order | shared | bubble, func(k *kit) {
		k.hold(k.key("a"), processlock.Shared)
		x := k.waits(k.start(k.ctx, k.key("a"), processlock.MaxWait(k.timeout())))
		s := k.waits(k.start(k.ctx, k.key("a"), processlock.Shared))
		k.closesWithin(x.over, k.patience())
		k.refused(x, processlock.ErrWaitTimeout)
		k.runs(s)
	}},
	{"no_wake_up_is_lost", 0, func(k *kit) { k.race(false) }},
	{"no_wake_up_is_lost_to_a_dead_context", 0, func(k *kit) { k.race(true) }},
}}

// leaver has the second and the fourth of five waiters leave.
func (k *kit) leaver(ctx context.Context, leave func(), opts ...processlock.Option) {
	turns := new(guarded[int])
	a := k.hold(k.key("a"))
	var calls []*call
	for i := range 5 {
		c, o := k.ctx, []processlock.Option(nil)
		if i%2 == 1 {
			c, o = ctx, opts
		}
		call := k.startThen(c, k.key("a"), func(context.Context) error { turns.add(i); return nil }, o...).open()
		calls = append(calls, call)
		k.waits(call)
	}
	leave()
	for _, i := range []int{1, 3} {
		k.closesWithin(calls[i].over, k.patience())
		k.refused(calls[i])
	}
	for _, i := range []int{0, 2, 4} {
		k.waits(calls[i])
	}
	a.open()
	for _, i := range []int{0, 2, 4} {
		k.served(calls[i])
	}
	if got := turns.all(); !slices.Equal(got, []int{0, 2, 4}) {
		k.fail("when 1 and 3 had left, the others were granted in the order %v", got)
	}
}

// race has the end of a waiter's context meet the release, again and again. The
// next in the queue must be served whatever comes first. If dead, the context
// ends before the release for certain.
func (k *kit) race(dead bool) {
	for range k.rounds() {
		ctx, cancel := context.WithCancel(k.ctx)
		a := k.startThen(k.ctx, k.key("a"), func(context.Context) error {
			if dead {
				cancel()
			}
			return nil
		})
		k.runs(a)
		b := k.waits(k.start(ctx, k.key("a")).open())
		c := k.waits(k.start(k.ctx, k.key("a")).open())
		if !dead {
			go cancel()
		}
		a.open()
		k.served(a)
		k.served(c)
		if !k.closes(b.over) {
			k.fatal("a call whose context ended when it was its turn %v", b)
		}
		cancel()
	}
	k.free(k.key("a"))
}
