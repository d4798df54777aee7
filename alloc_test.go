//go:build !race

package processlock_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// The race detector allocates on its own account, so these are not built with
// it.

// ltBytes is how many bytes a run of do allocates.
func ltBytes(do func()) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const runs = 10_000
	do()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		do()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / runs
}

// README.md promises the first of these numbers.
//
// Rules 12, 33 and 40.
func TestUncontendedLockAllocatesItsContextAlone(t *testing.T) {
	c := processlock.New(processlock.Options{})
	ctx, cancel := context.WithCancel(processlock.WithCoordinator(context.Background(), c))
	defer cancel()
	client, cl := processlock.WithClient(ctx, "w")
	defer cl.Close()
	key := processlock.MustKey("invoice", 7)
	captured := 0
	fn := func(context.Context) error {
		captured++
		return nil
	}
	rows := []struct {
		name   string
		do     func()
		allocs float64
		bytes  float64
	}{
		{"string", func() { _ = processlock.WithLock(ctx, "k", fn) }, 1, 48},
		{"int", func() { _ = processlock.WithLock(ctx, 1_000_000, fn) }, 1, 48},
		{"Key", func() { _ = processlock.WithLock(ctx, key, fn) }, 1, 48},
		{"string, closure", func() {
			_ = processlock.WithLock(ctx, "k", func(context.Context) error {
				captured++
				return nil
			})
		}, 1, 48},
		{"string, shared", func() { _ = processlock.WithLock(ctx, "k", fn, processlock.Shared) }, 1, 48},
		{"string, client", func() { _ = processlock.WithLock(client, "k", fn) }, 2, 64},
		{"int, client", func() { _ = processlock.WithLock(client, 1_000_000, fn) }, 2, 64},
		{"Key, client", func() { _ = processlock.WithLock(client, key, fn) }, 2, 64},
	}
	for _, row := range rows {
		assert.LessOrEqual(t, testing.AllocsPerRun(1000, row.do), row.allocs, row.name)
		// A stray allocation of the runtime is not ours.
		assert.LessOrEqual(t, ltBytes(row.do), row.bytes+1, row.name)
	}
	ltIdle(t, c)
}

// Where nobody looks, or has ceased to, a call allocates what it does without
// hooks, and reads no clock: a holder that found its key free would know since
// when.
//
// Rules 33, 40 and 42.
func TestNoHooksCostNothing(t *testing.T) {
	log := &htLog{}
	watched := processlock.New(processlock.Options{Hooks: log.hooks()})
	left := processlock.New(processlock.Options{})
	left.AddHooks(log.hooks())()
	none := processlock.New(processlock.Options{})
	defer none.AddHooks(processlock.Hooks{})() // of which each is nil
	since := func(c *processlock.Coordinator) (known bool) {
		assert.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error {
			known = !c.Snapshot().Locks[0].Holders[0].Since.IsZero()
			return nil
		}))
		return known
	}
	assert.True(t, since(watched), "the test sees nothing")
	plain := processlock.New(processlock.Options{Logger: slog.Default()})
	for name, c := range map[string]*processlock.Coordinator{"left": left, "none": none, "plain": plain} {
		assert.False(t, since(c), name)
		ctx := processlock.WithCoordinator(context.Background(), c)
		do := func() { _ = processlock.WithLock(ctx, "k", ltNop) }
		assert.LessOrEqual(t, testing.AllocsPerRun(1000, do), 1.0, name)
		assert.LessOrEqual(t, ltBytes(do), 49.0, name)
	}
}
