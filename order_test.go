package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// ltNoPanic stands for a call that did not panic.
const ltNoPanic = "no panic"

// ltPanicOf returns what do panics with.
func ltPanicOf(do func()) (value any) {
	defer func() { value = recover() }()
	do()
	return ltNoPanic
}

// Each row is a call to which two neighbouring checks apply; the first of them
// must be the one that counts.
//
// Rule 18.
func TestOrderOfChecks(t *testing.T) {
	dead := func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}
	bad := func() {}
	rows := []struct {
		first, second string
		opts          processlock.Options
		check         func(t *testing.T, c *processlock.Coordinator)
	}{
		{"misuse", "done context", processlock.Options{}, func(t *testing.T, c *processlock.Coordinator) {
			ctx := dead(t.Context())
			assert.Equal(t, "processlock: nil fn", ltPanicOf(func() { _ = c.WithLock(ctx, "k", nil) }))
			assert.Equal(t, "processlock: nil Option", ltPanicOf(func() { _ = c.WithLock(ctx, "k", ltNop, nil) }))
			assert.Equal(t, "processlock: nil Option", ltPanicOf(func() { _ = c.WithLock(ctx, bad, ltNop, nil) }))
		}},
		{"done context", "key", processlock.Options{}, func(t *testing.T, c *processlock.Coordinator) {
			for _, key := range []any{bad, processlock.Key{}, processlock.All(bad), []any{processlock.All()}} {
				err := c.WithLock(dead(t.Context()), key, ltNop)
				assert.ErrorIs(t, err, context.Canceled)
				assert.NotErrorIs(t, err, processlock.ErrKey)
			}
		}},
		{"key", "closed", processlock.Options{}, func(t *testing.T, c *processlock.Coordinator) {
			ctx, cl := c.WithClient(t.Context(), "w")
			cl.Close()
			assert.NoError(t, c.Shutdown(t.Context()))
			for _, key := range []any{bad, processlock.Key{}, processlock.All(bad)} {
				err := c.WithLock(context.WithoutCancel(ctx), key, ltNop)
				assert.ErrorIs(t, err, processlock.ErrKey)
				assert.NotErrorIs(t, err, processlock.ErrClosed)
			}
		}},
		{"closed", "Reentrant", processlock.Options{}, func(t *testing.T, c *processlock.Coordinator) {
			outer := ltGo(t.Context(), c, "k")
			ctx, cl := c.WithClient(outer.ctx, "inner")
			cl.Close()
			err := c.WithLock(context.WithoutCancel(ctx), "k", ltNop, processlock.Reentrant)
			assert.ErrorIs(t, err, processlock.ErrClosed)
			assert.Equal(t, int64(1), c.Stats().Acquired)
			outer.open()
		}},
		{"Reentrant", "granted", processlock.Options{}, func(t *testing.T, c *processlock.Coordinator) {
			// A shared request could have a hold of its own as well.
			outer := ltGo(t.Context(), c, "k", processlock.Shared)
			inner := ltGo(outer.ctx, c, "k", processlock.Shared, processlock.Reentrant)
			assert.Equal(t, "runs", inner.state())
			assert.Equal(t, int64(1), c.Stats().Held)
			inner.open()
			outer.open()
		}},
		{"granted", "IfAvailable", processlock.Options{}, func(t *testing.T, c *processlock.Coordinator) {
			outer := ltGo(t.Context(), c, "k", processlock.Shared)
			assert.NoError(t, c.WithLock(t.Context(), "k", ltNop, processlock.Shared, processlock.IfAvailable))
			// And of the checks behind, own lineage.
			assert.NoError(t, c.WithLock(outer.ctx, "k", ltNop, processlock.Shared))
			outer.open()
		}},
		{"IfAvailable", "own lineage", processlock.Options{}, func(t *testing.T, c *processlock.Coordinator) {
			outer := ltGo(t.Context(), c, "k")
			err := c.WithLock(outer.ctx, "k", ltNop, processlock.IfAvailable)
			assert.ErrorIs(t, err, processlock.ErrUnavailable)
			assert.NotErrorIs(t, err, processlock.ErrDeadlock)
			outer.open()
		}},
		{"own lineage", "MaxWaiters", processlock.Options{MaxWaiters: 1}, func(t *testing.T, c *processlock.Coordinator) {
			outer := ltGo(t.Context(), c, "k")
			waiter := ltGo(t.Context(), c, "k")
			err := c.WithLock(outer.ctx, "k", ltNop)
			assert.ErrorIs(t, err, processlock.ErrDeadlock)
			assert.NotErrorIs(t, err, processlock.ErrQueueFull)
			outer.open()
			waiter.open()
		}},
		{"MaxWaiters", "cycle", processlock.Options{MaxWaiters: 1}, func(t *testing.T, c *processlock.Coordinator) {
			a, b := ltGo(t.Context(), c, "a"), ltGo(t.Context(), c, "b")
			waiter := ltGo(t.Context(), c, "b") // fills the queue
			ba := ltGo(b.ctx, c, "a")
			err := c.WithLock(a.ctx, "b", ltNop)
			assert.ErrorIs(t, err, processlock.ErrQueueFull)
			assert.NotErrorIs(t, err, processlock.ErrDeadlock)
			a.open()
			ba.open()
			b.open()
			waiter.open()
		}},
		{"cycle", "queue", processlock.Options{}, func(t *testing.T, c *processlock.Coordinator) {
			a, b := ltGo(t.Context(), c, "a"), ltGo(t.Context(), c, "b")
			ba := ltGo(b.ctx, c, "a")
			ab := ltGo(a.ctx, c, "b")
			ltRefused(t, ab, processlock.ErrDeadlock)
			assert.Equal(t, "waits", ba.state())
			a.open()
			ba.open()
			b.open()
		}},
	}
	for _, row := range rows {
		t.Run(row.first+" before "+row.second, func(t *testing.T) {
			ltBubbleWith(t, row.opts, row.check)
		})
	}
}

// A request that is refused before the table leaves what waits there alone.
//
// Rules 8 and 18.
func TestEarlyRefusalDoesNotTouchTheQueue(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k")
		waiter := ltGo(t.Context(), c, "k")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		before, stats := c.Snapshot().Locks, c.Stats()
		assert.Error(t, c.WithLock(ctx, "k", ltNop))
		assert.Error(t, c.WithLock(ctx, processlock.All("a", "k"), ltNop))
		assert.NotEqual(t, ltNoPanic, ltPanicOf(func() { _ = c.WithLock(ctx, "k", nil) }))
		synctest.Wait()
		assert.Equal(t, before, c.Snapshot().Locks)
		assert.Equal(t, stats, c.Stats())
		holder.open()
		waiter.open()
		ltServed(t, waiter)
	})
}
