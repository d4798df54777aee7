package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
)

var ownRule = rule{30, "own_lineage", []check{
	{"exclusive", lineage, func(k *kit) {
		a := k.hold(k.key("a"))
		e := k.refused(k.start(a.ctx, k.key("a")), processlock.ErrDeadlock)
		k.names(e, k.key("a"))
		for _, word := range []string{"Reentrant", "Detach"} {
			if !strings.Contains(e.Error(), word) {
				k.fail("the error does not name the way out, %s: %v", word, e)
			}
		}
		k.cycleOf(e, k.key("a"))
		k.held(k.key("a"))
		a.open()
		k.served(a)
		k.free(k.key("a"))
	}},
	{"through_others", lineage, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.runs(k.start(a.ctx, k.key("b")))
		k.refused(k.start(context.WithValue(b.ctx, &errCause, 1), k.key("a")), processlock.ErrDeadlock)
		k.refused(k.start(b.ctx, k.key("b"), processlock.MaxWait(time.Hour)), processlock.ErrDeadlock)
	}},
	{"behind_others", lineage | certainty, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.waits(k.start(k.ctx, k.key("a")))
		k.refused(k.start(a.ctx, k.key("a")), processlock.ErrDeadlock)
		k.waits(b)
		a.open()
		k.runs(b)
	}},
	{"shared", lineage | shared, func(k *kit) {
		x := k.hold(k.key("x"))
		k.refused(k.start(x.ctx, k.key("x"), processlock.Shared), processlock.ErrDeadlock)
		s := k.hold(k.key("s"), processlock.Shared)
		k.served(k.do(s.ctx, k.key("s"), nop, processlock.Shared))
		k.refused(k.start(s.ctx, k.key("s")), processlock.ErrDeadlock)
	}},
	{"shared_behind_exclusive", lineage | shared | order, func(k *kit) {
		s := k.hold(k.key("s"), processlock.Shared)
		k.blocks(k.start(k.ctx, k.key("s")))
		k.refused(k.start(s.ctx, k.key("s"), processlock.Shared), processlock.ErrDeadlock)
	}},
}}

var cycleRule = rule{31, "cycle", []check{
	{"of_two", lineage | cycles, func(k *kit) { k.ring(2) }},
	{"of_four", lineage | cycles, func(k *kit) { k.ring(4) }},
	{"with_max_wait", lineage | cycles, func(k *kit) { k.ring(2, processlock.MaxWait(time.Hour)) }},
	{"with_a_shared_hold", lineage | cycles | shared, func(k *kit) {
		k.hold(k.key("0"), processlock.Shared) // not on the cycle, but holds it too
		a, b := k.hold(k.key("0"), processlock.Shared), k.hold(k.key("1"))
		x := k.start(a.ctx, k.key("1"))
		k.settle()
		y := k.start(b.ctx, k.key("0"))
		k.oneOf(x, y)
	}},
}}

// ring has n holders ask for each other's keys in a circle: one request is
// refused, and when its fn has returned the others go on.
func (k *kit) ring(n int, opts ...processlock.Option) {
	k.Helper()
	key := func(i int) string { return k.key(fmt.Sprint(i % n)) }
	wants := make([]*call, n)
	holders := make([]*call, n)
	for i := range n {
		holders[i] = k.hold(key(i))
	}
	for i := range n {
		wants[i] = k.start(holders[i].ctx, key(i+1), opts...).open()
		if i < n-1 {
			k.waits(wants[i])
		}
	}
	refused := k.oneOf(wants...)
	keys := make([]any, n)
	for i := range n {
		keys[i] = key(refused + 1 + i)
	}
	k.cycleOf(wants[refused].err.(*processlock.AcquireError), keys...)
	for i := range n {
		at := (refused + n - i) % n // its key is wanted by the one before it
		if i > 0 {
			k.served(wants[at])
		}
		holders[at].open()
		k.served(holders[at])
	}
}

// oneOf waits until one of the calls is refused for a deadlock and returns which.
// On real time, where requests may meet, only that one is refused is certain.
func (k *kit) oneOf(calls ...*call) int {
	k.Helper()
	refused := -1
	end := time.Now().Add(k.opts.CycleWithin)
	if k.opts.RealTime {
		end = end.Add(k.patience())
	}
	for {
		k.settle()
		n := 0
		for i, c := range calls {
			if c.isOver() {
				refused = i
				n++
			}
		}
		switch {
		case n > 1:
			k.fatal("%d requests of a cycle are over, not one", n)
		case n == 1:
			k.refused(calls[refused], processlock.ErrDeadlock)
			return refused
		case !time.Now().Before(end):
			k.fatal("a cycle of waits was not found")
		}
		<-time.After(max(time.Millisecond, k.opts.CycleWithin/10))
	}
}

// cycleOf fails the check unless e lists a cycle of keys.
func (k *kit) cycleOf(e *processlock.AcquireError, keys ...any) {
	k.Helper()
	var d *processlock.DeadlockError
	if !errors.As(e, &d) {
		k.fatal("there is no *DeadlockError in %v", e)
	}
	if len(d.Cycle) != len(keys) {
		k.fatal("a cycle of %d keys is listed with %d: %v", len(keys), len(d.Cycle), e)
	}
	for i, key := range keys {
		if want, err := processlock.KeyOf(key); err != nil || d.Cycle[i].Key.Canonical() != want.Canonical() {
			k.fail("step %d of the cycle is about key %v, not %v", i, d.Cycle[i].Key, want)
		}
	}
}

var alarmRule = rule{32, "no_false_alarm", []check{
	{"same_order", 0, func(k *kit) {
		names := []string{k.key("a"), k.key("b"), k.key("c"), k.key("d")}
		k.parallel(8, func(i int) {
			for turn := range 10 {
				from := (i + turn) % 3
				err := k.l.WithLock(k.ctx, names[from], func(ctx context.Context) error {
					runtime.Gosched()
					return k.l.WithLock(ctx, names[from+1], func(ctx context.Context) error {
						runtime.Gosched()
						if from+1 == 3 {
							return nil
						}
						return k.l.WithLock(ctx, names[3], nop)
					})
				})
				if err != nil {
					k.fail("callers that all nest in the same order got %v", err)
					return
				}
			}
		})
	}},
	{"chain", 0, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.hold(k.key("b"))
		c := k.hold(k.key("c"))
		b2 := k.waits(k.start(b.ctx, k.key("a")))
		c2 := k.waits(k.start(c.ctx, k.key("b")))
		a.open()
		k.runs(b2).open()
		k.served(b2)
		k.waits(c2)
		b.open()
		k.runs(c2)
	}},
	{"detached", lineage | detach, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.waits(k.start(processlock.Detach(a.ctx), k.key("a")))
		a.open()
		k.served(a)
		k.runs(b)
	}},
	{"without_the_fns_context", 0, func(k *kit) {
		a := k.hold(k.key("a"))
		b := k.waits(k.start(k.ctx, k.key("a")))
		a.open()
		k.runs(b)
	}},
	{"a_done_wait_does_not_count", lineage, func(k *kit) {
		ctx, cancel := context.WithCancel(k.ctx)
		a, b := k.hold(k.key("a")), k.runs(k.start(ctx, k.key("b")))
		b2 := k.waits(k.start(b.ctx, k.key("a")))
		cancel()
		k.refused(b2, context.Canceled)
		a2 := k.waits(k.start(a.ctx, k.key("b")))
		b.open()
		k.runs(a2)
	}},
}}
