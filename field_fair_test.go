package processlock_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// One takes the key again and again without a pause. Another who asks once gets
// it when the turn that runs is over: the greedy one never has two turns while
// somebody waits.
//
// Rule 3.
func TestField_K1_WhoReleasesAndAsksAgainGoesBehindTheQueue(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var turns atomic.Int64
		var stop atomic.Bool
		var greedy sync.WaitGroup
		greedy.Go(func() {
			for !stop.Load() {
				assert.NoError(t, c.WithLock(t.Context(), "k", func(context.Context) error {
					turns.Add(1)
					time.Sleep(100 * time.Microsecond)
					return nil
				}))
			}
		})
		for range 100 {
			time.Sleep(130 * time.Microsecond) // into the middle of a turn
			asked := turns.Load()
			assert.NoError(t, c.WithLock(t.Context(), "k", func(context.Context) error {
				assert.Equal(t, asked, turns.Load(), "turns of the greedy one while another waited")
				return nil
			}))
		}
		stop.Store(true)
		greedy.Wait()
	})
}

// A grant wakes the one that it is for. The contexts of the waiters tell who
// was up: whoever resumes asks its context, and the others have not.
//
// Rules 3 and 5.
func TestField_K3_OneGrantWakesOneWaiter(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k")
		calls, looks := make([]*ltCall, 50), make([]int, 50)
		for i := range calls {
			ctx := &ltHooked{Context: t.Context()}
			ctx.err = func() error {
				looks[i]++
				return ctx.Context.Err()
			}
			calls[i] = ltGo(ctx, c, "k")
		}
		before := append([]int(nil), looks...)
		holder.open()
		for i, call := range calls {
			assert.Equal(t, "runs", call.state())
			assert.Greater(t, looks[i], before[i], "the test tells nothing")
			assert.Equal(t, before[i+1:], looks[i+1:], "others were woken by the grant to %d", i)
			call.open()
		}
	})
}

// A thousand hand-overs in a row are in order and no deeper than one: each is
// made by a goroutine that then returns.
//
// Rules 3 and 6.
func TestField_K3_ThousandWaitersInOrderOnFlatStacks(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		const n = 1000
		holder := ltGo(t.Context(), c, "k")
		var order, depths []int // guarded by the lock under test
		for i := range n {
			go func() {
				assert.NoError(t, c.WithLock(t.Context(), "k", func(context.Context) error {
					order = append(order, i)
					depths = append(depths, runtime.Callers(0, make([]uintptr, 1000)))
					return nil
				}))
			}()
			synctest.Wait()
		}
		holder.open()
		assert.Len(t, order, n)
		for i, got := range order {
			if got != i || depths[i] != depths[0] {
				t.Fatalf("the %d'th to run is %d, %d frames deep; the first was %d deep", i, got, depths[i], depths[0])
			}
		}
	})
}

// One key that is held for long, with a thousand waiters, costs no other key
// anything: others are served without a wait, waiters of the busy one can
// leave, and its state can be read.
//
// Rules 2, 5, 9 and 39.
func TestField_L1_L4_BusyKeyHindersNoOther(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		holder := ltGo(t.Context(), c, "hot")
		var left sync.WaitGroup
		for range 1000 {
			left.Go(func() { assert.ErrorIs(t, c.WithLock(ctx, "hot", ctNever(t)), context.Canceled) })
		}
		stays := ltGo(t.Context(), c, "hot")
		waited := c.Stats().Waited
		for i := range 1000 {
			assert.NoError(t, c.WithLock(t.Context(), i, ltNop))
		}
		assert.Equal(t, waited, c.Stats().Waited, "another key had to queue")
		assert.Len(t, pfLock(c, "hot").Waiters, 1001)
		cancel()
		left.Wait()
		assert.Equal(t, "X/X", pfShape(c, "hot"))
		assert.Equal(t, start, time.Now())
		holder.open()
		stays.open()
		ltServed(t, stays)
	})
}

// A try is decided in one step: by a clock that only goes on while all wait,
// no try takes any time, whatever holds, queues and leaves around it.
//
// Rules 19 and 37.
func TestField_Q1_TryNeverWaitsInAStorm(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				for i := range 100 {
					opts := ltMode("XXS"[(g+i)%3])
					if i%4 == 0 {
						opts = append(opts, processlock.MaxWait(time.Duration(1+g)))
					}
					_ = c.WithLock(t.Context(), "k", func(context.Context) error {
						time.Sleep(time.Duration(1 + (g+i)%3))
						return nil
					}, opts...)
				}
			})
		}
		var won, lost atomic.Int64
		for g := range 4 {
			wg.Go(func() {
				for range 200 {
					start := time.Now()
					err := c.WithLock(t.Context(), "k", ltNop, append(ltMode("XS"[g%2]), processlock.IfAvailable)...)
					assert.Equal(t, start, time.Now(), "a try waited")
					if err == nil {
						won.Add(1)
					} else {
						assert.ErrorIs(t, err, processlock.ErrUnavailable)
						lost.Add(1)
					}
					time.Sleep(7 * time.Nanosecond)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		assert.Positive(t, won.Load(), "the storm tests nothing")
		assert.Positive(t, lost.Load(), "the storm tests nothing")
	})
}
