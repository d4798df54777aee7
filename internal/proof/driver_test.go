package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
)

// driver executes a program in a bubble, and keeps the model beside it.
type driver struct {
	start  time.Time
	cs     []*processlock.Coordinator
	calls  []*liveCall
	shuts  []*liveShut
	groups []*liveGroup
	world  world
	states []state // what the model takes for possible; nil: it has given up

	clients  []*processlock.Client
	clientAt []int // the context of each
	clientIn []fellow
	inner    [][]int // by call and coordinator: the innermost client, or -1
	cancels  []context.CancelCauseFunc

	pending bool   // something moved since everybody was at rest
	ended   []bool // by call: it was over then
	cut     bool   // a context was canceled since then
	trace   []string
	failure string
	steps   int
}

// fellow is what calls share that are made with one client's context.
type fellow struct {
	ctx          context.Context
	inner, above []int
}

// execute runs a program and tells what went wrong.
func execute(t *testing.T, p program) *driver {
	d := &driver{}
	synctest.Test(t, func(*testing.T) {
		d.start = time.Now()
		d.world = world{keys: p.keys, maxWaiters: p.maxWaiters, track: p.track}
		for range p.coordinators {
			d.cs = append(d.cs, processlock.New(processlock.Options{MaxWaiters: p.maxWaiters, TrackHolds: p.track}))
		}
		d.note("%d coordinators, %d keys each, MaxWaiters=%d, TrackHolds=%t", p.coordinators, p.keys, p.maxWaiters, p.track)
		d.states = []state{{
			rows: make([]row, p.coordinators*p.keys), down: make([]bool, p.coordinators), stats: make([]stats, p.coordinators),
		}}
		for _, o := range p.ops {
			d.do(o)
			d.steps++
			if o.quiet {
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

func (d *driver) note(format string, args ...any) {
	d.trace = append(d.trace, fmt.Sprintf(format, args...))
}

// rest lets everybody come to rest, and strikes out the model's states that are
// not what is seen then.
func (d *driver) rest() {
	if !d.pending {
		return
	}
	d.pending, d.cut = false, false
	synctest.Wait()
	d.ended = d.ended[:0]
	for _, x := range d.calls {
		d.ended = append(d.ended, x.over.Load())
	}
	if d.states == nil || d.failure != "" {
		return
	}
	quiet, ok := d.world.settle(d.states)
	if !ok {
		d.states = nil
		return
	}
	seen := d.seen()
	var possible []string
	d.states = []state{}
	for _, s := range quiet {
		if expected := d.world.expect(&s); expected == seen {
			d.states = append(d.states, s)
		} else {
			possible = append(possible, expected)
		}
	}
	if len(d.states) == 0 {
		slices.Sort(possible)
		d.failure = fmt.Sprintf("no order of events leads here\n--- seen\n%s--- possible\n%s", seen,
			strings.Join(slices.Compact(possible), "--- or\n"))
	}
}

// apply makes the same change to every state.
func (d *driver) apply(change func(s *state)) {
	for i := range d.states {
		change(&d.states[i])
	}
	d.pending = true
}

// finish lets everything end, and looks whether anything is left.
func (d *driver) finish() {
	for range len(d.calls) + 1 {
		d.rest()
		for i, x := range d.calls {
			if x.running.Load() {
				d.tell(i, returnsNil)
			}
		}
	}
	d.rest()
	for i, x := range d.calls {
		if !x.over.Load() && !x.task && d.failure == "" {
			d.failure = fmt.Sprintf("call %d waits for ever", i)
		}
	}
	for i := range d.groups {
		d.wait(i)
	}
	d.rest()
	for i, x := range d.groups {
		if !x.over.Load() && d.failure == "" {
			d.failure = fmt.Sprintf("group %d waits for ever", i)
		}
	}
	for _, c := range d.cs {
		if left := c.Snapshot().Locks; len(left) > 0 && d.failure == "" {
			d.failure = fmt.Sprintf("left over: %+v", left)
		}
	}
	for _, cancel := range d.cancels {
		if cancel == nil {
			continue // a group's, or a task's
		}
		cancel(nil) // whoever still waits must not outlive the bubble
	}
	for _, c := range d.clients {
		if c != nil {
			c.Close()
		}
	}
	synctest.Wait()
}

// context enters a context into the world.
func (d *driver) context(parent, deadline int, cancel context.CancelCauseFunc) int {
	d.world.contexts = append(d.world.contexts, lifetime{parent, deadline})
	d.cancels = append(d.cancels, cancel)
	d.apply(func(s *state) { s.ends, s.cut = append(s.ends, 0), append(s.cut, 0) })
	return len(d.world.contexts) - 1
}
