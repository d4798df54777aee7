package proof

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
)

// maxCalls keeps programs small enough for a model that is slow.
const maxCalls = 24

// do makes one step of a program, with the library and in the model.
func (d *driver) do(o op) {
	switch o.kind {
	case opRoot:
		d.call(-1, o)
	case opNested:
		if from := d.choose(o.target, func(x *liveCall) bool { return x.running.Load() && !x.told && !d.limited(x) }); from >= 0 {
			d.call(from, o)
		}
	case opKept:
		if from := d.choose(o.target, func(x *liveCall) bool { return x.ran.Load() && !d.limited(x) }); from >= 0 {
			d.call(from, o)
		}
	case opReturn:
		d.tell(d.choose(o.target, func(x *liveCall) bool { return x.running.Load() && !x.told && !d.busy(x) }), o.outcome)
	case opLeave:
		d.tell(d.choose(o.target, func(x *liveCall) bool { return x.running.Load() && !x.told }), o.outcome)
	case opOutlive:
		d.outlive(o)
	case opCancel, opCause:
		if d.cut || o.quiet {
			d.rest()
		}
		d.cancel(o)
	case opClose:
		d.rest()
		if i := d.chooseClient(o.target); i >= 0 {
			d.note("close client %d", i)
			d.apply(func(s *state) {
				s.closed[i] = true
				d.end(s, d.clientAt[i], isCanceled|isClosed)
			})
			d.clients[i].Close()
		}
	case opGroup:
		d.newGroup(o)
	case opTask:
		d.newTask(o)
	case opWait:
		if len(d.groups) > 0 {
			d.wait(o.target % len(d.groups))
		}
	case opTick:
		d.rest()
		d.note("tick")
		d.world.now++
		d.apply(func(*state) {})
		time.Sleep(tick)
	case opShutdown:
		d.rest()
		d.shutdown(o)
	}
	if o.kind == opTick || o.kind == opShutdown {
		d.rest()
	}
}

