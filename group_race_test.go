package processlock_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Where MaxWait runs out while the key is handed over, the task runs or is
// skipped, never both, never neither, and nobody hangs.
//
// Rules 20, 38 and 41.
func TestGroupMaxWaitMeetsTheGrantStorm(t *testing.T) {
	end := time.Now().Add(ltStress(t))
	for round := 0; round == 0 || time.Now().Before(end); round++ {
		var c processlock.Coordinator
		root := processlock.WithCoordinator(t.Context(), &c)
		g, _ := processlock.NewGroup(root, "g")
		g.SetLimit(round % 3)
		const n = 200
		var ran, calls atomic.Int64
		var inside ltInside
		task := func(context.Context) error {
			defer inside.enter(false)()
			ran.Add(1)
			return nil
		}
		var all sync.WaitGroup
		all.Go(func() {
			for range n {
				calls.Add(1)
				_ = c.WithLock(root, "k", func(context.Context) error {
					defer inside.enter(false)()
					runtime.Gosched()
					return nil
				})
			}
		})
		for i := range n {
			if i%3 == 0 {
				g.GoLocked(processlock.All("j", "k"), task, processlock.MaxWait(time.Duration(i%40)*time.Microsecond+1))
			} else {
				g.GoLocked("k", task, processlock.MaxWait(time.Duration(i%40)*time.Microsecond+1))
			}
			ctYield(i % 2)
		}
		w := gtWaits(g)
		ctWithin(t, w.over, "Wait")
		all.Wait()
		require.NoError(t, w.err)
		require.EqualValues(t, n, int(ran.Load())+g.Skipped())
		require.False(t, inside.broken.Load())
		st := c.Stats()
		require.EqualValues(t, g.Skipped(), st.Unavailable)
		require.Zero(t, st.Canceled+st.Closed+st.Deadlocks+st.Lost)
		require.GreaterOrEqual(t, st.Acquired, ran.Load()+calls.Load())
		ctRequireIdle(t, &c)
	}
}

// A task whose context is done by the time that it gets the first of its keys
// does not ask for the next.
//
// Rules 8, 10 and 32.
func TestGroupAsksForNoFurtherKeyUnderADoneContext(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what is started last runs first
	for range 20 {
		var c processlock.Coordinator
		root := processlock.WithCoordinator(t.Context(), &c)
		require.NoError(t, c.WithLock(root, "b", func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			var g *processlock.Group
			_ = c.WithLock(root, "a", func(context.Context) error {
				g, _ = processlock.NewGroup(ctx, "g")
				g.GoLocked(processlock.All("a", "b"), ctNever(t))
				cancel()
				return nil
			})
			err := g.Wait()
			assert.ErrorIs(t, err, context.Canceled)
			assert.NotErrorIs(t, err, processlock.ErrDeadlock)
			return nil
		}))
		require.Zero(t, c.Stats().Deadlocks)
		ctRequireIdle(t, &c)
	}
}

// A context may have ended with any cause, such as another call's ErrWaitTimeout.
// A task that ends by that was not skipped.
//
// Rules 9 and 20.
func TestGroupCountsNoCauseOfAContextAsSkipped(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that Shutdown comes before the group has noticed
	var c processlock.Coordinator
	root, cancel := context.WithCancelCause(processlock.WithCoordinator(t.Context(), &c))
	var g *processlock.Group
	require.NoError(t, c.WithLock(root, "k", func(context.Context) error {
		g, _ = processlock.NewGroup(root, "g")
		g.GoLocked("k", ctNever(t))
		cancel(processlock.ErrWaitTimeout)
		done, stop := context.WithCancel(context.Background())
		stop()
		assert.ErrorIs(t, c.Shutdown(done), context.Canceled)
		return nil
	}))
	err := g.Wait()
	assert.Zero(t, g.Skipped())
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, processlock.ErrWaitTimeout)
	ctRequireIdle(t, &c)
}
