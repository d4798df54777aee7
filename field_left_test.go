package processlock_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pfHeap() int64 {
	runtime.GC() // twice: what pools keep survives one
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Keys used once each, from many goroutines, leave nothing, also where more is
// kept of a hold while it is there: its time, its client, its lineage.
//
// Rules 34 and 40.
func TestField_D1_D9_ManyKeysUsedOnceLeaveNothing(t *testing.T) {
	keys := pfScale(100_000, 1_000_000)
	for _, row := range []struct {
		name    string
		options processlock.Options
		within  func(c *processlock.Coordinator, use func(ctx context.Context))
	}{
		{"plain", processlock.Options{}, func(_ *processlock.Coordinator, use func(context.Context)) {
			use(context.Background())
		}},
		{"TrackHolds, client", processlock.Options{TrackHolds: true}, func(c *processlock.Coordinator, use func(context.Context)) {
			ctx, cl := c.WithClient(context.Background(), "w")
			defer cl.Close()
			use(ctx)
		}},
		{"lineage", processlock.Options{}, func(c *processlock.Coordinator, use func(context.Context)) {
			_ = c.WithLock(context.Background(), "outer", func(ctx context.Context) error {
				use(ctx)
				return nil
			})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := processlock.New(row.options)
			row.within(c, func(ctx context.Context) { // what is measured, while its surroundings live
				use := func(first, n int) {
					var wg sync.WaitGroup
					for g := range 8 {
						wg.Go(func() {
							for i := g; i < n; i += 8 {
								_ = c.WithLock(ctx, first+i, ltNop)
							}
						})
					}
					wg.Wait()
				}
				use(0, 1000)
				before := pfHeap()
				use(1000, keys)
				assert.Less(t, pfHeap()-before, int64(1<<20))
				assert.LessOrEqual(t, len(c.Snapshot().Locks), 1, "keys left in the table")
			})
			require.NoError(t, processlock.CTLeft(c))
		})
	}
}

// What the table keeps of a key for reuse serves another key at once, while
// the collector runs and somebody looks on: nobody enters under a wrong key,
// nothing is let in beside a holder, and no key is listed that nobody used.
// Half of the calls are for two keys, which take each other's entry all the
// time and have a queue.
//
// Rules 1, 34, 35 and 39.
func TestField_E3_E8_RecycledEntriesWhileTheCollectorRuns(t *testing.T) {
	const goroutines, many = 16, 10_000
	c := processlock.New(processlock.Options{})
	inside := make([]ltInside, many)
	used := make(map[processlock.Key]bool, many)
	for k := range many {
		used[processlock.MustKey(k)] = true
	}
	until := time.Now().Add(ltStress(t))
	var wg sync.WaitGroup
	for g := range uint64(goroutines) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 3))
			for time.Now().Before(until) {
				k := r.IntN(many)
				if r.IntN(2) == 0 {
					k %= 2
				}
				shared := r.IntN(3) == 0
				var opts []processlock.Option
				if shared {
					opts = append(opts, processlock.Shared)
				}
				assert.NoError(t, c.WithLock(context.Background(), k, func(context.Context) error {
					defer inside[k].enter(shared)()
					if r.IntN(64) == 0 {
						runtime.Gosched()
						assert.False(t, ltFree(c, k), "inside under another key")
					}
					return nil
				}, opts...))
			}
		})
	}
	wg.Go(func() {
		for time.Now().Before(until) {
			runtime.GC()
			for _, l := range c.Snapshot().Locks {
				if !used[l.Key] {
					t.Errorf("key %v is listed", l.Key)
					return
				}
			}
		}
	})
	wg.Wait()
	for k := range inside {
		assert.False(t, inside[k].broken.Load(), "exclusion of key %d", k)
	}
	require.NoError(t, processlock.CTLeft(c))
}

// fn changes the very value that its key was made from: the lock that was taken
// is the one that is released, and the new value's lock is nobody's.
//
// Rules 13 and 34.
func TestField_F2_ReleaseIsOfTheKeyThatWasTaken(t *testing.T) {
	type order struct {
		ID   int
		Tags []string
	}
	for name, make := range map[string]func() (key any, change func()){
		"list": func() (any, func()) {
			key := []any{"invoice", 7}
			return key, func() { key[1] = 8 }
		},
		"bytes": func() (any, func()) {
			key := []byte("abc")
			return key, func() { key[0] = 'x' }
		},
		"map": func() (any, func()) {
			key := map[string]int{"a": 1}
			return key, func() { key["b"] = 2 }
		},
		"pointer": func() (any, func()) {
			key := &order{7, []string{"a"}}
			return key, func() { key.ID, key.Tags[0] = 8, "b" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := processlock.New(processlock.Options{})
			key, change := make()
			before := processlock.MustKey(key)
			require.NoError(t, c.WithLock(t.Context(), key, func(context.Context) error {
				change()
				require.NotEqual(t, before, processlock.MustKey(key))
				require.False(t, ltFree(c, before))
				require.True(t, ltFree(c, key))
				return nil
			}))
			require.True(t, ltFree(c, before))
			require.NoError(t, processlock.CTLeft(c))
		})
	}
}
