package processlock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// dtProbe is a context of somebody's own, whose Err does what it was armed
// with, once.
type dtProbe struct {
	context.Context
	action atomic.Pointer[func()]
}

func (p *dtProbe) arm(action func()) { p.action.Store(&action) }
func (p *dtProbe) fired() bool       { return p.action.Load() == nil }

func (p *dtProbe) Err() error {
	if action := p.action.Swap(nil); action != nil {
		(*action)()
	}
	return p.Context.Err()
}

// A wait whose context is done is over, though it may not have left its queue
// yet: it is no link of a cycle.
//
// Rule 32.
func TestDeadlockPartnerCancelledAnInstantBefore(t *testing.T) {
	t.Run("canceled", func(t *testing.T) {
		// The request races with the partner's leaving; both orders are right.
		for range 50 {
			dtBubble(t, Options{}, func(d *dtScene) {
				a, b := d.ask("a"), d.ask("b")
				ab := a.ask("b").mustWait()
				ab.cancel()
				ba := b.ask("a").mustWait()
				ab.mustFail(context.Canceled)
				assert.Zero(t, d.c.Stats().Deadlocks)
				a.let()
				ba.mustRun()
			})
		}
	})
	t.Run("canceled while the search asks", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			ctx, cancel := context.WithCancel(a.ctx)
			probe := &dtProbe{Context: ctx}
			ab := a.askRaw(probe, "b").mustWait()
			probe.arm(cancel)
			b.ask("a").mustWait()
			assert.True(t, probe.fired())
			ab.mustFail(context.Canceled)
		})
	})
	t.Run("Done closed, Err nil", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			done := dtHalfDone{a.ctx, make(chan struct{})}
			ab := a.askRaw(done, "b").mustWait()
			close(done.done)
			b.ask("a").mustWait()
			ab.mustFail(context.Canceled)
		})
	})
	t.Run("one of two ways round", func(t *testing.T) {
		// The way over the cancelled wait is found first, or second.
		for cancelled := range 2 {
			dtBubble(t, Options{}, func(d *dtScene) {
				a, b := d.ask("a"), d.ask("b")
				waiting := []*dtCall{a.ask("b").mustWait(), a.ask("b").mustWait()}
				waiting[cancelled].cancel()
				b.ask("a").mustBeVictim("a", "b")
				waiting[cancelled].mustFail(context.Canceled)
				waiting[1-cancelled].mustWait()
			})
		}
	})
	t.Run("the victim itself", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			ctx, cancel := context.WithCancel(b.ctx)
			probe := &dtProbe{Context: a.ctx}
			ab := a.askRaw(probe, "b").mustWait()
			probe.arm(cancel)
			x := b.askRaw(&dtProbe{Context: ctx}, "a")
			// Found, then done: either reason is true, and only one is given.
			assert.True(t, x.over.Load() && !x.ran.Load())
			assert.NotEqual(t, errors.Is(x.err, ErrDeadlock), errors.Is(x.err, context.Canceled))
			ab.mustWait()
		})
	})
}

// dtHalfDone closes Done but forgets Err.
type dtHalfDone struct {
	context.Context
	done chan struct{}
}

func (c dtHalfDone) Done() <-chan struct{} { return c.done }
func (c dtHalfDone) Err() error            { return nil }

// A partner's deadline would open the cycle in time, and is no excuse.
//
// Rule 31.
func TestDeadlockPartnerWithDeadline(t *testing.T) {
	for _, wait := range []time.Duration{1, time.Hour} {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			ctx, cancel := context.WithTimeout(a.ctx, wait)
			defer cancel()
			ab := a.askWith(d.c, ctx, "b").mustWait()
			b.ask("a").mustBeVictim("a", "b")

			// Once it has passed, the way is free.
			time.Sleep(wait)
			synctest.Wait()
			ab.mustFail(context.DeadlineExceeded)
			b.ask("a").mustWait()
		})
	}
}

// The contexts of the partners are asked outside all locks, so their methods
// may use the library, for a search of their own too.
//
// Rules 31 and 36.
func TestDeadlockPartnerWhoseContextCallsBack(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		probe := &dtProbe{Context: a.ctx}
		ab := a.askRaw(probe, "b").mustWait()

		fn := func(context.Context) error { return nil }
		var free, held, cycle error
		probe.arm(func() {
			free = d.c.WithLock(context.Background(), "free", fn)
			held = d.c.WithLock(b.ctx, "a", fn, IfAvailable)
			cycle = d.c.WithLock(b.ctx, "a", fn)
			d.c.Snapshot()
		})
		b.ask("a").mustBeVictim("a", "b")
		assert.True(t, probe.fired())
		assert.NoError(t, free)
		assert.ErrorIs(t, held, ErrUnavailable)
		assert.ErrorIs(t, cycle, ErrDeadlock)
		ab.mustWait()
	})
}

// A partner whose context doesn't answer keeps the asking call, and nobody
// else.
//
// Rules 31 and 36.
func TestDeadlockPartnerWhoseContextBlocks(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		probe := &dtProbe{Context: a.ctx}
		ab := a.askRaw(probe, "b").mustWait()

		answer := dtPause(d, probe, 0)
		ba := b.ask("a").mustWait()
		assert.True(t, probe.fired())

		d.ask("free").mustRun().let()
		c := d.ask("c")
		d.ask("c").mustWait().cancel()
		b.ask("c").mustWait()
		c.ask("b").mustBeVictim("b", "c") // a search of somebody else's
		c.let()

		answer()
		ba.mustBeVictim("a", "b")
		ab.mustWait()
	})
	// What happens meanwhile counts: the grant has come first.
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		probe := &dtProbe{Context: a.ctx}
		ab := d.begin(nil, d.c, probe, true, "b")
		synctest.Wait()
		answer := dtPause(d, probe, 0)
		ba := b.ask("a").mustWait()
		a.let()
		answer()
		ba.mustRun()
		ab.mustWait()
	})
}

// A partner's context that panics does so in the call that asks, which has left
// its queue by then.
//
// Rules 31 and 36.
func TestDeadlockPartnerWhoseContextPanics(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		probe := &dtProbe{Context: a.ctx}
		ab := a.askRaw(probe, "b").mustWait()
		probe.arm(func() { panic("from Err") })
		ba := b.ask("a")
		assert.Equal(t, "from Err", ba.panicked)
		assert.False(t, ba.ran.Load())
		assert.EqualValues(t, 1, d.c.Stats().Waiting)
		assert.Equal(t, 1, dtGraphSize())

		b.ask("a").mustBeVictim("a", "b")
		b.let()
		ab.mustRun()
	})
}
