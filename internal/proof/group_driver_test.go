package proof

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/dbx-tools/processlock"
)

// liveGroup is a Group of the library.
type liveGroup struct {
	g     *processlock.Group
	waits bool
	err   error
	over  atomic.Bool
}

func (x *liveGroup) result() reason {
	if !x.over.Load() {
		return 0
	}
	return reasonOf(x.err)
}

// limited reports whether x is a task of a group with a limit. What such tasks
// ask for moves slots about, which the model leaves to the core's own tests.
func (d *driver) limited(x *liveCall) bool {
	t := d.world.asks[slices.Index(d.calls, x)].task
	return t != nil && d.world.groups[t.group].limit > 0
}

// newGroup makes a group, sometimes in somebody's fn or with a client.
func (d *driver) newGroup(o op) {
	if len(d.groups) >= 3 {
		return
	}
	ctx, parent, how := context.Background(), -1, "without lineage"
	on := o.coordinator % len(d.cs)
	a := groupAsk{limit: o.target % 4, on: on, inner: slices.Repeat([]int{-1}, len(d.cs))}
	from := -1
	if o.reentrant || o.shared || o.heir {
		from = d.choose(o.target, func(x *liveCall) bool { return x.running.Load() && !x.told && !d.limited(x) })
	}
	switch i := d.chooseClient(o.target); {
	case from >= 0:
		ctx, parent, how = d.calls[from].ctx, d.world.contextOf(from), fmt.Sprint("in fn of ", from)
		a.above = append([]int{from}, d.world.asks[from].above...)
		a.inner = slices.Clone(d.inner[from])
		if o.heir {
			a.limit = 1 + o.target%2
		}
		if o.detour == 8 {
			ctx, a.above = processlock.Detach(ctx), nil
			how += ", detached"
		}
	case o.fellow && i >= 0:
		ctx, parent, a.inner, a.above = d.clientIn[i].ctx, d.clientAt[i], slices.Clone(d.clientIn[i].inner), d.clientIn[i].above
		how += fmt.Sprint(", with client ", i)
		if o.detour >= 8 {
			ctx, parent = context.WithoutCancel(ctx), -1
			how += ", WithoutCancel"
		}
	}
	a.client = a.inner[on]
	ctx = processlock.WithCoordinator(ctx, d.cs[on])
	ctx, parent = d.derive(ctx, parent, o.deadline)
	a.context = d.context(parent, 0, nil)
	d.note("group %d %s of coordinator %d, limit=%d deadline=%d", len(d.groups), how, on, a.limit, o.deadline)
	x := &liveGroup{}
	x.g, _ = processlock.NewGroup(ctx, d.groupName(len(d.groups)))
	x.g.SetLimit(a.limit)
	d.groups, d.world.groups = append(d.groups, x), append(d.world.groups, a)
	d.apply(func(s *state) { s.groups = append(s.groups, group{}) })
}

func (d *driver) groupName(i int) string { return fmt.Sprint("group-", i) }

// newTask adds a task to a group. That is done at rest, so that GoLocked, which
// does not wait, is one move.
func (d *driver) newTask(o op) {
	var open []int
	for i, x := range d.groups {
		if !x.waits {
			open = append(open, i)
		}
	}
	bequeaths := func(i int) bool { return len(d.world.groups[i].above) > 0 }
	if o.heir && slices.ContainsFunc(open, bequeaths) {
		open = slices.DeleteFunc(open, func(i int) bool { return !bequeaths(i) })
	}
	if len(d.calls) >= maxCalls || len(open) == 0 {
		return
	}
	d.rest()
	n := open[o.target%len(open)]
	g := &d.world.groups[n]
	g.tasks++
	i := len(d.calls)
	a := ask{shared: o.shared, try: o.try, reentrant: o.reentrant, maxWait: o.maxWait,
		above: g.above, context: g.context, client: g.client,
		task: &taskAsk{group: n, client: len(d.clients)}}
	a.task.context = d.context(g.context, 0, nil)
	inner := slices.Clone(g.inner)
	inner[g.on] = a.task.client
	d.client(nil, fmt.Sprintf("%s-%d", d.groupName(n), g.tasks), g.on, a.task.context, fellow{})
	if o.heir && len(a.above) > 0 {
		o.keys, a.shared = d.inherit(o.keys, &a)
	}
	key := d.name(&a, g.on, o.keys)
	d.note("call %d is a task of group %d and wants %v, shared=%t try=%t reentrant=%t maxWait=%d",
		i, n, a.keys, a.shared, a.try, a.reentrant, a.maxWait)
	d.world.asks, d.inner = append(d.world.asks, a), append(d.inner, inner)
	x := &liveCall{}
	d.calls = append(d.calls, x)
	d.apply(func(s *state) {
		s.calls = append(s.calls, call{phase: asking})
		s.groups[n].left++
	})
	x.add(d.groups[n].g, key, a.options())
	d.rest()
}

// inherit returns the keys and the mode of a task that is to take over what the fn
// holds in which its group was made. If there is a slot it is another key: who
// takes over and outlives the fn ends the group.
func (d *driver) inherit(keys []int, a *ask) (all []int, shared bool) {
	slots := d.world.groups[a.task.group].limit
	for i, b := range d.world.asks {
		if x := d.calls[i]; b.task != nil && b.task.group == a.task.group && (!x.ran.Load() || x.running.Load()) {
			slots--
		}
	}
	above := d.world.asks[a.above[0]]
	if slots > 0 {
		return []int{above.keys[0] + 1}, a.shared
	}
	return append(keys[1:], above.keys[0]), a.shared || above.shared
}

// wait calls Wait of a group.
func (d *driver) wait(i int) {
	x := d.groups[i]
	if x.waits {
		return
	}
	d.note("wait for group %d", i)
	x.waits = true
	d.apply(func(s *state) { s.groups[i].waits = true })
	go func() {
		x.err = x.g.Wait()
		x.over.Store(true)
	}()
}

// outlive ends an fn under which a task waits, and then a task that may have the
// slot that it waits for.
func (d *driver) outlive(o op) {
	d.rest()
	under := func(i int, x *liveCall) bool {
		return d.world.asks[i].task != nil && slices.ContainsFunc(d.world.asks[i].above, func(above int) bool { return d.calls[above] == x })
	}
	from := d.choose(o.target, func(x *liveCall) bool {
		for i, y := range d.calls {
			if under(i, x) && !y.ran.Load() {
				return x.running.Load() && !x.told
			}
		}
		return false
	})
	if from < 0 {
		return
	}
	d.tell(from, o.outcome)
	if o.quiet {
		d.rest()
	}
	d.tell(d.choose(o.target, func(y *liveCall) bool {
		return y.running.Load() && !y.told && under(slices.Index(d.calls, y), d.calls[from])
	}), returnsNil)
}
