package processlock_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

const ctYear = 365 * 24 * time.Hour

// ctContend makes n requests wait for each of the keys and lets them through,
// on whatever side of a bubble's edge it is called.
func ctContend(t *testing.T, c *processlock.Coordinator, n int, keys ...any) {
	for _, key := range keys {
		busy := ctHold(t, c, t.Context(), key)
		before := c.Stats()
		var all sync.WaitGroup
		for range n {
			all.Go(func() { assert.NoError(t, c.WithLock(t.Context(), key, ctNop)) })
		}
		ctAwaitWaiters(t, c, before.Waiting+int64(n))
		require.NoError(t, busy.finish())
		all.Wait()
	}
}

// One coordinator, and the same keys, serve the code outside and one bubble
// after the other, though channels made on one side are fatal on the other.
//
// Rule 37.
func TestDefaultServesBubblesInTurnAndTheCodeOutside(t *testing.T) {
	c := processlock.Default()
	keys := []any{t.Name(), 4711, []any{t.Name(), 1}}
	for range 20 {
		ctContend(t, c, 8, keys...)
		synctest.Test(t, func(t *testing.T) {
			ctContend(t, c, 8, keys...)
			client := func() *ctCall {
				ctx, client := c.WithClient(t.Context(), "w")
				defer client.Close()
				h := ctHold(t, c, ctx, keys[0])
				return h
			}()
			require.Equal(t, processlock.ErrLost, client.finish())
			time.Sleep(time.Hour)
			ctContend(t, c, 3, keys...)
		})
	}
	ctContend(t, c, 8, keys...)
	ctRequireIdle(t, c)
}

// A holder sleeps an hour: time passes, so those who wait for it are durably
// blocked, whatever they wait with.
//
// Rules 20 and 37.
func TestField_S1_WaitsAreDurablyBlocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		start := time.Now()
		var all sync.WaitGroup
		waits := func(ctx context.Context, want error, after time.Duration, opts ...processlock.Option) {
			all.Go(func() {
				err := c.WithLock(ctx, "k", ctNop, opts...)
				assert.ErrorIs(t, err, want)
				assert.Equal(t, after, time.Since(start))
			})
		}
		all.Go(func() {
			assert.NoError(t, c.WithLock(t.Context(), "k", func(context.Context) error {
				limited, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				waits(limited, context.DeadlineExceeded, 10*time.Minute)
				waits(t.Context(), processlock.ErrWaitTimeout, 20*time.Minute, processlock.MaxWait(20*time.Minute))
				waits(t.Context(), nil, time.Hour)
				waits(context.Background(), nil, time.Hour)
				time.Sleep(time.Hour)
				return nil
			}))
		})
		all.Go(func() {
			time.Sleep(2 * time.Hour)
			ctx := context.Background()
			assert.NoError(t, c.WithLock(ctx, "k", func(context.Context) error {
				all.Go(func() { assert.NoError(t, c.Shutdown(ctx)) })
				time.Sleep(time.Hour)
				return nil
			}))
			assert.Equal(t, 3*time.Hour, time.Since(start))
		})
		all.Wait()
		ctRequireIdle(t, &c)
	})
}

// Bubbles whose clocks run to other centuries leave no trace in what comes
// after, inside another bubble or outside.
//
// Rule 37.
func TestBubblesAreServedWhateverTheirClocks(t *testing.T) {
	c := processlock.New(processlock.Options{TrackHolds: true})
	for _, years := range []time.Duration{200, 1, 250, 0} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(years * ctYear)
			ctContend(t, c, 4, "k")
			start := time.Now()
			busy := ctHold(t, c, t.Context(), "k")
			err := c.WithLock(t.Context(), "k", ctNever(t), processlock.MaxWait(ctYear))
			require.ErrorIs(t, err, processlock.ErrWaitTimeout)
			require.Equal(t, ctYear, time.Since(start))
			held := c.Snapshot()
			require.Equal(t, ctYear, held.Taken.Sub(held.Locks[0].Holders[0].Since))
			require.NoError(t, busy.finish())
		})
		before := c.Stats().WaitDuration
		ctContend(t, c, 4, "k")
		require.Less(t, c.Stats().WaitDuration-before, time.Hour, "outside, real time counts")
	}
	require.GreaterOrEqual(t, c.Stats().WaitDuration, 4*ctYear)
	ctRequireIdle(t, c)
}

// Rule 41.
func TestWaitDurationStaysAtTheLargestRatherThanWrap(t *testing.T) {
	var c processlock.Coordinator
	last := time.Duration(0)
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			for _, key := range []any{"a", "b"} { // two parts of the table, most likely
				busy := ctHold(t, &c, t.Context(), key)
				granted := ctStart(t, &c, t.Context(), key)
				ctx, cancel := context.WithTimeout(t.Context(), 100*ctYear)
				defer cancel()
				require.Error(t, c.WithLock(ctx, key, ctNever(t)))
				require.NoError(t, busy.finish())
				require.NoError(t, granted.finish())
			}
		})
		now := c.Stats().WaitDuration
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	require.Equal(t, time.Duration(math.MaxInt64), last)
}

