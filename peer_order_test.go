package processlock_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A release with nobody waiting clears the key too, every time.
//
// Rules 19 and 34.
func TestPeer_W25_KeyWithoutWaitersIsAvailableAgain(t *testing.T) {
	c := processlock.New(processlock.Options{})
	require.NoError(t, c.WithLock(t.Context(), "one", func(ctx context.Context) error {
		for range 1000 {
			require.NoError(t, c.WithLock(ctx, "two", ltNop))
			require.NoError(t, c.WithLock(ctx, "two", ltNop, processlock.IfAvailable))
		}
		return nil
	}))
	assert.Zero(t, c.Stats().Unavailable)
	ltIdle(t, c)
}

// A request that waits holds up nobody who came later for another key.
//
// Rules 2 and 3.
func TestPeer_W32_LaterRequestForAnotherKeyPassesOneThatWaits(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var order []string
		note := func(key string) func(context.Context) error {
			return func(context.Context) error {
				order = append(order, key)
				return nil
			}
		}
		holder := ltGo(t.Context(), c, "a")
		a := ltGoLast(t.Context(), c, "a", note("a"))
		b := ltGoLast(t.Context(), c, "b", note("b"))
		assert.Equal(t, []string{"runs", "waits", "runs"}, ltStates(holder, a, b))
		b.open()
		holder.open()
		a.open()
		assert.Equal(t, []string{"b", "a"}, order)
	})
}

// Shared ones run together, the exclusive one waits for the last of them and is
// then alone, and another key has nothing to do with it.
//
// Rules 1, 2 and 4.
func TestPeer_W33_SharedTogetherThenTheExclusiveAlone(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		calls := pfArrive(t, c, "SSSX")
		other := ltGo(t.Context(), c, "other")
		assert.Equal(t, []string{"SSS/X", "X/"}, []string{pfShape(c, "k"), pfShape(c, "other")})
		assert.Equal(t, "runs", other.state())
		for _, shared := range calls[:3] {
			assert.Equal(t, "waits", calls[3].state())
			shared.open()
		}
		assert.Equal(t, "X/", pfShape(c, "k"))
		assert.Equal(t, "runs", calls[3].state())
		calls[3].open()
		other.open()
	})
}

// A context that could have ended did not, and what becomes of it afterwards
// reaches nobody.
//
// Rules 11 and 12.
func TestPeer_W77_CancelAfterTheCallHasNoEffect(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		holder := ltGo(ctx, c, "k")
		waited := ltGo(ctx, c, "k")
		holder.open()
		waited.open()
		behind := ltGo(t.Context(), c, "k")
		next := ltGo(t.Context(), c, "k")
		cancel()
		synctest.Wait()
		ltServed(t, holder)
		ltServed(t, waited)
		assert.Equal(t, []string{"runs", "waits"}, ltStates(behind, next))
		assert.Zero(t, c.Stats().Canceled)
		behind.open()
		next.open()
		ltServed(t, next)
	})
}

// A cancel at any moment of a call for a free key: fn ran and its result is
// there, or it did not and the context is to blame, and the key is free.
//
// Rules 8, 10, 11 and 34.
func TestPeer_W78_CancelAtAnyMomentOfAFreeCall(t *testing.T) {
	ltProcs(t, func(t *testing.T) {
		c := processlock.New(processlock.Options{})
		for i := range pfScale(2000, 20_000) {
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() {
				for range i % 7 {
					runtime.Gosched()
				}
				cancel()
			})
			ran := false
			err := c.WithLock(ctx, "k", func(context.Context) error {
				ran = true
				return nil
			})
			if ran {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
			require.NoError(t, c.WithLock(context.Background(), "k", ltNop, processlock.IfAvailable))
			wg.Wait()
		}
		require.NoError(t, processlock.CTLeft(c))
	})
}

// The cancel comes before the release, from a third goroutine: the waiter fails
// every time, and what it was about to get is there for the next.
//
// Rules 8, 9 and 10.
func TestPeer_G8_CancelBeforeTheReleaseFailsEveryTime(t *testing.T) {
	ltProcs(t, func(t *testing.T) {
		c := processlock.New(processlock.Options{})
		for range pfScale(500, 10_000) {
			ctx, cancel := context.WithCancel(context.Background())
			release := make(chan struct{})
			var wg sync.WaitGroup
			held := make(chan struct{})
			wg.Go(func() {
				assert.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error {
					close(held)
					<-release
					return nil
				}))
			})
			<-held
			var err error
			wg.Go(func() { err = c.WithLock(ctx, "k", ctNever(t)) })
			for c.Stats().Waiting == 0 {
				runtime.Gosched()
			}
			cancel()
			close(release)
			wg.Wait()
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, ltFree(c, "k"), "the grant is lost")
			require.ErrorIs(t, c.WithLock(ctx, "k", ctNever(t)), context.Canceled)
		}
		ltIdle(t, c)
	})
}
