package processlock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// dtOp is a step of a random program. Its numbers are taken modulo what there
// is to choose from at that moment, so that a program from which steps were
// struck out is still a program.
type dtOp struct {
	kind  byte
	quiet bool // let everybody come to rest before the next step
	n     [6]uint16
}

const (
	dtOpRoot   = iota // a call without lineage
	dtOpNested        // a call in somebody's fn
	dtOpKept          // a call with the context of an fn that may have returned
	dtOpReturn        // an fn returns that waits for nobody
	dtOpLeave         // an fn returns, whoever is under it
	dtOpCancel
	dtOpClose
	dtOpTick
	dtOps
)

// dtTick is what a step of MaxWait is.
const dtTick = time.Millisecond

// dtDirector executes a program in a bubble, and keeps the model beside it.
type dtDirector struct {
	scene  *dtScene
	cs     []*Coordinator
	keys   int // of each coordinator
	world  dtWorld
	states []dtState // what the model takes for possible; nil: it has given up

	clients  []*Client
	clientAt []int   // the context of each
	inner    [][]int // by call and coordinator: innermost client, or -1
	cancels  []context.CancelFunc

	pending bool // something was started since everybody was at rest
	trace   []string
	failure string
	counts  map[dtResult]int
}

// dtExecute runs a program and reports what went wrong.
func dtExecute(t *testing.T, program []dtOp) *dtDirector {
	d := &dtDirector{counts: make(map[dtResult]int)}
	synctest.Test(t, func(t *testing.T) {
		var size [4]uint16
		if len(program) > 0 {
			copy(size[:], program[0].n[:])
		}
		d.scene = &dtScene{T: t}
		d.keys = 2 + int(size[0])%4
		opts := Options{MaxWaiters: []int{0, 0, 0, 2}[size[1]%4]}
		d.world.maxWaiters = opts.MaxWaiters
		for range 1 + int(size[2])%2 {
			d.cs = append(d.cs, New(opts))
		}
		d.note("%d coordinators, %d keys each, MaxWaiters=%d", len(d.cs), d.keys, opts.MaxWaiters)
		d.states = []dtState{{keys: make([]dtKeyState, len(d.cs)*d.keys)}}

		for _, op := range program {
			if d.do(op); op.quiet {
				d.rest()
			}
			if d.failure != "" {
				break
			}
		}
		d.finish()
	})
	return d
}

func (d *dtDirector) note(format string, args ...any) {
	d.trace = append(d.trace, fmt.Sprintf(format, args...))
}

func (d *dtDirector) fail(format string, args ...any) {
	if d.failure == "" {
		d.failure = fmt.Sprintf(format, args...)
	}
}

