package processlock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Go and GoLocked return at once, whoever holds the key and the slots.
func TestGroupNeverBlocksTheCaller(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		running := s.free()
		start := time.Now()
		for range 1000 {
			s.g.Go(ltNop)
			s.g.GoLocked("k", ltNop)
			s.g.GoLocked(processlock.All("k", "l"), ltNop, processlock.MaxWait(time.Hour))
		}
		assert.Equal(s, start, time.Now(), "no wait of the bubble's clock")
		running.open()
		busy.open()
		require.NoError(s, s.g.Wait())
	})
}

// No limit: everybody runs. Where errgroup's SetLimit(0) lets nobody run, this
// one lets all.
func TestGroupWithoutLimit(t *testing.T) {
	for _, limit := range []int{0, -1, -5} {
		gtBubble(t, limit, func(s *gtScene) {
			var tasks []*gtTask
			for i := range 20 {
				if i%2 == 0 {
					tasks = append(tasks, s.free())
				} else {
					tasks = append(tasks, s.lock(i))
				}
			}
			for _, x := range tasks {
				assert.Equal(s, "runs", x.state())
				x.let()
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // SetLimit was not called
		var c processlock.Coordinator
		g, _ := processlock.NewGroup(processlock.WithCoordinator(t.Context(), &c), "g")
		x, y := gtNew(t, ltNop), gtNew(t, ltNop)
		g.Go(x.fn)
		g.Go(y.fn)
		synctest.Wait()
		assert.Equal(t, []string{"runs", "runs"}, gtStates(x, y))
		x.let()
		y.let()
		require.NoError(t, g.Wait())
	})
}

// Tasks may add tasks, and Wait waits for those too.
func TestGroupTasksAddTasks(t *testing.T) {
	for _, limit := range []int{0, 1, 2} {
		gtBubble(t, limit, func(s *gtScene) {
			var ran atomic.Int64
			var spawn func(depth int) func(context.Context) error
			spawn = func(depth int) func(context.Context) error {
				return func(context.Context) error {
					ran.Add(1)
					if depth > 0 {
						s.g.GoLocked(depth, spawn(depth-1))
						s.g.Go(spawn(depth - 1))
						s.g.GoLocked(processlock.All(1, 2, depth), spawn(depth-1))
					}
					return nil
				}
			}
			s.g.Go(spawn(5))
			require.NoError(s, s.g.Wait())
			assert.EqualValues(s, 1+3+9+27+81+243, ran.Load())
		})
	}
}

// From many goroutines at once, with calls of WithLock beside: nobody is lost,
// no two share a key, never more than the limit run, and Stats is exact.
//
// Rules 1, 38 and 41.
func TestGroupStorm(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 0} {
		t.Run(fmt.Sprint("limit=", limit), func(t *testing.T) {
			var c processlock.Coordinator
			root := processlock.WithCoordinator(t.Context(), &c)
			g, _ := processlock.NewGroup(root, "g")
			g.SetLimit(limit)
			const adders, each, keys = 8, 300, 5
			var inside [keys]ltInside
			var running, most, ran, calls, asked atomic.Int64
			var all sync.WaitGroup
			for a := range adders {
				all.Go(func() {
					for i := range each {
						key := (a*31 + i*17) % keys
						shared := (a+i)%4 == 0
						var opts []processlock.Option
						if shared {
							opts = append(opts, processlock.Shared)
						}
						task := func(context.Context) error {
							if n := running.Add(1); limit > 0 && n > int64(limit) {
								most.Store(n)
							}
							defer running.Add(-1)
							leave := inside[key].enter(shared)
							runtime.Gosched()
							leave()
							ran.Add(1)
							return nil
						}
						switch {
						case i%11 == 0:
							other := (key + 1) % keys
							asked.Add(2)
							g.GoLocked(processlock.All(other, key), func(ctx context.Context) error {
								defer inside[other].enter(shared)()
								return task(ctx)
							}, opts...)
						case i%7 == 0:
							calls.Add(1)
							assert.NoError(t, c.WithLock(root, key, func(context.Context) error {
								defer inside[key].enter(shared)()
								return nil
							}, opts...))
						default:
							asked.Add(1)
							g.GoLocked(key, task, opts...)
						}
					}
				})
			}
			all.Wait()
			require.NoError(t, g.Wait())
			for i := range inside {
				assert.False(t, inside[i].broken.Load(), "key %d", i)
			}
			assert.Zero(t, most.Load(), "ran at once")
			assert.EqualValues(t, adders*each, ran.Load()+calls.Load())
			st := c.Stats()
			assert.Equal(t, asked.Load()+calls.Load(), st.Acquired)
			assert.Zero(t, st.Canceled+st.Closed+st.Deadlocks+st.Unavailable+st.Lost)
			ctRequireIdle(t, &c)
		})
	}
}
