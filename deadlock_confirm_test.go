package processlock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// dtPause has ctx answer only when the test says so: that is the time between
// the search for a cycle and its confirmation. It passes over the first calls
// of Err.
func dtPause(d *dtScene, p *dtProbe, first int) (answer func()) {
	ch := make(chan struct{})
	action := func() { <-ch }
	for range first {
		then := action
		action = func() { p.arm(then) }
	}
	p.arm(action)
	answer = sync.OnceFunc(func() {
		close(ch)
		synctest.Wait()
	})
	d.Cleanup(answer)
	return answer
}

// What the search saw may be gone when the contexts have answered. Then there
// is no deadlock.
//
// Rules 31 and 32.
func TestDeadlockIsConfirmed(t *testing.T) {
	t.Run("the partner's wait is over, and its place is another's", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a", Shared), d.ask("b")
			d.ask("a", MaxWait(time.Second)).mustWait() // keeps the next one waiting
			ba := b.ask("a", Shared).mustWait()
			// Its own context, asked on arrival and by its search: who is on a
			// cycle goes on only once nobody asks his.
			probe := &dtProbe{Context: a.ctx}
			answer := dtPause(d, probe, 1)
			ab := a.askRaw(probe, "b").mustWait()

			time.Sleep(time.Second)
			synctest.Wait()
			ba.mustRun().let()
			other := d.ask("a").mustWait()
			answer()
			ab.mustWait()
			other.mustWait()
			b.let()
			ab.mustRun()
		})
	})
	t.Run("the hold is gone, and another keeps the partner waiting", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			ctx, client := d.c.WithClient(context.Background(), "worker")
			a, b := d.askWith(ctx, "a", Shared), d.ask("b")
			bystander := d.ask("a", Shared)
			inner, survivor := d.c.WithClient(context.WithoutCancel(a.ctx), "survivor")
			d.Cleanup(survivor.Close)
			probe := &dtProbe{Context: b.ctx}
			ba := b.askRaw(probe, "a").mustWait()
			answer := dtPause(d, probe, 0)
			ab := d.askWith(inner, "b").mustWait()

			client.Close()
			answer()
			ba.mustWait()
			ab.mustWait()
			bystander.let()
			ba.mustRun()
		})
	})
	t.Run("the partner has its key", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			ba := b.ask("a").mustWait()
			probe := &dtProbe{Context: a.ctx}
			answer := dtPause(d, probe, 1)
			ab := d.begin(nil, d.c, probe, true, "b")
			synctest.Wait()
			ab.mustWait()
			a.let()
			ba.mustRun()
			answer()
			ab.mustWait()
		})
	})
	t.Run("all is as it was", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			probe := &dtProbe{Context: b.ctx}
			ba := b.askRaw(probe, "a").mustWait()
			answer := dtPause(d, probe, 0)
			ab := a.ask("b").mustWait()
			d.ask("a").mustWait()
			answer()
			ab.mustBeVictim("b", "a")
			ba.mustWait()
		})
	})
}

// A request that has been granted its key, but has not resumed, waits for nobody,
// though it is still in the graph. The search does not even ask its context.
//
// Rules 31 and 32.
func TestDeadlockSearchPassesOverWhoIsGranted(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, x := d.ask("a"), d.ask("b")
		probe := &dtProbe{Context: a.ctx}
		granted := a.askRaw(probe, "b", Shared).mustWait()
		beside := d.ask("b", Shared).mustWait()
		gate := make(chan struct{})
		answer := sync.OnceFunc(func() { close(gate) })
		probe.arm(func() { <-gate })
		x.let() // granted resumes, and asks its context
		probe.arm(func() {
			d.Error("who is granted is taken for one that waits")
			answer() // or the search would go on for ever
		})
		beside.mustRun().ask("a").mustWait()
		probe.action.Store(nil)
		answer()
		synctest.Wait()
		granted.mustRun()
	})
}
