package processlock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The last request of a cycle to arrive is the one that fails, whichever link
// it is; the others wait on, get their keys and finish.
//
// Rules 31 and 32.
func TestDeadlockCycleFailsTheLastToArrive(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		for _, order := range dtOrders(n) {
			t.Run(fmt.Sprint("keys=", n, "/order=", order), func(t *testing.T) {
				dtBubble(t, Options{}, func(d *dtScene) {
					var outer, inner []*dtCall
					for i := range n {
						outer = append(outer, d.ask(i).mustRun())
						inner = append(inner, nil)
					}
					for _, i := range order[:n-1] {
						inner[i] = outer[i].ask((i + 1) % n).mustWait()
					}
					last := order[n-1]
					inner[last] = outer[last].ask((last + 1) % n)
					var cycle []any
					for step := range n {
						cycle = append(cycle, (last+1+step)%n)
					}
					inner[last].mustBeVictim(cycle...)
					for _, i := range order[:n-1] {
						inner[i].mustWait()
					}

					assert.Empty(t, d.drain())
					for i, x := range inner {
						assert.Equal(t, i != last, x.ran.Load(), "inner call %d ran", i)
					}
					s := d.c.Stats()
					assert.EqualValues(t, 1, s.Deadlocks)
					assert.EqualValues(t, 2*n-1, s.Acquired)
					assert.EqualValues(t, n-1, s.Waited)
				})
			})
		}
	}
}

// dtOrders returns all orders of three things or fewer, and a few of more.
func dtOrders(n int) [][]int {
	up := make([]int, n)
	for i := range up {
		up[i] = i
	}
	if n > 3 {
		down, mixed := slices.Clone(up), make([]int, n)
		slices.Reverse(down)
		for i := range mixed {
			mixed[i] = i * 7 % n
		}
		return [][]int{up, down, mixed}
	}
	var orders [][]int
	var extend func(order, rest []int)
	extend = func(order, rest []int) {
		if len(rest) == 0 {
			orders = append(orders, order)
		}
		for i, v := range rest {
			extend(append(slices.Clone(order), v), slices.Delete(slices.Clone(rest), i, i+1))
		}
	}
	extend(nil, up)
	return orders
}

// A victim whose fn goes on with the error can ask again when the way is free.
//
// Rule 31.
func TestDeadlockVictimMayAskAgain(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		ab := a.ask("b").mustWait()
		b.ask("a").mustBeVictim("a", "b")
		b.ask("a").mustBeVictim("a", "b")
		ab.cancel()
		synctest.Wait()
		ba := b.ask("a").mustWait()
		a.let()
		ba.mustRun()
	})
}

// Waits that lead to a running fn are no cycle, however long the chain.
//
// Rule 32.
func TestDeadlockChainIsNoCycle(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		const n = 20
		var outer, inner []*dtCall
		for i := range n {
			outer = append(outer, d.ask(i))
		}
		for i := range n - 1 {
			inner = append(inner, outer[i].ask(i+1).mustWait())
		}
		// Both ends, and the middle, get more requests that wait.
		d.ask(0).mustWait()
		outer[n/2].ask(n - 1).mustWait()
		outer[n-1].ask("free").mustRun().let()

		assert.Empty(t, d.drain())
		for _, x := range inner {
			assert.NoError(t, x.err)
		}
		assert.Zero(t, d.c.Stats().Deadlocks)
	})
}

// An exclusive request needs every shared holder, so one of them is enough to
// close a cycle.
//
// Rule 31.
func TestDeadlockThroughOneOfManySharedHolders(t *testing.T) {
	for culprit := range 4 {
		dtBubble(t, Options{}, func(d *dtScene) {
			var readers []*dtCall
			for range 4 {
				readers = append(readers, d.ask("a", Shared).mustRun())
			}
			b := d.ask("b")
			readers[culprit].ask("b").mustWait()
			e := b.ask("a").mustBeVictim("a", "b")
			assert.Equal(t, ModeShared, e.Cycle[0].Mode)
			assert.Equal(t, ModeExclusive, e.Cycle[1].Mode)
		})
	}
	// The other way round: the writer waits already.
	dtBubble(t, Options{}, func(d *dtScene) {
		d.ask("a", Shared)
		reader := d.ask("a", Shared)
		b := d.ask("b")
		writer := b.ask("a").mustWait()
		reader.ask("b", Shared).mustBeVictim("b", "a")
		assert.Empty(t, d.drain())
		assert.NoError(t, writer.err)
	})
}

