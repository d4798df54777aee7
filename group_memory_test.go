package processlock

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A million tasks over a thousand keys with a limit of 8 have no more goroutines
// at any time than that, and a few.
//
// Rule 35.
func TestGroupOfAMillionTasksHasFewGoroutines(t *testing.T) {
	n := 1_000_000
	if ctRace {
		n /= 10 // plain runs do the million
	}
	const keys, limit = 1000, 8
	c := New(Options{})
	base := int64(runtime.NumGoroutine())
	g, _ := NewGroup(WithCoordinator(t.Context(), c), "g")
	g.SetLimit(limit)
	var running, most, peak, ran atomic.Int64
	var counts [keys]int
	note := func(m *atomic.Int64, v int64) {
		for old := m.Load(); v > old && !m.CompareAndSwap(old, v); old = m.Load() {
		}
	}
	for i := range n {
		key := i * 7 % keys
		g.GoLocked(key, func(context.Context) error {
			note(&most, running.Add(1))
			defer running.Add(-1)
			counts[key]++
			if ran.Add(1)%64 == 0 {
				note(&peak, int64(runtime.NumGoroutine())-base)
				runtime.Gosched()
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.EqualValues(t, n, ran.Load())
	for key, ran := range counts {
		require.Equal(t, n/keys, ran, "key %d", key)
	}
	t.Logf("%d ran at once, %d goroutines more than at the start", most.Load(), peak.Load())
	assert.LessOrEqual(t, most.Load(), int64(limit))
	// While the runtime moves a batch of 32 dead ones it counts them, too.
	assert.LessOrEqual(t, peak.Load(), int64(limit+32+8))
	assert.NoError(t, CTLeft(c))
}

// A queued task takes 256 B at most, whichever way it waits for one key or none;
// with MaxWait its timer comes on top, and with several keys or Reentrant what it
// remembers of them. So does what the deadlock search and hooks remember.
//
// Rule 34.
func TestGroupTaskTakesLittleMemory(t *testing.T) {
	n := 200_000
	if ctRace {
		n /= 10
	}
	fn := func(context.Context) error { return nil }
	const little = 1 << 20
	all := All("busy", "free")
	for _, way := range []struct {
		name string
		add  func(g *Group, i int)
		most int64
		left int64 // may be retained after the burst, in all
	}{
		{"for one key", func(g *Group, i int) { g.GoLocked("busy", fn) }, 256, little},
		{"for one of many keys", func(g *Group, i int) { g.GoLocked(i%1000, fn) }, 256, little},
		{"for a slot, without a key", func(g *Group, i int) { g.Go(fn) }, 256, little},
		{"shared", func(g *Group, i int) { g.GoLocked("busy", fn, Shared) }, 256, little},
		{"with MaxWait", func(g *Group, i int) { g.GoLocked("busy", fn, MaxWait(time.Hour)) }, 512, 32 * little}, // the runtime's lists of timers don't shrink, and a quarter of each may be stopped ones
		{"for several keys", func(g *Group, i int) { g.GoLocked(all, fn) }, 768, little},
	} {
		t.Run(way.name, func(t *testing.T) {
			c := New(Options{})
			g, _ := NewGroup(WithCoordinator(t.Context(), c), "g")
			g.SetLimit(1)
			gate := make(chan struct{})
			var keys []any
			for i := range 1000 {
				keys = append(keys, i)
			}
			g.GoLocked(All(append(keys, "busy")...), func(context.Context) error { <-gate; return nil })
			start := ctHeap()
			for i := range n {
				way.add(g, i)
			}
			queued := ctHeap()
			size := (queued - start) / int64(n)
			t.Logf("%d B a task", size)
			assert.LessOrEqual(t, size, way.most)
			assert.Greater(t, size, int64(100), "they are there")
			close(gate)
			require.NoError(t, g.Wait())
			left := ctHeap() - start
			for end := time.Now().Add(10 * time.Second); left >= way.left && time.Now().Before(end); left = ctHeap() - start {
				runtime.Gosched() // a processor drops its stopped timers when it next looks for work
			}
			runtime.KeepAlive(g)
			assert.Less(t, left, way.left, "retained after the burst")
			assert.NoError(t, CTLeft(c))
		})
	}
}

// What a task's fn keeps of its context leads to the group, not to other tasks
// and what their fns refer to; and neither does a group that is over.
//
// Rules 12 and 34.
func TestGroupKeepsNoFinishedTask(t *testing.T) {
	for _, limit := range []int{0, 1} {
		t.Run(fmt.Sprint("limit=", limit), func(t *testing.T) {
			c := New(Options{})
			root, stop := context.WithCancel(WithCoordinator(context.Background(), c))
			defer stop()
			g, ctx := NewGroup(root, "g")
			g.SetLimit(limit)
			var alive []func() bool
			var kept []context.Context
			add := func(key any, opts ...Option) {
				payload, is := rtLoad(context.Background())
				alive = append(alive, is)
				g.GoLocked(key, func(ctx context.Context) error {
					kept = append(kept, ctx)
					runtime.KeepAlive(payload)
					return nil
				}, opts...)
			}
			gate := make(chan struct{})
			g.GoLocked("k", func(ctx context.Context) error { <-gate; return nil })
			for i := range 10 {
				add("k")
				add(All("k", i))
				add("k", MaxWait(time.Hour))
				add("k", Reentrant)
				add("k", IfAvailable)
			}
			close(gate)
			require.NoError(t, g.Wait())
			require.Equal(t, 10, g.Skipped())
			require.Len(t, kept, 40)
			for i, is := range alive {
				for end := time.Now().Add(10 * time.Second); is() && time.Now().Before(end); {
					runtime.Gosched() // its goroutine may be about to exit
				}
				assert.False(t, is(), "task %d", i)
			}
			runtime.KeepAlive(kept)
			runtime.KeepAlive(ctx)
			runtime.KeepAlive(g)
		})
	}
}

// A task has one timer, however many keys it waits for, and that is stopped when
// it has them: one that went on would keep it alive.
//
// Rules 20 and 35.
func TestGroupTaskStopsItsTimer(t *testing.T) {
	c := New(Options{})
	root := WithCoordinator(t.Context(), c)
	g, _ := NewGroup(root, "g")
	var alive func() bool
	err := c.WithLock(root, "k", func(context.Context) error {
		err := c.WithLock(root, "j", func(context.Context) error {
			payload, is := rtLoad(context.Background())
			alive = is
			g.GoLocked(All("j", "k"), func(context.Context) error {
				runtime.KeepAlive(payload)
				return nil
			}, MaxWait(time.Hour))
			return nil
		})
		for end := time.Now().Add(10 * time.Second); c.Stats().Waited < 2 && time.Now().Before(end); {
			runtime.Gosched()
		}
		return err
	})
	require.NoError(t, err)
	require.NoError(t, g.Wait())
	require.EqualValues(t, 2, c.Stats().Waited, "it waited for both")
	for end := time.Now().Add(10 * time.Second); alive() && time.Now().Before(end); {
		runtime.Gosched() // its goroutine may be about to exit
	}
	assert.False(t, alive())
}

// A group whose Wait has returned is forgotten, though its parent lives on.
//
// Rule 12.
func TestGroupLeavesNothingWithItsParent(t *testing.T) {
	c := New(Options{})
	parent, stop := context.WithCancel(WithCoordinator(context.Background(), c))
	defer stop()
	use := func() {
		g, _ := NewGroup(parent, "g")
		g.SetLimit(2)
		for i := range 20 {
			g.GoLocked(i%3, func(ctx context.Context) error {
				return WithLock(ctx, "inner", func(context.Context) error { return nil })
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
	use()
	start := ctHeap()
	for range 2000 {
		use()
	}
	grown := ctHeap() - start
	t.Logf("%d B after 2000 groups", grown)
	assert.Less(t, grown, int64(256<<10))
	runtime.KeepAlive(parent)
}
