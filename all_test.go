package processlock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ltHolders renders the keys of a snapshot that have a holder, with a question
// mark if that does not run.
func ltHolders(c *processlock.Coordinator) []string {
	held := []string{}
	for _, l := range c.Snapshot().Locks {
		for _, h := range l.Holders {
			text := l.Key.String()
			if !h.Running {
				text += "?"
			}
			held = append(held, text)
		}
	}
	return held
}

// Rule 23.
func TestAllHoldsEveryKey(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		call := ltGo(t.Context(), c, processlock.All("b", "a", 3))
		assert.ElementsMatch(t, []string{`["a"]`, `["b"]`, `[3]`}, ltHolders(c))
		for _, key := range []any{"a", "b", 3} {
			assert.False(t, ltFree(c, key), key)
		}
		assert.Equal(t, int64(3), c.Stats().Acquired)
		call.open()
		ltServed(t, call)
	})
}

// The keys are taken in canonical order, however they are listed: of three, the
// one before the busy one is held and the one behind it is not.
//
// Rule 23.
func TestAllTakesTheKeysInCanonicalOrder(t *testing.T) {
	for _, keys := range [][]any{{"a", "b", "d"}, {"d", "b", "a"}, {"b", "d", "a"}} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			b := ltGo(t.Context(), c, "b")
			call := ltGo(t.Context(), c, processlock.All(keys...))
			assert.Equal(t, "waits", call.state())
			assert.Equal(t, []string{`["a"]?`, `["b"]`}, ltHolders(c))
			assert.False(t, ltFree(c, "a"))
			assert.True(t, ltFree(c, "d"))
			b.open()
			assert.Equal(t, []string{`["a"]`, `["b"]`, `["d"]`}, ltHolders(c))
			call.open()
		})
	}
}

// "canonical order" is that of the texts: a string of length 9 comes before one
// of length 10 only where its text does, and numbers come before strings.
//
// Rule 23.
func TestAllOrdersByCanonicalText(t *testing.T) {
	keys := []any{"z", "aa", 10, 9, -1, []any{"a", 1}, []any{}, true, nil, []byte("b")}
	want := make([]processlock.Key, len(keys))
	for i, k := range keys {
		want[i] = processlock.MustKey(k)
	}
	slices.SortFunc(want, func(a, b processlock.Key) int {
		if a.Canonical() < b.Canonical() {
			return -1
		}
		return 1
	})
	got, err := processlock.Resolve(processlock.All(keys...))
	assert.NoError(t, err)
	assert.Equal(t, want, got.Keys)

	// And it is the order in which they are really taken: the row of the key
	// that is waited for divides those that are held from those that are not.
	for i, busy := range want {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			holder := ltGo(t.Context(), c, busy)
			call := ltGo(t.Context(), c, processlock.All(keys...))
			for j, k := range want {
				assert.Equal(t, j > i, ltFree(c, k), "%v while %v is busy", k, busy)
			}
			holder.open()
			call.open()
			ltServed(t, call)
		})
	}
}

// Rule 23.
func TestAllWaitsInEachKeysOwnOrder(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		a, b := ltGo(t.Context(), c, "a"), ltGo(t.Context(), c, "b")
		beforeA := ltGo(t.Context(), c, "a")
		call := ltGo(t.Context(), c, processlock.All("a", "b"))
		behindA := ltGo(t.Context(), c, "a")
		beforeB := ltGo(t.Context(), c, "b") // the call isn't in b's queue yet
		a.open()
		assert.Equal(t, []string{"runs", "waits", "waits"}, ltStates(beforeA, call, behindA))
		beforeA.open()
		behindB := ltGo(t.Context(), c, "b") // now it is
		b.open()
		assert.Equal(t, []string{"runs", "waits", "waits", "waits"}, ltStates(beforeB, call, behindA, behindB))
		beforeB.open()
		assert.Equal(t, []string{"runs", "waits", "waits"}, ltStates(call, behindA, behindB))
		call.open()
		assert.Equal(t, []string{"runs", "runs"}, ltStates(behindA, behindB))
		behindA.open()
		behindB.open()
	})
}

// Rule 23.
func TestAllTakesEachKeyOnce(t *testing.T) {
	rows := map[string]processlock.Keys{
		"same":     processlock.All("a", "a", "a"),
		"spelling": processlock.All("a", []any{"a"}, []string{"a"}, processlock.MustKey("a")),
		"inside":   processlock.All("a", processlock.All("a", processlock.All("a"))),
	}
	for name, keys := range rows {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			call := ltGo(t.Context(), c, keys)
			assert.Equal(t, "runs", call.state(), name)
			assert.Equal(t, int64(1), c.Stats().Acquired, name)
			call.open()
			ltServed(t, call)
		})
	}
}

// Rule 23.
func TestAllInsideAllIsItsKeys(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		call := ltGo(t.Context(), c, processlock.All("d", processlock.All("b", processlock.All(), "a")))
		assert.Equal(t, []string{`["a"]`, `["b"]`, `["d"]`}, ltHolders(c))
		call.open()
	})
}

// Rule 23.
func TestAllOfNoKeysRunsFn(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		for _, keys := range []processlock.Keys{processlock.All(), processlock.All(processlock.All()), {}} {
			for _, opts := range [][]processlock.Option{nil, {processlock.IfAvailable}, {processlock.Reentrant, processlock.Shared}} {
				ran := false
				assert.NoError(t, c.WithLock(t.Context(), keys, func(context.Context) error {
					ran = true
					return nil
				}, opts...))
				assert.True(t, ran)
			}
		}
	})
}

