package processlock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// dtPause has ctx answer only when the test says so: that is the time between
// the search for a cycle and its confirmation.
func dtPause(d *dtScene, p *dtProbe) (answer func()) {
	ch := make(chan struct{})
	p.arm(func() { <-ch })
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
			probe := &dtProbe{Context: b.ctx}
			ba := b.askRaw(probe, "a", Shared).mustWait()
			answer := dtPause(d, probe)
			ab := a.ask("b").mustWait()

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
			answer := dtPause(d, probe)
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
			probe := &dtProbe{Context: b.ctx}
			ba := b.askRaw(probe, "a").mustWait()
			answer := dtPause(d, probe)
			ab := d.askWith(a.ctx, "b").mustWait()
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
			answer := dtPause(d, probe)
			ab := a.ask("b").mustWait()
			d.ask("a").mustWait()
			answer()
			ab.mustBeVictim("b", "a")
			ba.mustWait()
		})
	})
}
