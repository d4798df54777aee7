package processlock

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

type dtValueKey struct{}

// Whatever is derived from fn's context belongs to fn, WithoutCancel too.
//
// Rules 12, 30 and 31.
func TestDeadlockLineageIsInherited(t *testing.T) {
	for _, tt := range []struct {
		name   string
		derive func(d *dtScene, ctx context.Context) context.Context
	}{
		{"value", func(_ *dtScene, ctx context.Context) context.Context {
			return context.WithValue(ctx, dtValueKey{}, 1)
		}},
		{"WithoutCancel", func(_ *dtScene, ctx context.Context) context.Context {
			return context.WithoutCancel(ctx)
		}},
		{"WithClient", func(d *dtScene, ctx context.Context) context.Context {
			ctx, c := d.c.WithClient(ctx, "inner")
			d.Cleanup(c.Close)
			return ctx
		}},
		{"WithCoordinator", func(_ *dtScene, ctx context.Context) context.Context {
			return WithCoordinator(ctx, New(Options{}))
		}},
		{"hand-written", func(_ *dtScene, ctx context.Context) context.Context {
			return dtWrapped{ctx}
		}},
		{"all of them", func(d *dtScene, ctx context.Context) context.Context {
			ctx, c := d.c.WithClient(context.WithoutCancel(dtWrapped{ctx}), "inner")
			d.Cleanup(c.Close)
			return context.WithValue(WithCoordinator(ctx, New(Options{})), dtValueKey{}, 1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dtBubble(t, Options{}, func(d *dtScene) {
				a, b := d.ask("a"), d.ask("b")
				ab := a.askWith(d.c, tt.derive(d, a.ctx), "b").mustWait()
				a.askWith(d.c, tt.derive(d, a.ctx), "a").mustBeVictim("a")
				b.askWith(d.c, tt.derive(d, b.ctx), "a").mustBeVictim("a", "b")
				a.askWith(d.c, tt.derive(d, a.ctx), "a", Reentrant).mustRun().let()
				ab.mustWait()
			})
		})
	}
}

// dtWrapped is somebody's own context type.
type dtWrapped struct{ context.Context }

// Every goroutine that has fn's context is fn's own: fn waits for all of them.
//
// Rules 31 and 32.
func TestDeadlockSiblings(t *testing.T) {
	t.Run("one of them closes the cycle", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			a.ask("c").mustRun() // a sibling that waits for nothing
			ab := a.ask("b").mustWait()
			a.ask("c").mustWait() // one that waits for its sibling
			b.ask("a").mustBeVictim("a", "b")
			ab.mustWait()
		})
	})
	t.Run("of several in the cycle each is found", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b, c := d.ask("a"), d.ask("b"), d.ask("c")
			ab, ac := a.ask("b").mustWait(), a.ask("c").mustWait()
			b.ask("a").mustBeVictim("a", "b")
			c.ask("a").mustBeVictim("a", "c")
			ab.cancel()
			synctest.Wait()
			b.ask("a").mustWait()
			ac.mustWait()
			c.ask("b").mustBeVictim("b", "a", "c")
		})
	})
	t.Run("they may wait for each other", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a := d.ask("a")
			one, two := a.ask("b").mustRun(), a.ask("b").mustWait()
			one.let()
			two.mustRun()
		})
	})
	t.Run("but not in a circle", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a := d.ask("a")
			b, c := a.ask("b"), a.ask("c")
			bc := b.ask("c").mustWait()
			c.ask("b").mustBeVictim("b", "c")
			bc.mustWait()
		})
	})
	t.Run("nor for the fn above", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a := d.ask("a")
			b := a.ask("b")
			b.ask("a").mustBeVictim("a")
			a.ask("b").mustWait() // fn above waits for what is below
			b.ask("a").mustBeVictim("a")
		})
	})
}

// A detached goroutine is not fn's own: it may wait for fn, and fn doesn't wait
// for it.
//
// Rules 30 and 32.
func TestDeadlockDetach(t *testing.T) {
	t.Run("for fn's own key", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a := d.ask("a")
			x := d.askWith(Detach(a.ctx), "a").mustWait()
			d.askWith(Detach(a.ctx), "a", Reentrant).mustWait()
			assert.Zero(t, dtGraphSize())
			a.let()
			x.mustRun()
		})
	})
	t.Run("no link of a cycle", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			x := d.askWith(Detach(a.ctx), "b").mustWait()
			ba := b.ask("a").mustWait()
			a.let()
			ba.mustRun()
			x.mustWait()
		})
	})
	t.Run("what it locks itself is its lineage", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			x := d.askWith(Detach(a.ctx), "c").mustRun()
			x.ask("b").mustWait()
			x.ask("c").mustBeVictim("c")
			b.ask("c").mustBeVictim("c", "b")
			b.ask("a").mustWait()
			a.let()
		})
	})
	t.Run("keeps the rest", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), dtValueKey{}, 1))
		err := New(Options{}).WithLock(ctx, "a", func(ctx context.Context) error {
			detached := Detach(ctx)
			assert.Equal(t, 1, detached.Value(dtValueKey{}))
			cancel()
			<-detached.Done()
			return detached.Err()
		})
		assert.Equal(t, context.Canceled, err)
	})
}