// choose returns a call that qualifies, or -1.
func (d *dtDirector) choose(n uint16, qualifies func(x *dtCall) bool) int {
	var some []int
	for i, x := range d.scene.calls {
		if qualifies(x) {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return -1
	}
	return some[int(n)%len(some)]
}

func (d *dtDirector) do(op dtOp) {
	switch op.kind % dtOps {
	case dtOpRoot:
		d.call(-1, op)
	case dtOpNested:
		d.call(d.choose(op.n[4], func(x *dtCall) bool { return x.running.Load() && !x.told }), op)
	case dtOpKept:
		d.call(d.choose(op.n[4], func(x *dtCall) bool { return x.ran.Load() }), op)
	case dtOpReturn:
		d.tell(d.choose(op.n[4], func(x *dtCall) bool { return x.running.Load() && !x.told && !x.busy() }))
	case dtOpLeave:
		d.tell(d.choose(op.n[4], func(x *dtCall) bool { return x.running.Load() && !x.told }))
	case dtOpCancel:
		d.rest()
		i := d.choose(op.n[4], func(x *dtCall) bool { return !x.ran.Load() && !x.over.Load() })
		if i < 0 || op.n[5]%4 == 0 {
			i = d.choose(op.n[4], func(x *dtCall) bool { return !x.over.Load() })
		}
		if i >= 0 {
			d.note("cancel call %d", i)
			at := d.world.asks[i].context
			d.world.end(at, dtCanceled)
			d.cancels[at]()
			d.pending = true
		}
	case dtOpClose:
		d.rest()
		if n := len(d.clients); n > 0 {
			i := int(op.n[4]) % n
			d.note("close client %d", i)
			d.world.closed[i] = true
			d.world.end(d.clientAt[i], dtClosed)
			d.clients[i].Close()
			d.pending = true
		}
	case dtOpTick:
		d.rest()
		d.note("tick")
		d.world.now++
		time.Sleep(dtTick)
		d.pending = true
		d.rest()
	}
}

func (d *dtDirector) tell(i int) {
	if i < 0 {
		return
	}
	d.note("call %d returns", i)
	d.scene.calls[i].tell()
	for _, s := range d.states {
		s.calls[i].told = true
	}
	d.pending = true
}

// call starts a call from the fn of call from, or without lineage (-1).
func (d *dtDirector) call(from int, op dtOp) {
	if len(d.scene.calls) >= 24 {
		return
	}
	rest := int(op.n[0])
	pick := func(n int) int {
		v := rest % n
		rest /= n
		return v
	}
	var (
		ctx    = context.Background()
		parent = -1
		ask    dtAsk
		inner  = slices.Repeat([]int{-1}, len(d.cs))
		within *dtCall
		how    = "without lineage"
	)
	if from >= 0 {
		within = d.scene.calls[from]
		ctx, parent = within.ctx, d.world.asks[from].context
		ask.above = append([]int{from}, d.world.asks[from].above...)
		inner = slices.Clone(d.inner[from])
		how = fmt.Sprint("in fn of ", from)
		switch pick(12) {
		case 0:
			ctx, ask.above, within = Detach(ctx), nil, nil
			how += ", detached"
		case 1:
			ctx, parent = context.WithoutCancel(ctx), -1
			how += ", WithoutCancel"
		}
	}
	on := pick(len(d.cs))
	if pick(5) == 0 {
		at := pick(len(d.cs))
		var c *Client
		ctx, c = d.cs[at].WithClient(ctx, fmt.Sprint("client-", len(d.clients)))
		parent = d.context(parent, func() {})
		inner[at] = len(d.clients)
		how += fmt.Sprintf(", with new client %d of coordinator %d", len(d.clients), at)
		d.clients, d.clientAt, d.world.closed = append(d.clients, c), append(d.clientAt, parent), append(d.world.closed, false)
	}
	ctx, cancel := context.WithCancel(ctx)
	ask.context = d.context(parent, cancel)
	ask.client = inner[on]

	count := 1
	if op.n[1]%4 == 0 {
		count = 2 + int(op.n[1]>>4)%2
	}
	for i := range count {
		ask.keys = append(ask.keys, on*d.keys+int(op.n[2]>>(4*i))%d.keys)
	}
	slices.Sort(ask.keys)
	ask.keys = slices.Compact(ask.keys)
	var names []any
	for _, k := range ask.keys {
		names = append(names, fmt.Sprint("k", k%d.keys))
	}
	var opts []Option
	bits := op.n[3]
	if ask.shared = bits%8 < 3; ask.shared {
		opts = append(opts, Shared)
	}
	if ask.ifAvailable = bits>>3%16 == 0; ask.ifAvailable {
		opts = append(opts, IfAvailable)
	}
	if ask.reentrant = bits>>7%8 == 0; ask.reentrant {
		opts = append(opts, Reentrant)
	}
	if bits>>10%8 == 0 {
		ask.maxWait = 1 + int(bits>>13%3)
		opts = append(opts, MaxWait(time.Duration(ask.maxWait)*dtTick))
	}
	d.note("call %d %s wants %v of coordinator %d, shared=%t try=%t reentrant=%t maxWait=%d",
		len(d.scene.calls), how, names, on, ask.shared, ask.ifAvailable, ask.reentrant, ask.maxWait)

	d.world.asks, d.inner = append(d.world.asks, ask), append(d.inner, inner)
	for i := range d.states {
		d.states[i].calls = append(d.states[i].calls, dtCallState{phase: dtAsking})
	}
	if len(names) == 1 {
		d.scene.begin(within, d.cs[on], ctx, true, names[0], opts...)
	} else {
		d.scene.begin(within, d.cs[on], ctx, true, All(names...), opts...)
	}
	d.pending = true
}

// context enters a context into the world.
func (d *dtDirector) context(parent int, cancel context.CancelFunc) int {
	d.world.contexts = append(d.world.contexts, dtContext{parent: parent})
	d.cancels = append(d.cancels, cancel)
	n := len(d.world.contexts) - 1
	if parent >= 0 {
		d.world.contexts[n].end = d.world.contexts[parent].end
	}
	return n
}