// choose returns a call that qualifies, or -1. What is told apart by it must
// not move meanwhile.
func (d *driver) choose(n int, qualifies func(x *liveCall) bool) int {
	if d.pending {
		synctest.Wait()
	}
	var some []int
	for i, x := range d.calls {
		if qualifies(x) {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return -1
	}
	return some[n%len(some)]
}

// busy reports whether a call waits or runs that was made in x's fn.
func (d *driver) busy(x *liveCall) bool {
	for i, a := range d.world.asks {
		for _, above := range a.above {
			if d.calls[above] == x && !d.calls[i].over.Load() {
				return true
			}
		}
	}
	return false
}

func (d *driver) tell(i int, how outcome) {
	if i < 0 || d.calls[i].told {
		return
	}
	if d.calls[i].task && how == panics { // that would end the process
		how = exits
	}
	d.note("call %d ends: %v", i, [...]string{"", "nil", "error", "panic", "exit"}[how])
	d.calls[i].tell(how)
	d.apply(func(s *state) { s.calls[i].told = how })
}

func (d *driver) cancel(o op) {
	// Without a rest before it, a cancel may meet a grant.
	var some []int
	for i := range d.calls {
		if (i >= len(d.ended) || !d.ended[i]) && (o.target%4 == 0 || !d.calls[i].told) {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return
	}
	i := some[o.target%len(some)]
	d.cut = true
	d.note("%s call %d", o.kind, i)
	why, cause := isCanceled, error(nil)
	if o.kind == opCause {
		why, cause = isCanceled|isCause, errCause
	}
	at := d.world.asks[i].context
	if d.world.asks[i].task != nil {
		at = d.world.contexts[at].parent
	}
	d.apply(func(s *state) {
		// An end that comes from above was there in full when cancel came.
		if !d.world.endsSoon(s, at) {
			s.cut[at] = why
		}
	})
	d.cancels[at](cause)
}

// end ends a context; those derived from it follow by themselves.
func (d *driver) end(s *state, context int, why reason) {
	if s.ends[context] == 0 {
		s.ends[context] = why
	}
}

// call starts a call from the fn of call from, or without lineage (-1).
func (d *driver) call(from int, o op) {
	if len(d.calls) >= maxCalls {
		return
	}
	ctx, parent, how := context.Background(), -1, "without lineage"
	on := o.coordinator % len(d.cs)
	a := ask{shared: o.shared, try: o.try, reentrant: o.reentrant, maxWait: o.maxWait}
	inner := slices.Repeat([]int{-1}, len(d.cs))
	if i := d.chooseClient(o.target); from < 0 && o.fellow && i >= 0 {
		ctx, parent, inner = d.clientIn[i].ctx, d.clientAt[i], slices.Clone(d.clientIn[i].inner)
		a.above = d.clientIn[i].above
		how += fmt.Sprint(", with client ", i)
		if o.detour >= 8 {
			ctx, parent = context.WithoutCancel(ctx), -1
			how += ", WithoutCancel"
		}
	}
	if from >= 0 {
		ctx, parent, how = d.calls[from].ctx, d.world.contextOf(from), fmt.Sprint("in fn of ", from)
		a.above = append([]int{from}, d.world.asks[from].above...)
		inner = slices.Clone(d.inner[from])
		switch o.detour {
		case 8:
			ctx, a.above = processlock.Detach(ctx), nil
			how += ", detached"
		case 9:
			ctx, parent = context.WithoutCancel(ctx), -1
			how += ", WithoutCancel"
		}
	}
	if o.client > 0 {
		at := (o.client - 1) % len(d.cs)
		var c *processlock.Client
		ctx, c = d.cs[at].WithClient(ctx, clientName(len(d.clients)))
		parent = d.context(parent, 0, func(error) {})
		inner[at] = len(d.clients)
		how += fmt.Sprintf(", with new client %d of coordinator %d", len(d.clients), at)
		d.client(c, clientName(len(d.clients)), at, parent, fellow{ctx, slices.Clone(inner), a.above})
	}
	ctx, a.context = d.derive(ctx, parent, o.deadline)
	a.client = inner[on]
	key := d.name(&a, on, o.keys)
	opts := a.options()
	d.note("call %d %s wants %v of coordinator %d, shared=%t try=%t reentrant=%t maxWait=%d deadline=%d",
		len(d.calls), how, a.keys, on, a.shared, a.try, a.reentrant, a.maxWait, o.deadline)
	d.world.asks, d.inner = append(d.world.asks, a), append(d.inner, inner)
	x := &liveCall{}
	d.calls = append(d.calls, x)
	d.apply(func(s *state) { s.calls = append(s.calls, call{phase: asking}) })
	x.start(ctx, d.cs[on], key, opts)
}

// options are what the library is given for an ask.
func (a ask) options() (opts []processlock.Option) {
	if a.shared {
		opts = append(opts, processlock.Shared)
	}
	if a.try {
		opts = append(opts, processlock.IfAvailable)
	}
	if a.reentrant {
		opts = append(opts, processlock.Reentrant)
	}
	if a.maxWait > 0 {
		opts = append(opts, processlock.MaxWait(time.Duration(a.maxWait)*tick))
	}
	return opts
}

// client enters a client into the world; c is nil for one that nobody closes.
func (d *driver) client(c *processlock.Client, name string, coordinator, context int, in fellow) {
	d.clients, d.clientAt, d.clientIn = append(d.clients, c), append(d.clientAt, context), append(d.clientIn, in)
	d.world.clients, d.world.names = append(d.world.clients, coordinator), append(d.world.names, name)
	d.apply(func(s *state) { s.closed = append(s.closed, false) })
}

// chooseClient returns one that may be closed, or -1.
func (d *driver) chooseClient(n int) int {
	var some []int
	for i, c := range d.clients {
		if c != nil {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return -1
	}
	return some[n%len(some)]
}

// derive returns a context that ends when the program says so.
func (d *driver) derive(ctx context.Context, parent, ticks int) (context.Context, int) {
	if ticks > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(ticks)*tick)
		parent = d.context(parent, d.world.now+ticks, func(error) { stop() })
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, d.context(parent, 0, cancel)
}

// name fills in the keys of an ask, and returns what WithLock is to be given.
func (d *driver) name(a *ask, on int, keys []int) any {
	var names []any
	for _, k := range keys {
		names = append(names, keyName(k%d.world.keys))
		a.keys = append(a.keys, on*d.world.keys+k%d.world.keys)
	}
	slices.Sort(a.keys)
	a.keys = slices.Compact(a.keys)
	if len(names) == 1 {
		return names[0]
	}
	return processlock.All(names...)
}

// shutdown starts a call of Shutdown, sometimes with an fn's context.
func (d *driver) shutdown(o op) {
	ctx, parent := context.Background(), -1
	a := shutAsk{coordinator: o.coordinator % len(d.cs)}
	if from := d.choose(o.target, func(x *liveCall) bool { return x.running.Load() && !d.limited(x) }); o.detour == 0 && from >= 0 {
		ctx, parent = d.calls[from].ctx, d.world.contextOf(from)
		a.above = append([]int{from}, d.world.asks[from].above...)
	}
	ctx, a.context = d.derive(ctx, parent, o.deadline)
	d.note("shutdown %d of coordinator %d, above=%v deadline=%d", len(d.shuts), a.coordinator, a.above, o.deadline)
	d.world.shuts = append(d.world.shuts, a)
	d.apply(func(s *state) {
		d.world.shutDown(s, a.coordinator)
		s.shuts = append(s.shuts, shut{})
	})
	x := &liveShut{}
	d.shuts = append(d.shuts, x)
	x.start(ctx, d.cs[a.coordinator])
}