// Shared holders may stand on both sides of an edge as long as nobody waits
// across it. Whoever waits once the other side has left must not be handed what
// was made there: a channel made in a bubble ends the process outside, and one
// made outside stops a bubble's time. So both run in a process of their own.
//
// Rule 37.
func TestSharedHoldsMayOverlapABubblesEdge(t *testing.T) {
	for _, row := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"contended inside before, outside after", func(t *testing.T) { ctOverlapOutwards(t, false) }},
		{"the same, with a port left before the edge is crossed", func(t *testing.T) { ctOverlapOutwards(t, true) }},
		{"contended outside before, inside after", ctOverlapInwards},
		{"uncontended", ctOverlapUncontended},
	} {
		t.Run(row.name, func(t *testing.T) { ctInChild(t, row.run) })
	}
}

// ctOverlapOutwards: with spare, one who has waited inside leaves its port to the
// key before anybody outside joins.
func ctOverlapOutwards(t *testing.T, spare bool) {
	var c processlock.Coordinator
	inside, left := make(chan struct{}), make(chan struct{})
	joined, over := make(chan struct{}), make(chan struct{})
	go func() { // outside
		defer close(over)
		<-inside
		third := ctHold(t, &c, t.Context(), "k", processlock.Shared)
		close(joined)
		<-left
		last := ctStart(t, &c, t.Context(), "k")
		for c.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		assert.NoError(t, third.finish())
		assert.NoError(t, last.finish())
	}()
	synctest.Test(t, func(t *testing.T) {
		first := ctHold(t, &c, t.Context(), "k")
		second := ctStart(t, &c, t.Context(), "k", processlock.Shared)
		beside := ctStart(t, &c, t.Context(), "k", processlock.Shared)
		synctest.Wait()
		assert.NoError(t, first.finish())
		<-second.entered
		<-beside.entered
		if spare {
			assert.NoError(t, beside.finish())
		}
		close(inside)
		<-joined
		if !spare {
			assert.NoError(t, beside.finish())
		}
		assert.NoError(t, second.finish())
		close(left)
	})
	<-over
	ctRequireIdle(t, &c)
}

func ctOverlapInwards(t *testing.T) {
	var c processlock.Coordinator
	first := ctHold(t, &c, t.Context(), "k")
	second := ctStart(t, &c, t.Context(), "k", processlock.Shared)
	ctAwaitWaiters(t, &c, 1)
	require.NoError(t, first.finish())
	<-second.entered
	left := make(chan struct{})
	synctest.Test(t, func(t *testing.T) {
		third := ctHold(t, &c, t.Context(), "k", processlock.Shared)
		go func() { // a goroutine of the bubble that waits for one outside
			assert.NoError(t, second.finish())
			close(left)
		}()
		<-left
		err := c.WithLock(t.Context(), "k", ctNever(t), processlock.MaxWait(time.Hour))
		require.ErrorIs(t, err, processlock.ErrWaitTimeout)
		last := ctStart(t, &c, t.Context(), "k")
		synctest.Wait()
		require.NoError(t, third.finish())
		require.NoError(t, last.finish())
	})
	ctRequireIdle(t, &c)
}

func ctOverlapUncontended(t *testing.T) {
	var c processlock.Coordinator
	outer := ctHold(t, &c, t.Context(), "k", processlock.Shared)
	synctest.Test(t, func(t *testing.T) {
		inner := ctHold(t, &c, t.Context(), "k", processlock.Shared)
		require.Error(t, c.WithLock(t.Context(), "k", ctNever(t), processlock.IfAvailable))
		require.NoError(t, inner.finish())
	})
	require.NoError(t, outer.finish())
	ctContend(t, &c, 3, "k")
	ctRequireIdle(t, &c)
}

// Bubbles that run at once have keys of their own; they share the table, its
// mutexes and what it keeps for reuse.
//
// Rule 37.
func TestParallelBubblesWithKeysOfTheirOwn(t *testing.T) {
	var c processlock.Coordinator
	t.Run("bubbles", func(t *testing.T) {
		for b := range 3 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range 10 {
					synctest.Test(t, func(t *testing.T) {
						for k := range 100 {
							key := []any{b, k}
							busy := ctHold(t, &c, t.Context(), key)
							next := ctStart(t, &c, t.Context(), key, processlock.MaxWait(time.Hour))
							last := ctStart(t, &c, t.Context(), key, processlock.MaxWait(time.Minute))
							time.Sleep(time.Duration(k%2) * 2 * time.Minute)
							synctest.Wait()
							busy.letGo()
							next.letGo()
							last.letGo()
							assert.NoError(t, next.finish())
							assert.Equal(t, k%2 == 1, errors.Is(last.finish(), processlock.ErrWaitTimeout))
						}
					})
				}
			})
		}
	})
	ctContend(t, &c, 3, []any{0, 0}, []any{1, 0})
	ctRequireIdle(t, &c)
}