// A context that is kept after its fn returned carries no lineage.
//
// Rules 12 and 32.
func TestDeadlockKeptContext(t *testing.T) {
	t.Run("used after the return", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a := d.ask("a")
			a.let()
			other := d.ask("a")
			x := d.askWith(a.ctx, "a").mustWait()
			d.askWith(a.ctx, "a", Reentrant).mustWait()
			assert.Zero(t, dtGraphSize())
			other.let()
			x.mustRun()
		})
	})
	t.Run("of two holds one is left", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a := d.ask("a")
			b := d.askWith(a.ctx, "b")
			b.let()
			other := d.ask("b")
			d.askWith(b.ctx, "a").mustBeVictim("a")
			x := a.askWith(d.c, b.ctx, "b").mustWait()
			assert.Equal(t, 1, dtGraphSize())
			other.ask("a").mustBeVictim("a", "b")
			other.let()
			x.mustRun()
		})
	})
	t.Run("the return comes in mid-wait", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			x := d.askWith(a.ctx, "b").mustWait()
			b.ask("a").mustBeVictim("a", "b")
			a.let()
			ba := b.ask("a").mustRun()
			ba.ask("c").mustRun().let()
			x.mustWait()
			// The same key is in other hands now, and so is the blame.
			d.ask("a").mustWait()
			ba.let()
			b.ask("a").mustWait()
		})
	})
}

// All may wait for long between its keys. What its lineage held when it came, and
// holds no more, is another's by the time it gets there.
//
// Rules 23 and 32.
func TestDeadlockAllOutlivesItsLineage(t *testing.T) {
	for _, mode := range [][]Option{nil, {Reentrant}} {
		dtBubble(t, Options{}, func(d *dtScene) {
			b, c := d.ask("b"), d.ask("c")
			all := d.askWith(c.ctx, All("b", "c"), mode...).mustWait()
			c.let()
			other := d.ask("c").mustRun()
			b.let()
			all.mustWait()
			other.let()
			all.mustRun()
		})
	}
}

// A hold that Client.Close hands on is nobody's link any more.
//
// Rules 25 and 32.
func TestDeadlockHoldHandedOn(t *testing.T) {
	t.Run("before the cycle closes", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			ctx, client := d.c.WithClient(context.Background(), "worker")
			a, b := d.askWith(ctx, "a"), d.ask("b")
			ab := a.ask("b").mustWait()
			client.Close()
			synctest.Wait()
			ab.mustFail(ErrClosed)
			b.ask("a").mustRun()
			a.let()
			assert.Same(t, ErrLost, a.err)
		})
	})
	t.Run("to another link", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			ctx, client := d.c.WithClient(context.Background(), "worker")
			a, b := d.askWith(ctx, "a"), d.ask("b")
			// The inner client survives the outer one, and so does its wait.
			inner, survivor := d.c.WithClient(context.WithoutCancel(a.ctx), "survivor")
			defer survivor.Close()
			ab := a.askWith(d.c, inner, "b").mustWait()
			next := d.ask("a").mustWait()
			b.ask("a").mustBeVictim("a", "b")
			client.Close()
			synctest.Wait()
			next.mustRun()
			ba := b.ask("a").mustWait()
			ab.mustWait()
			// Now it is next's hold that b's fn needs.
			next.ask("b").mustBeVictim("b", "a")
			next.let()
			ba.mustRun()
		})
	})
	t.Run("to the victim, while it looks", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			ctx, client := d.c.WithClient(context.Background(), "worker")
			a, b := d.askWith(ctx, "a"), d.ask("b")
			inner, survivor := d.c.WithClient(context.WithoutCancel(a.ctx), "survivor")
			defer survivor.Close()
			probe := &dtProbe{Context: inner}
			ab := a.askRaw(probe, "b").mustWait()
			// Between the search and its confirmation a's hold ends, and the
			// grant is there before the verdict.
			probe.arm(client.Close)
			ba := b.ask("a").mustRun()
			assert.True(t, probe.fired())
			assert.Zero(t, d.c.Stats().Deadlocks)
			ab.mustWait()
			ba.let()
			b.let()
			assert.NoError(t, ab.err)
		})
	})
}
