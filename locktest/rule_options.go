package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/dbx-tools/processlock"
)

var tryRule = rule{19, "if_available", []check{
	{"free", 0, func(k *kit) {
		for range 3 {
			k.served(k.do(k.ctx, k.key("a"), nop, processlock.IfAvailable))
		}
		a := k.hold(k.key("a"), processlock.IfAvailable)
		k.held(k.key("a"))
		a.open()
		k.served(a)
	}},
	{"held", 0, func(k *kit) {
		a := k.hold(k.key("a"))
		c := k.start(k.ctx, k.key("a"), processlock.IfAvailable)
		k.refused(c, processlock.ErrUnavailable)
		if errors.Is(c.err, processlock.ErrWaitTimeout) || errors.Is(c.err, processlock.ErrQueueFull) {
			k.fail("a failed try is ErrUnavailable alone: %v", c.err)
		}
		k.served(k.do(k.ctx, k.key("b"), nop, processlock.IfAvailable))
		a.open()
		k.served(a)
	}},
	{"within_fn", 0, func(k *kit) {
		k.served(k.do(k.ctx, k.key("a"), func(ctx context.Context) error {
			if err := k.l.WithLock(ctx, k.key("b"), nop, processlock.IfAvailable); err != nil {
				k.fail("a try on another key returned %v", err)
			}
			if err := k.l.WithLock(ctx, k.key("a"), nop, processlock.IfAvailable); !unavailable(err) {
				k.fail("a try on the key that is held returned %v", err)
			}
			return nil
		}))
	}},
	{"held_shared", shared, func(k *kit) {
		k.hold(k.key("a"), processlock.Shared)
		k.held(k.key("a"))
		k.served(k.do(k.ctx, k.key("a"), nop, processlock.Shared, processlock.IfAvailable))
	}},
	{"queue_in_front", shared | order, func(k *kit) {
		k.hold(k.key("a"), processlock.Shared)
		k.blocks(k.start(k.ctx, k.key("a")))
		if err := k.try(k.key("a"), processlock.Shared); !unavailable(err) {
			k.fail("a shared try behind an exclusive request that waits returned %v", err)
		}
	}},
	{"leaves_no_trace", 0, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.waits(k.start(k.ctx, k.key("a")).open())
		for range 20 {
			k.held(k.key("a"))
		}
		a.open()
		k.served(b)
		k.free(k.key("a"))
	}},
}}

var maxWaitRule = rule{20, "max_wait", []check{
	{"ends_the_wait", 0, func(k *kit) {
		a := k.hold(k.key("a"))
		start := time.Now()
		c := k.start(k.ctx, k.key("a"), processlock.MaxWait(k.timeout()))
		k.timesOut(c, start, k.timeout())
		a.open()
		k.served(a)
		k.free(k.key("a"))
	}},
	{"shared_too", shared, func(k *kit) {
		k.hold(k.key("a"))
		start := time.Now()
		k.timesOut(k.start(k.ctx, k.key("a"), processlock.Shared, processlock.MaxWait(k.timeout())), start, k.timeout())
	}},
	{"the_shortest_counts", 0, func(k *kit) {
		k.hold(k.key("a"))
		start := time.Now()
		k.timesOut(k.start(k.ctx, k.key("a"),
			processlock.MaxWait(time.Hour), processlock.MaxWait(k.timeout()), processlock.MaxWait(2*time.Hour)), start, k.timeout())
	}},
	{"not_positive_is_if_available", 0, func(k *kit) {
		for _, d := range []time.Duration{0, -1, -time.Hour} {
			k.served(k.do(k.ctx, k.key("a"), nop, processlock.MaxWait(d)))
			a := k.hold(k.key("a"))
			c := k.start(k.ctx, k.key("a"), processlock.MaxWait(d), processlock.MaxWait(time.Hour))
			k.refused(c, processlock.ErrUnavailable)
			if errors.Is(c.err, processlock.ErrWaitTimeout) {
				k.fail("MaxWait(%v) is IfAvailable and no timeout: %v", d, c.err)
			}
			a.open()
			k.served(a)
		}
	}},
	{"granted_in_time", 0, func(k *kit) {
		k.served(k.do(k.ctx, k.key("a"), nop, processlock.MaxWait(time.Hour)))
		a := k.hold(k.key("a"))
		b := k.waits(k.start(k.ctx, k.key("a"), processlock.MaxWait(time.Hour)))
		a.open()
		k.runs(b).open()
		k.served(b)
	}},
	// In a bubble, where time is exact, the shortest is enough for a free key.
	{"free_key_needs_no_time", bubble, func(k *kit) {
		k.served(k.do(k.ctx, k.key("a"), nop, processlock.MaxWait(1)))
	}},
	{"does_not_bound_fn", 0, func(k *kit) {
		a, limit := k.runsUnderMaxWait(k.key("a"))
		<-time.After(2 * limit)
		k.runs(a)
		k.held(k.key("a"))
		if a.ctx.Err() != nil {
			k.fail("fn's context ended: %v", a.ctx.Err())
		}
		a.open()
		k.served(a)
	}},
	// Which of the two comes first can't be arranged.
	{"meets_the_grant", bubble, func(k *kit) {
		for range k.rounds() / 5 {
			a := k.startThen(k.ctx, k.key("a"), func(context.Context) error { time.Sleep(k.timeout()); return nil }).open()
			k.runs(a)
			b := k.waits(k.start(k.ctx, k.key("a"), processlock.MaxWait(k.timeout())).open())
			k.closesWithin(a.over, k.patience())
			if !k.closes(b.over) || (b.runs.Load() == 1) != (b.err == nil) {
				k.fatal("the call %v", b)
			}
			if b.err != nil {
				k.refused(b, processlock.ErrWaitTimeout)
			}
			k.free(k.key("a"))
		}
	}},
	{"bounds_all_waits_together", all | bubble, func(k *kit) {
		a, b := k.hold(k.key("a")), k.hold(k.key("b"))
		start := time.Now()
		c := k.waits(k.start(k.ctx, processlock.All(k.key("a"), k.key("b")), processlock.MaxWait(k.timeout())))
		<-time.After(k.timeout() / 2)
		a.open()
		k.waits(c)
		k.names(k.timesOut(c, start, k.timeout()), k.key("b"))
		k.free(k.key("a"))
		b.open()
	}},
}}

// timesOut waits for the end of c, after d.
func (k *kit) timesOut(c *call, start time.Time, d time.Duration) *processlock.AcquireError {
	k.Helper()
	if !k.closesWithin(c.over, d+k.patience()) {
		k.fatal("MaxWait(%v) ran out %v ago, but the call %v", d, time.Since(start)-d, c)
	}
	took := time.Since(start)
	e := k.refused(c, processlock.ErrWaitTimeout, processlock.ErrUnavailable)
	if took < d || !k.opts.RealTime && took > d {
		k.fail("MaxWait(%v) ended the wait after %v", d, took)
	}
	if !e.Timeout() {
		k.fail("AcquireError.Timeout is false for MaxWait")
	}
	return e
}

// runsUnderMaxWait makes a call with a free key and a MaxWait, which on real time
// may have to be longer than the usual for the key to be had within it.
func (k *kit) runsUnderMaxWait(key any) (*call, time.Duration) {
	k.Helper()
	for limit := k.timeout(); ; limit *= 2 {
		c := k.start(k.ctx, key, processlock.MaxWait(limit))
		k.until(func() bool { return !c.pending() })
		if c.hasEntered() || !k.opts.RealTime || limit > k.patience() {
			return k.runs(c), limit
		}
		k.refused(c, processlock.ErrWaitTimeout)
	}
}
