package processlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pfLock is key's row in a snapshot; a row without anything if there is none.
func pfLock(c *processlock.Coordinator, key any) processlock.LockState {
	for _, l := range c.Snapshot().Locks {
		if l.Key.Canonical() == processlock.MustKey(key).Canonical() {
			return l
		}
	}
	return processlock.LockState{}
}

// pfShape is who holds key and who waits for it, a letter each: "SS/XS".
func pfShape(c *processlock.Coordinator, key any) (shape string) {
	letter := map[processlock.Mode]string{processlock.ModeExclusive: "X", processlock.ModeShared: "S"}
	l := pfLock(c, key)
	for _, h := range l.Holders {
		shape += letter[h.Mode]
	}
	shape += "/"
	for _, w := range l.Waiters {
		shape += letter[w.Mode]
	}
	return shape
}

// pfArrive starts a request a letter, as in the queue tests.
func pfArrive(t *testing.T, c *processlock.Coordinator, letters string) (calls []*ltCall) {
	for _, letter := range []byte(letters) {
		calls = append(calls, ltGo(t.Context(), c, "k", ltMode(letter)...))
	}
	return calls
}

// A snapshot shows each phase of a queue as a whole: the shared neighbours
// enter together, before one of them leaves, and never beside an exclusive.
//
// Rules 1, 4 and 39.
func TestPeer_W34_W35_SnapshotShowsThePhasesOfAQueue(t *testing.T) {
	for _, row := range []struct {
		arrivals string
		phases   []string
	}{
		{"XSSSSS", []string{"X/SSSSS", "SSSSS/", "/"}},
		{"SSSSSXSSSSS", []string{"SSSSS/XSSSSS", "X/SSSSS", "SSSSS/", "/"}},
	} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			calls := pfArrive(t, c, row.arrivals)
			for _, phase := range row.phases {
				require.Equal(t, phase, pfShape(c, "k"))
				for _, i := range ltRunning(calls) {
					close(calls[i].gate)
				}
				synctest.Wait()
			}
		})
	}
}

// Shared requests for three keys, twice round, are all inside at once, and each
// key lists its two in the order of their coming.
//
// Rules 3, 4 and 39.
func TestPeer_W36_SharedHoldersAreListedInOrder(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var calls []*ltCall
		for round := range 2 {
			for _, key := range []string{"a", "b", "c"} {
				ctx, cl := c.WithClient(t.Context(), fmt.Sprint(key, round))
				defer cl.Close()
				calls = append(calls, ltGo(ctx, c, key, processlock.Shared))
			}
		}
		assert.Len(t, ltRunning(calls), 6)
		for _, key := range []string{"a", "b", "c"} {
			holders := pfLock(c, key).Holders
			require.Len(t, holders, 2)
			assert.Equal(t, []string{key + "0", key + "1"}, []string{holders[0].Client, holders[1].Client})
		}
		for _, call := range calls {
			call.open()
		}
	})
}

// The list of those who wait is in the order of their coming, not in one that
// is theirs: the same three come in another order to the same key again.
//
// Rules 3 and 39.
func TestPeer_W50_WaitersAreListedInOrderOfArrival(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		contexts := make(map[string]context.Context)
		for _, name := range []string{"A", "B", "C"} {
			ctx, cl := c.WithClient(t.Context(), name)
			defer cl.Close()
			contexts[name] = ctx
		}
		for _, order := range [][]string{{"A", "B", "C"}, {"C", "A", "B"}} {
			calls := []*ltCall{ltGo(t.Context(), c, "k")}
			for _, name := range order {
				calls = append(calls, ltGo(contexts[name], c, "k"))
			}
			var listed []string
			for _, w := range pfLock(c, "k").Waiters {
				listed = append(listed, w.Client)
			}
			assert.Equal(t, order, listed)
			for _, call := range calls {
				call.open()
				ltServed(t, call)
			}
		}
	})
}

