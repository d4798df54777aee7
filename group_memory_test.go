package processlock

import (
	"context"
	"fmt"
	"runtime"
	"sync"
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
// with MaxWait its timer comes on top, with several keys what it remembers of
// them, with hooks their event. Where the group was made in an fn that holds
// something, so does its wait in the deadlock search, and Reentrant counts as
// several keys; elsewhere that takes no more.
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
		in   bool  // the group is made in an fn that holds a key
		seen bool  // by a hook
	}{
		{name: "for one key", add: func(g *Group, i int) { g.GoLocked("busy", fn) }, most: 256},
		{name: "for one of many keys", add: func(g *Group, i int) { g.GoLocked(i%1000, fn) }, most: 256},
		{name: "for a slot, without a key", add: func(g *Group, i int) { g.Go(fn) }, most: 256},
		{name: "shared", add: func(g *Group, i int) { g.GoLocked("busy", fn, Shared) }, most: 256},
		{name: "Reentrant", add: func(g *Group, i int) { g.GoLocked("busy", fn, Reentrant) }, most: 256},
		{name: "with MaxWait", add: func(g *Group, i int) { g.GoLocked("busy", fn, MaxWait(time.Hour)) }, most: 512, left: 32 * little}, // the runtime's lists of timers don't shrink, and a quarter of each may be stopped ones
		{name: "for several keys", add: func(g *Group, i int) { g.GoLocked(all, fn) }, most: 448},
		{name: "in an fn", add: func(g *Group, i int) { g.GoLocked("busy", fn) }, most: 512, in: true},
		{name: "in an fn, Reentrant", add: func(g *Group, i int) { g.GoLocked("busy", fn, Reentrant) }, most: 704, in: true},
		{name: "in an fn, Reentrant, for a slot", add: func(g *Group, i int) { g.GoLocked("held", fn, Reentrant) }, most: 512, in: true},
		{name: "with a hook", add: func(g *Group, i int) { g.GoLocked("busy", fn) }, most: 640, seen: true},
	} {
		t.Run(way.name, func(t *testing.T) {
			c := New(Options{})
			if way.seen {
				defer c.AddHooks(Hooks{Released: func(Event) {}})()
			}
			ctx, stop := WithCoordinator(t.Context(), c), func() {}
			if way.in {
				ctx, stop = rtHeld(ctx, "held")
			}
			defer stop()
			g, _ := NewGroup(ctx, "g")
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
			mayStay := max(way.left, little)
			left := ctHeap() - start
			for end := time.Now().Add(10 * time.Second); left >= mayStay && time.Now().Before(end); left = ctHeap() - start {
				runtime.Gosched() // a processor drops its stopped timers when it next looks for work
			}
			runtime.KeepAlive(g)
			stop()
			assert.Less(t, left, mayStay, "retained after the burst")
			assert.NoError(t, CTLeft(c))
		})
	}
}

// rtHeld returns the context of an fn that runs under key until stop is called.
func rtHeld(ctx context.Context, key any) (in context.Context, stop func()) {
	entered, gate, over := make(chan context.Context), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		_ = WithLock(ctx, key, func(ctx context.Context) error {
			entered <- ctx
			<-gate
			return nil
		})
	}()
	return <-entered, sync.OnceFunc(func() {
		close(gate)
		<-over
	})
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
