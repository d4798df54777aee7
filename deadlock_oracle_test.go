package processlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
)

// rest lets everybody come to rest, and strikes out the model's states that are
// not what is seen then.
func (d *dtDirector) rest() {
	if !d.pending {
		return
	}
	d.pending = false
	synctest.Wait()
	seen, text := d.seen()
	if d.states == nil || d.failure != "" {
		return
	}
	quiet, ok := d.world.settle(d.states)
	if !ok {
		d.states = nil
		return
	}
	var possible []string
	d.states = []dtState{}
	for _, s := range quiet {
		if expected := d.expect(s); expected == seen {
			d.states = append(d.states, s)
		} else {
			possible = append(possible, expected)
		}
	}
	if len(d.states) == 0 {
		slices.Sort(possible)
		d.fail("no order of events leads here\nseen:     %s\npossible: %s\n%s", seen,
			strings.Join(slices.Compact(possible), "\n          "), text)
	}
}

// settle returns the states in which nobody has a step to make, over all orders
// of steps from any of the given states. It gives up when there are too many.
func (w *dtWorld) settle(states []dtState) (quiet []dtState, ok bool) {
	seen := make(map[string]bool)
	for todo := slices.Clone(states); len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		text := s.text()
		if seen[text] {
			continue
		}
		seen[text] = true
		if len(seen) > 3000 {
			return nil, false
		}
		after := w.rob(s)
		for call := range s.calls {
			if w.moves(s, call) {
				after = append(after, w.steps(s, call)...)
			}
		}
		if len(after) == 0 {
			quiet = append(quiet, s)
		}
		todo = append(todo, after...)
	}
	return quiet, true
}

// steps returns the states after call's next step.
func (w *dtWorld) steps(s dtState, call int) []dtState {
	linger, count := []bool{false}, []bool{false}
	if s.calls[call].phase == dtAsking { // there is a choice, see look
		linger = []bool{false, true}
		for _, c := range s.calls {
			if c.phase == dtWaiting && c.doomed {
				count = []bool{false, true}
			}
		}
	}
	var after []dtState
	for _, l := range linger {
		for _, c := range count {
			next := s.clone()
			w.step(next, call, l, c)
			after = append(after, next)
		}
	}
	return after
}

// seen describes what the library does, as expect does for the model.
func (d *dtDirector) seen() (seen, errs string) {
	for i, x := range d.scene.calls {
		switch {
		case x.running.Load():
			seen += fmt.Sprint(i, " runs; ")
		case !x.over.Load():
			seen += fmt.Sprint(i, " waits; ")
		default:
			seen += fmt.Sprint(i, " ", x.result(), "; ")
			d.checkCycle(x.err)
			if x.err != nil {
				errs += fmt.Sprintln("call", i, x.err)
			}
		}
	}
	for _, c := range d.cs {
		s := c.Stats()
		seen += fmt.Sprint(s.Held, " held, ", s.Waiting, " waiting; ")
	}
	return seen, errs
}

// checkCycle checks what is true of every shortest cycle: it starts with the key
// that was refused, and it doesn't come by a key twice.
func (d *dtDirector) checkCycle(err error) {
	var deadlock *DeadlockError
	var acquire *AcquireError
	if !errors.As(err, &deadlock) || !errors.As(err, &acquire) {
		return
	}
	times := make(map[Key]int)
	for _, w := range deadlock.Cycle {
		if times[w.Key]++; times[w.Key] > len(d.cs) {
			d.fail("the cycle comes by a key again: %v", err)
		}
	}
	if len(deadlock.Cycle) == 0 || deadlock.Cycle[0].Key != acquire.Key {
		d.fail("the cycle of %v doesn't start with its key: %v", acquire.Key, err)
	}
}

func (d *dtDirector) expect(s dtState) (text string) {
	for i, c := range s.calls {
		switch c.phase {
		case dtRunning:
			text += fmt.Sprint(i, " runs; ")
		case dtWaiting:
			text += fmt.Sprint(i, " waits; ")
		default:
			text += fmt.Sprint(i, " ", c.result, "; ")
		}
	}
	for c := range d.cs {
		held, waiting := 0, 0
		for _, k := range s.keys[c*d.keys : (c+1)*d.keys] {
			held += len(k.holders)
			waiting += len(k.queue)
		}
		text += fmt.Sprint(held, " held, ", waiting, " waiting; ")
	}
	return text
}

// result is what came of a call that is over.
func (x *dtCall) result() dtResult {
	switch err := x.err; {
	case x.panicked != nil:
		return dtResult(fmt.Sprint("panicked: ", x.panicked))
	case x.ran.Load() && err == nil:
		return dtRan
	case x.ran.Load() && errors.Is(err, ErrLost):
		return dtLost
	case x.ran.Load() || err == nil:
		return dtResult(fmt.Sprint("ran: ", x.ran.Load(), ", error: ", err))
	case errors.Is(err, ErrClosed):
		return dtClosed
	case errors.Is(err, ErrWaitTimeout):
		return dtTimeout
	case errors.Is(err, ErrQueueFull):
		return dtFull
	case errors.Is(err, ErrUnavailable):
		return dtUnavailable
	case errors.Is(err, ErrDeadlock):
		return dtDeadlock
	case errors.Is(err, context.Canceled):
		return dtCanceled
	default:
		return dtResult(err.Error())
	}
}

// finish is the oracle that knows no model: every fn returns as soon as all
// requests under it are over, and if somebody waits when nobody can return any
// more, that was a deadlock that nobody was told of.
func (d *dtDirector) finish() {
	d.rest()
	for d.failure == "" {
		i := d.choose(0, func(x *dtCall) bool { return x.running.Load() && !x.told && !x.busy() })
		if i < 0 {
			break
		}
		d.tell(i)
		d.rest()
	}
	for i, x := range d.scene.calls {
		if !x.over.Load() {
			d.fail("call %d waits for ever: a deadlock was missed", i)
			continue
		}
		d.counts[x.result()]++
	}
	for _, x := range d.scene.calls {
		x.tell()
	}
	for i, cancel := range d.cancels {
		cancel()
		if c := slices.Index(d.clientAt, i); c >= 0 {
			d.clients[c].Close()
		}
	}
	synctest.Wait()
	if n := dtGraphSize(); n != 0 {
		d.fail("%d holds are left in the graph", n)
	}
	for i, c := range d.cs {
		if n := len(c.Snapshot().Locks); n != 0 {
			d.fail("%d keys are left in coordinator %d", n, i)
		}
		s := c.Stats()
		if s.Held != 0 || s.Waiting != 0 {
			d.fail("coordinator %d is idle, and says %+v", i, s)
		}
	}
}
