package processlock

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// Who asks for a key that its own lineage holds never gets it by waiting.
//
// Rules 22, 30 and 18.
func TestDeadlockOwnKey(t *testing.T) {
	for _, tt := range []struct {
		name   string
		outer  []Option
		inner  []Option
		want   error // nil: fn runs
		writer bool  // an exclusive request is queued between the two
	}{
		{name: "exclusive in exclusive", want: ErrDeadlock},
		{name: "shared in exclusive", inner: []Option{Shared}, want: ErrDeadlock},
		{name: "exclusive in shared", outer: []Option{Shared}, want: ErrDeadlock},
		{name: "shared in shared", outer: []Option{Shared}, inner: []Option{Shared}},
		{name: "shared in shared, writer queued", outer: []Option{Shared}, inner: []Option{Shared}, writer: true, want: ErrDeadlock},
		{name: "MaxWait", inner: []Option{MaxWait(1)}, want: ErrDeadlock},

		{name: "try, exclusive", inner: []Option{IfAvailable}, want: ErrUnavailable},
		{name: "try, shared in exclusive", inner: []Option{IfAvailable, Shared}, want: ErrUnavailable},
		{name: "try, exclusive in shared", outer: []Option{Shared}, inner: []Option{MaxWait(0)}, want: ErrUnavailable},
		{name: "try, shared in shared", outer: []Option{Shared}, inner: []Option{IfAvailable, Shared}},
		{name: "try, shared in shared, writer queued", outer: []Option{Shared}, inner: []Option{IfAvailable, Shared}, writer: true, want: ErrUnavailable},

		{name: "reentrant, exclusive in exclusive", inner: []Option{Reentrant}},
		{name: "reentrant, exclusive in exclusive, writer queued", inner: []Option{Reentrant}, writer: true},
		{name: "reentrant, shared in exclusive", inner: []Option{Reentrant, Shared}},
		{name: "reentrant, shared in shared", outer: []Option{Shared}, inner: []Option{Reentrant, Shared}},
		{name: "reentrant, shared in shared, writer queued", outer: []Option{Shared}, inner: []Option{Reentrant, Shared}, writer: true},
		{name: "reentrant, exclusive in shared", outer: []Option{Shared}, inner: []Option{Reentrant}, want: ErrDeadlock},
		{name: "reentrant try, exclusive in exclusive, writer queued", inner: []Option{Reentrant, IfAvailable}, writer: true},
		{name: "reentrant try, exclusive in shared", outer: []Option{Shared}, inner: []Option{Reentrant, IfAvailable}, want: ErrUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dtBubble(t, Options{}, func(d *dtScene) {
				a := d.ask("a", tt.outer...)
				var writer *dtCall
				if tt.writer {
					writer = d.ask("a").mustWait()
				}
				// The same holds from further down, and of several keys.
				b := a.ask("b")
				for _, from := range []*dtCall{a, b} {
					for _, key := range []any{"a", All("a"), All("a", "free")} {
						switch x := from.ask(key, tt.inner...); tt.want {
						case nil:
							x.mustRun().let()
						case ErrDeadlock:
							e := x.mustBeVictim("a")
							assert.Contains(t, e.Error(), "Reentrant")
							assert.Contains(t, e.Error(), "Detach")
						default:
							x.mustFail(tt.want)
						}
					}
				}
				assert.Zero(t, dtGraphSize())
				if tt.writer {
					b.let()
					a.let()
					writer.mustRun()
				}
			})
		})
	}
}

// Two readers who both want to write each hold what the other waits for. Each
// finds its own hold in its way, so neither waits.
//
// Rules 22 and 30.
func TestDeadlockUpgrade(t *testing.T) {
	for _, readers := range []int{1, 2} {
		for _, opts := range [][]Option{nil, {Reentrant}} {
			dtBubble(t, Options{}, func(d *dtScene) {
				for range readers {
					d.ask("a", Shared).mustRun()
				}
				for _, reader := range d.calls {
					e := reader.ask("a", opts...).mustBeVictim("a")
					assert.Equal(t, ModeShared, e.Cycle[0].Mode)
				}
			})
		}
	}
}

// The first reason that applies is the one that is given.
//
// Rule 18.
func TestDeadlockOrderOfChecks(t *testing.T) {
	dtBubble(t, Options{MaxWaiters: 1}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		a.ask("b").mustWait()
		d.ask("a").mustWait() // both queues are full

		a.ask("a", Reentrant, IfAvailable).mustRun().let()
		a.ask("a", IfAvailable).mustFail(ErrUnavailable)
		a.ask("a").mustBeVictim("a")
		b.ask("a").mustFail(ErrQueueFull)

		done, cancel := context.WithCancel(a.ctx)
		cancel()
		a.askWith(d.c, done, "a").mustFail(context.Canceled)
		a.askWith(d.c, done, "a", Reentrant).mustFail(context.Canceled)

		s := d.c.Stats()
		assert.EqualValues(t, 1, s.Deadlocks)
		assert.EqualValues(t, 2, s.Unavailable)
	})
	// With room in the queue it is the cycle.
	dtBubble(t, Options{MaxWaiters: 2}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		a.ask("b").mustWait()
		d.ask("a").mustWait()
		b.ask("a").mustBeVictim("a", "b")
	})
}

// Reentrant calls of one fn run together, release nothing, and leave the
// outer hold where it is.
//
// Rule 22.
func TestDeadlockReentrantSharesTheHold(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a := d.ask("a")
		next := d.ask("a").mustWait()
		one, two := a.ask("a", Reentrant).mustRun(), a.ask("a", Reentrant).mustRun()
		deeper := one.ask("a", Reentrant).mustRun()
		deeper.let()
		one.let()
		two.let()
		next.mustWait()
		assert.EqualValues(t, 1, d.c.Stats().Held)
		assert.EqualValues(t, 4, d.c.Stats().Acquired)
		for _, x := range []*dtCall{one, two, deeper} {
			assert.NoError(t, x.err)
		}
		a.let()
		next.mustRun()
	})
}

// A Reentrant call whose lineage doesn't hold the key is a call like any other,
// and what waits under it waits under the hold that it runs under.
//
// Rules 22 and 31.
func TestDeadlockBelowReentrant(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		again := a.ask("a", Reentrant).mustRun()
		again.ask("b", Reentrant).mustWait()
		b.ask("a", Reentrant).mustBeVictim("a", "b")
	})
}

// A Reentrant fn that outlives the hold it ran under was not alone all the
// time, and says so.
//
// Rules 22 and 27.
func TestDeadlockReentrantOutlivesItsHold(t *testing.T) {
	t.Run("outer fn returned", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a := d.ask("a")
			next := d.ask("a").mustWait()
			inner := a.ask("a", Reentrant).mustRun()
			a.let()
			next.mustRun()
			inner.let()
			assert.Same(t, ErrLost, inner.err)
			assert.NoError(t, a.err)
		})
	})
	t.Run("client closed", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			ctx, client := d.c.WithClient(context.Background(), "worker")
			a := d.askWith(ctx, "a")
			inner := a.ask("a", Reentrant).mustRun()
			client.Close()
			synctest.Wait()
			inner.let()
			a.let()
			assert.Same(t, ErrLost, inner.err)
			assert.Same(t, ErrLost, a.err)
		})
	})
	t.Run("innermost of two", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			outer := d.ask("a", Shared)
			middle := outer.ask("a", Shared).mustRun()
			inner := middle.ask("a", Shared, Reentrant).mustRun()
			middle.let()
			inner.let()
			assert.ErrorIs(t, inner.err, ErrLost)
		})
	})
}
