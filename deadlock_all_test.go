package processlock

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What All has taken so far is held, and a cycle may lead through it.
//
// Rules 23 and 31.
func TestDeadlockThroughPartialAll(t *testing.T) {
	t.Run("partner", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			c := d.ask("c")
			all := d.ask(All("a", "b", "c", "d")).mustWait()
			c.ask("d").mustRun().let() // not taken yet
			c.ask("a", IfAvailable).mustFail(ErrUnavailable)
			c.ask("a").mustBeVictim("a", "c")
			c.ask("b", Shared).mustBeVictim("b", "c")
			all.mustWait()
			c.let()
			all.mustRun()
		})
	})
	t.Run("victim", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, c := d.ask("a"), d.ask("c")
			all := d.ask(All("c", "b", "a")).mustWait()
			ca := c.ask("a").mustWait()
			// All comes first in a's queue, takes b, and wants c.
			a.let()
			all.mustBeVictim("c", "a")
			// Nothing stays held, and who wanted a has it.
			ca.mustRun()
			d.ask("b", IfAvailable).mustRun()
		})
	})
	t.Run("its own first key", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			b := d.ask("b")
			b.ask(All("a", "b")).mustBeVictim("b")
			b.ask(All("a", "b"), IfAvailable).mustFail(ErrUnavailable)
			d.ask("a", IfAvailable).mustRun()
		})
	})
	t.Run("two shared", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			b := d.ask("b")
			all := d.ask(All("a", "b"), Shared).mustWait()
			b.ask("a", Shared).mustRun().let()
			b.ask("a").mustBeVictim("a", "b")
			all.mustWait()
		})
	})
}

// All in an fn is a request under that fn's hold, for its first key as for its
// last.
//
// Rules 23 and 31.
func TestDeadlockNestedAll(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		one, two := d.ask(All("a", "b")), d.ask(All("c", "d"))
		waiting := one.ask(All("d", "e")).mustWait()
		two.ask(All("b", "f")).mustBeVictim("b", "d")
		two.ask(All("f", "b", "e")).mustBeVictim("b", "d")
		two.ask("f", IfAvailable).mustRun().let()
		waiting.mustWait()
		two.let()
		waiting.mustRun()
	})
}

// Calls for several keys take them in one order, whatever order they name, so
// they wait in turn and never in a circle.
//
// Rule 23.
func TestDeadlockNeverAmongAlls(t *testing.T) {
	keys := []any{"a", "b", "c"}
	for _, first := range dtOrders(len(keys)) {
		for _, mode := range [][]Option{nil, {Shared}} {
			dtBubble(t, Options{}, func(d *dtScene) {
				for _, k := range keys {
					d.ask(k)
				}
				var alls []*dtCall
				for subset := 1; subset < 8; subset++ {
					for _, order := range dtOrders(len(keys)) {
						var some []any
						for _, i := range order {
							if subset&(1<<i) != 0 {
								some = append(some, keys[i])
							}
						}
						opts := mode
						if len(alls)%3 == 0 {
							opts = nil
						}
						alls = append(alls, d.ask(All(some...), opts...).mustWait())
					}
				}
				for _, i := range first {
					d.calls[i].let()
				}
				require.Empty(t, d.drain())
				for _, x := range alls {
					assert.NoError(t, x.err)
				}
			})
		}
	}
}

// Reentrant takes over what the lineage holds and asks for the rest, which may
// close a cycle.
//
// Rules 22, 23 and 31.
func TestDeadlockReentrantAll(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		b := d.ask("b")
		all := b.ask(All("a", "b", "c"), Reentrant).mustRun()
		assert.EqualValues(t, 3, d.c.Stats().Held)
		all.ask(All("c", "a"), Reentrant).mustRun().let()
		assert.EqualValues(t, 3, d.c.Stats().Held)
		all.let()
		assert.EqualValues(t, 1, d.c.Stats().Held)
		d.ask("b", IfAvailable).mustFail(ErrUnavailable)

		c := d.ask("c")
		waiting := b.ask(All("a", "b", "c"), Reentrant).mustWait()
		c.ask("a").mustBeVictim("a", "c")
		c.ask("b").mustBeVictim("b", "c")
		c.let()
		waiting.mustRun()
	})
	// A shared hold doesn't serve an exclusive request; nothing stays held.
	dtBubble(t, Options{}, func(d *dtScene) {
		b := d.ask("b", Shared)
		b.ask(All("a", "b"), Reentrant).mustBeVictim("b")
		b.ask(All("a", "b"), Reentrant, IfAvailable).mustFail(ErrUnavailable)
		b.ask(All("a", "b"), Reentrant, Shared).mustRun().let()
		assert.EqualValues(t, 1, d.c.Stats().Held)
	})
}