// A shared request behind a queued exclusive one waits for the shared holder
// that the exclusive one waits for; without it, it is granted.
//
// Rules 4 and 31.
func TestDeadlockReaderBehindQueuedWriter(t *testing.T) {
	for _, tt := range []struct {
		name          string
		writer        bool
		readerIsLast  bool
		victim, waits bool
	}{
		{name: "no writer/reader last"},
		{name: "writer/reader last", writer: true, readerIsLast: true},
		{name: "writer/reader first", writer: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dtBubble(t, Options{}, func(d *dtScene) {
				a, b := d.ask("a", Shared), d.ask("b")
				var writer *dtCall
				if tt.writer {
					writer = d.ask("a").mustWait()
				}
				switch {
				case !tt.writer:
					a.ask("b").mustWait()
					b.ask("a", Shared).mustRun()
				case tt.readerIsLast:
					ab := a.ask("b").mustWait()
					b.ask("a", Shared).mustBeVictim("a", "b")
					ab.mustWait()
				default:
					ba := b.ask("a", Shared).mustWait()
					a.ask("b").mustBeVictim("b", "a")
					ba.mustWait()
				}
				require.Empty(t, d.drain())
				if writer != nil {
					assert.NoError(t, writer.err)
				}
			})
		})
	}
}

// A key's text may be the same in two coordinators; the locks have nothing to
// do with each other, but the search sees both.
//
// Rule 31.
func TestDeadlockAcrossCoordinators(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		other := New(Options{})
		a := d.ask("a")
		a.askOn(other, "a").mustRun().let() // not its own key

		b := d.begin(nil, other, context.Background(), false, "b")
		synctest.Wait()
		ab := a.askOn(other, "b").mustWait()
		b.askOn(d.c, "a").mustBeVictim("a", "b")
		assert.EqualValues(t, 1, d.c.Stats().Deadlocks)
		assert.Zero(t, other.Stats().Deadlocks)
		ab.mustWait()

		assert.Empty(t, d.drain())
		assert.NoError(t, ab.err)
		dtAssertNothingLeft(t, other)
	})
}

// A try never waits, so it is in no cycle.
//
// Rules 19 and 31.
func TestDeadlockNeverForATry(t *testing.T) {
	for _, try := range []Option{IfAvailable, MaxWait(0), MaxWait(-1)} {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a"), d.ask("b")
			a.ask("b").mustWait()
			b.ask("a", try).mustFail(ErrUnavailable)
			b.ask("b", try).mustFail(ErrUnavailable)
			b.ask("b", try, Shared).mustFail(ErrUnavailable)
			assert.Zero(t, d.c.Stats().Deadlocks)
		})
	}
}

// A deadline would end the wait, and so would MaxWait, but too late to be
// called anything else than a deadlock.
//
// Rule 31.
func TestDeadlockWhateverBoundsTheWaits(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second []Option
	}{
		{name: "victim", second: []Option{MaxWait(1)}},
		{name: "partner", first: []Option{MaxWait(1)}},
		{name: "both", first: []Option{MaxWait(1)}, second: []Option{MaxWait(1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dtBubble(t, Options{}, func(d *dtScene) {
				a, b := d.ask("a"), d.ask("b")
				ab := a.ask("b", tt.first...).mustWait()
				b.ask("a", tt.second...).mustBeVictim("a", "b")
				ab.mustWait() // time stands still in a quiet bubble
			})
		})
	}
}