// Each hold and each wait is one row with its mode, and a try that failed is
// none.
//
// Rules 19 and 39.
func TestPeer_W55_W57_W58_W59_EachHoldAndWaitIsOneRow(t *testing.T) {
	for arrivals, want := range map[string]string{
		"X":   "X/",   // W55
		"S":   "S/",   // W55
		"XX":  "X/X",  // W57
		"SS":  "SS/",  // W58
		"XSS": "X/SS", // W59
	} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			calls := pfArrive(t, c, arrivals)
			assert.ErrorIs(t, c.WithLock(t.Context(), "k", ctNever(t), processlock.IfAvailable), processlock.ErrUnavailable)
			assert.Equal(t, want, pfShape(c, "k"))
			assert.Len(t, c.Snapshot().Locks, 1)
			for _, call := range calls {
				close(call.gate)
			}
		})
	}
}

// The same from the inside of nested fns, where the calls are their own.
//
// Rule 39.
func TestPeer_W56_W58_NestedHoldsAreListedOnceEach(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		assert.NoError(t, c.WithLock(t.Context(), "one", func(ctx context.Context) error {
			return c.WithLock(ctx, "two", func(ctx context.Context) error {
				assert.Equal(t, []string{"X/", "S/"}, []string{pfShape(c, "one"), pfShape(c, "two")})
				return c.WithLock(ctx, "two", func(context.Context) error {
					assert.Equal(t, []string{"X/", "SS/"}, []string{pfShape(c, "one"), pfShape(c, "two")})
					assert.Len(t, c.Snapshot().Locks, 2)
					return nil
				}, processlock.Shared)
			}, processlock.Shared)
		}))
	})
}

// Two that each hold what the other waits for, unseen since they wait with
// contexts that are not their fns': somebody else sees both holds and both
// waits, and cancelling sets both free. Seen, the second would be refused.
//
// Rules 9, 31 and 39.
func TestPeer_W62_SnapshotShowsTwoThatWaitForEachOther(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var calls []*ltCall
		var cancels []context.CancelFunc
		for _, keys := range [][2]string{{"a", "b"}, {"b", "a"}} {
			ctx, cl := c.WithClient(t.Context(), "holder of "+keys[0])
			defer cl.Close()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			cancels = append(cancels, cancel)
			calls = append(calls, ltGoLast(ctx, c, keys[0], func(ctx context.Context) error {
				return c.WithLock(processlock.Detach(ctx), keys[1], ltNop)
			}))
		}
		for _, call := range calls {
			call.open()
		}
		for _, keys := range [][2]string{{"a", "b"}, {"b", "a"}} {
			require.Equal(t, "X/X", pfShape(c, keys[0]))
			assert.Equal(t, "holder of "+keys[0], pfLock(c, keys[0]).Holders[0].Client)
			assert.Equal(t, "holder of "+keys[1], pfLock(c, keys[0]).Waiters[0].Client)
		}
		assert.Equal(t, []string{"runs", "runs"}, ltStates(calls...))
		cancels[0]() // which lets the other in
		synctest.Wait()
		assert.Equal(t, []string{"over", "over"}, ltStates(calls...))
		assert.ErrorIs(t, calls[0].err, context.Canceled)
		assert.NoError(t, calls[1].err)
	})
}

// One holds and one waits; however the two end, the next two on the key are
// again one that holds and one that waits.
//
// Rules 3, 5, 15, 25 and 34.
func TestPeer_W105_NothingOfOneGenerationReachesTheNext(t *testing.T) {
	for name, end := range map[string]func(cancel, closeClient func(), holder, waiter *ltCall){
		"return":  func(_, _ func(), holder, waiter *ltCall) { holder.open(); waiter.open() },
		"cancel":  func(cancel, _ func(), holder, _ *ltCall) { cancel(); holder.open() },
		"release": func(cancel, _ func(), holder, waiter *ltCall) { close(holder.gate); cancel(); close(waiter.gate) },
		"close":   func(_, closeClient func(), holder, _ *ltCall) { closeClient(); holder.open() },
	} {
		t.Run(name, func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				for range 3 {
					ctx, cl := c.WithClient(t.Context(), "w")
					waits, cancel := context.WithCancel(ctx)
					holder, waiter := ltGo(ctx, c, "k"), ltGo(waits, c, "k")
					assert.Equal(t, []string{"runs", "waits"}, ltStates(holder, waiter))
					assert.Equal(t, "X/X", pfShape(c, "k"))
					end(cancel, cl.Close, holder, waiter)
					synctest.Wait()
					assert.Equal(t, []string{"over", "over"}, ltStates(holder, waiter))
					assert.Empty(t, c.Snapshot().Locks)
					cancel()
					cl.Close()
				}
			})
		})
	}
}
