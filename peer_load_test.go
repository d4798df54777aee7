package processlock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request comes at the very moment at which the holder leaves and the key's
// entry with it: it enters, alone, and nothing is left.
//
// Rules 1, 3 and 34.
func TestPeer_AKL_A17_RequestThatMeetsTheRelease(t *testing.T) {
	ltProcs(t, func(t *testing.T) {
		c := processlock.New(processlock.Options{})
		var inside ltInside
		entered := 0 // guarded by the lock under test
		rounds := pfScale(1000, 10_000)
		for range rounds {
			leaving := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				assert.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error {
					defer inside.enter(false)()
					close(leaving)
					return nil
				}))
			})
			<-leaving
			require.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error {
				defer inside.enter(false)()
				entered++
				return nil
			}))
			wg.Wait()
			require.NoError(t, processlock.CTLeft(c))
		}
		assert.Equal(t, rounds, entered)
		assert.False(t, inside.broken.Load(), "two were inside")
	})
}

// A hundred workers over a few keys, each holding its key for 10 ms: as many
// are inside at once as there are keys, no key has two, whoever leaves is who
// entered, and all of it takes no longer than the longest queue.
//
// Rules 1 and 2.
func TestPeer_AKL_A68_AsManyAreInsideAsThereAreKeys(t *testing.T) {
	const workers, hold = 100, 10 * time.Millisecond
	for _, keys := range []int{100, 50, 10, 1} {
		t.Run(fmt.Sprint("keys=", keys), func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				start := time.Now()
				owners := make([]atomic.Int64, keys)
				var now, peak atomic.Int64
				var wg sync.WaitGroup
				for w := range workers {
					wg.Go(func() {
						owner := &owners[w%keys]
						assert.NoError(t, c.WithLock(t.Context(), w%keys, func(context.Context) error {
							assert.True(t, owner.CompareAndSwap(0, int64(w+1)), "two on entry")
							for n := now.Add(1); ; {
								if p := peak.Load(); n <= p || peak.CompareAndSwap(p, n) {
									break
								}
							}
							time.Sleep(hold)
							now.Add(-1)
							assert.True(t, owner.CompareAndSwap(int64(w+1), 0), "another on exit")
							return nil
						}))
					})
				}
				wg.Wait()
				assert.EqualValues(t, keys, peak.Load())
				assert.Equal(t, time.Duration(workers/keys)*hold, time.Since(start))
			})
		})
	}
}

// Many keys with a crowd each: the log of every key is enter, leave, enter,
// leave, by the same one in each pair, and complete. The lock is all that
// guards the log.
//
// Rules 1, 7 and 34.
func TestPeer_AKL_A115_LogOfEveryKeyAlternates(t *testing.T) {
	keys, crowd := pfScale(100, 5000), 50
	c := processlock.New(processlock.Options{})
	logs := make([][]int, keys)
	var wg sync.WaitGroup
	for w := range crowd {
		for k := range keys {
			wg.Go(func() {
				assert.NoError(t, c.WithLock(context.Background(), []any{"key", k}, func(context.Context) error {
					logs[k] = append(logs[k], w)
					runtime.Gosched()
					logs[k] = append(logs[k], ^w)
					return nil
				}))
			})
		}
	}
	wg.Wait()
	for k, log := range logs {
		require.Len(t, log, 2*crowd, "key %d", k)
		for i := 0; i < len(log); i += 2 {
			require.Equal(t, log[i], ^log[i+1], "key %d: another was inside", k)
		}
	}
	require.NoError(t, processlock.CTLeft(c))
}