// Whatever ends the wait for the second key, the first is given up.
//
// Rules 5 and 23.
func TestFailedAllLeavesNothingHeld(t *testing.T) {
	for _, leaver := range ltLeavers {
		t.Run(leaver.name, func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				ctx, opts, leave := leaver.prepare(t.Context(), c)
				b := ltGo(t.Context(), c, "b")
				call := ltGo(ctx, c, processlock.All("a", "b", "d"), opts...)
				behind := ltGo(t.Context(), c, "a")
				assert.Equal(t, []string{"waits", "waits"}, ltStates(call, behind))
				leave()
				synctest.Wait()
				ltRefused(t, call, leaver.want)
				assert.Equal(t, "runs", behind.state(), "a was not handed on")
				assert.Equal(t, []string{`["a"]`, `["b"]`}, ltHolders(c))
				behind.open()
				b.open()
			})
		})
	}
}

// Rules 19 and 23.
func TestAllIfAvailableWaitsForNothing(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		for _, busy := range []string{"a", "b", "d"} {
			holder := ltGo(t.Context(), c, busy)
			call := ltGo(t.Context(), c, processlock.All("a", "b", "d"), processlock.IfAvailable)
			ltRefused(t, call, processlock.ErrUnavailable)
			var refusal *processlock.AcquireError
			require.ErrorAs(t, call.err, &refusal)
			assert.Equal(t, processlock.MustKey(busy), refusal.Key)
			assert.Len(t, ltHolders(c), 1)
			holder.open()
		}
		assert.Zero(t, c.Stats().Waited)
	})
}

// Rule 23.
func TestSharedAllIsSharedInEveryKey(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		one := ltGo(t.Context(), c, processlock.All("a", "b"), processlock.Shared)
		two := ltGo(t.Context(), c, processlock.All("b", "a"), processlock.Shared)
		single := ltGo(t.Context(), c, "b", processlock.Shared)
		exclusive := ltGo(t.Context(), c, "b")
		assert.Equal(t, []string{"runs", "runs", "runs", "waits"}, ltStates(one, two, single, exclusive))
		for _, call := range []*ltCall{one, two, single, exclusive} {
			call.open()
			ltServed(t, call)
		}
	})
}

// What All has taken counts in the deadlock search, in both directions: for who
// waits for it, and for what it waits for.
//
// Rules 23 and 31.
func TestWhatAllHasTakenCountsAsHeld(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		b := ltGo(t.Context(), c, "b")
		call := ltGo(t.Context(), c, processlock.All("a", "b"))
		err := c.WithLock(b.ctx, "a", ltNop)
		assert.ErrorIs(t, err, processlock.ErrDeadlock)
		b.open()
		assert.Equal(t, "runs", call.state())
		call.open()
	})
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		b := ltGo(t.Context(), c, "b")
		a := ltGo(t.Context(), c, "a")
		call := ltGo(t.Context(), c, processlock.All("a", "b"))
		inner := ltGo(b.ctx, c, "a")
		a.open()
		// The call has a and comes to b, whose fn waits for a.
		ltRefused(t, call, processlock.ErrDeadlock)
		assert.Equal(t, "runs", inner.state())
		inner.open()
		b.open()
	})
}

// Rules 22 and 23.
func TestReentrantAllTakesOverWhatIsHeld(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		outer := ltGo(t.Context(), c, "b")
		outside := ltGo(t.Context(), c, "b")
		ltRefused(t, ltGo(outer.ctx, c, processlock.All("a", "b")), processlock.ErrDeadlock)
		assert.True(t, ltFree(c, "a"))

		a := ltGo(t.Context(), c, "a")
		inner := ltGo(outer.ctx, c, processlock.All("d", "a", "b"), processlock.Reentrant)
		assert.Equal(t, "waits", inner.state(), "it asks for the others")
		a.open()
		assert.Equal(t, []string{`["a"]`, `["b"]`, `["d"]`}, ltHolders(c))
		// From inside all three are the lineage's.
		assert.NoError(t, c.WithLock(inner.ctx, processlock.All("a", "b", "d"), ltNop, processlock.Reentrant))
		inner.open()
		ltServed(t, inner)
		assert.Equal(t, []string{`["b"]`}, ltHolders(c))
		assert.Equal(t, "waits", outside.state())
		outer.open()
		outside.open()
	})
}

// Rule 23.
func TestAllRequestsNeverDeadlockAmongThemselves(t *testing.T) {
	c := processlock.New(processlock.Options{})
	inside := make([]ltInside, 8)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 9))
			for range 300 {
				picked := r.Perm(len(inside))[:2+r.IntN(4)]
				keys := make([]any, len(picked))
				for i, k := range picked {
					keys[i] = k
				}
				shared := r.IntN(3) == 0
				var opts []processlock.Option
				if shared {
					opts = append(opts, processlock.Shared)
				}
				assert.NoError(t, c.WithLock(context.Background(), processlock.All(keys...), func(context.Context) error {
					for _, k := range picked {
						defer inside[k].enter(shared)()
					}
					return nil
				}, opts...))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("they wait for each other: %+v", c.Snapshot().Locks)
	}
	for k := range inside {
		assert.False(t, inside[k].broken.Load(), "key %d", k)
	}
	ltIdle(t, c)
}
