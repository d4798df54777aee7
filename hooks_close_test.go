package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Requests that Client.Close or Shutdown ends or refuses fail; what had been
// acquired is released, or lost if fn ran.
//
// Rules 25, 27, 29 and 42.
func TestHooksAreToldWhatClosingEnds(t *testing.T) {
	const closed = `(processlock: lock ["k"]: client or coordinator closed)`
	for _, row := range []struct {
		name string
		run  func(s *htScene)
	}{
		{"waits, client closes", func(s *htScene) {
			a := s.start("a", "k")
			ctx, client := s.as("b")
			b := ltGo(context.WithoutCancel(ctx), s.c, "k")
			htLater(1)
			client.Close()
			synctest.Wait()
			ltRefused(s.t, b, processlock.ErrClosed)
			s.wants("b", "Waiting k", "Failed k waited=1s "+closed)
			a.open()
			s.wants("a", "Acquired k", "Released k held=1s")
		}},
		{"client is closed", func(s *htScene) {
			ctx, client := s.as("a")
			client.Close()
			assert.ErrorIs(s.t, s.c.WithLock(context.WithoutCancel(ctx), "k", ltNop), processlock.ErrClosed)
			s.wants("a", "Failed k "+closed)
		}},
		{"waits, Shutdown", func(s *htScene) {
			a, b := s.start("a", "k"), s.start("b", "k")
			htLater(1)
			down := make(chan error)
			go func() { down <- s.c.Shutdown(s.ctx) }()
			synctest.Wait()
			ltRefused(s.t, b, processlock.ErrClosed)
			ltRefused(s.t, s.start("c", "k"), processlock.ErrClosed)
			a.open()
			require.NoError(s.t, <-down)
			s.wants("a", "Acquired k", "Released k held=1s")
			s.wants("b", "Waiting k", "Failed k waited=1s "+closed)
			s.wants("c", "Failed k "+closed)
		}},
		{"All waits for the second, client closes", func(s *htScene) {
			b := s.start("b", "k")
			ctx, client := s.as("a")
			a := ltGo(context.WithoutCancel(ctx), s.c, processlock.All("j", "k"))
			htLater(1)
			client.Close()
			synctest.Wait()
			ltRefused(s.t, a, processlock.ErrClosed)
			b.open()
			s.wants("a", "Acquired j", "Waiting k", "Failed k waited=1s "+closed, "Released j held=1s")
			assert.Zero(s.t, s.c.Stats().Lost)
		}},
		{"All has all, client closes before fn", func(s *htScene) {
			ctx, client := s.as("a")
			remove := s.c.AddHooks(processlock.Hooks{Acquired: func(e processlock.Event) {
				if e.Key == processlock.MustKey("k") {
					client.Close()
				}
			}})
			defer remove()
			b := s.start("b", "j")
			a := ltGo(context.WithoutCancel(ctx), s.c, processlock.All("j", "k"))
			htLater(1)
			b.open()
			ltRefused(s.t, a, processlock.ErrClosed)
			s.wants("a", "Waiting j", "Acquired j waited=1s", "Acquired k", "Released k", "Released j waited=1s")
			assert.Zero(s.t, s.c.Stats().Lost)
		}},
		{"client closes in its Acquired", func(s *htScene) {
			ctx, client := s.as("a")
			remove := s.c.AddHooks(processlock.Hooks{Acquired: func(processlock.Event) { client.Close() }})
			defer remove()
			err := s.c.WithLock(ctx, "k", func(ctx context.Context) error { return context.Cause(ctx) })
			assert.ErrorIs(s.t, err, processlock.ErrLost)
			s.wants("a", "Acquired k", "Failed k (processlock: lock was lost while fn ran)")
		}},
	} {
		t.Run(row.name, func(t *testing.T) { htBubble(t, processlock.Options{}, row.run) })
	}
}

// A hold that Close takes from a running fn has failed then, in Close's
// goroutine, with all that is known of it; its late release is not told. The
// next in line has its key by then.
//
// Rules 27 and 42.
func TestHooksAreToldOfALostHoldByClose(t *testing.T) {
	const lost = "(processlock: lock was lost while fn ran)"
	htBubble(t, processlock.Options{}, func(s *htScene) {
		z := s.start("z", "k1")
		ctx, client := s.as("a")
		one := ltGo(ctx, s.c, "k1")
		htLater(1)
		z.open()
		several := ltGo(ctx, s.c, processlock.All("k2", "k3"), processlock.Shared)
		b := s.start("b", "k1")
		htLater(2)
		var holders []string // when Failed is called
		remove := s.c.AddHooks(processlock.Hooks{Failed: func(processlock.Event) {
			for _, l := range s.c.Snapshot().Locks {
				holders = append(holders, l.Holders[0].Client)
			}
		}})
		inner := ltGo(ctx, s.c, "k4") // the one request that the new hooks are told of
		client.Close()
		remove()
		assert.Equal(s.t, []string{"b"}, holders)
		inner.open()
		calls := s.of("a")
		if !assert.Len(s.t, calls, 9) {
			return
		}
		ends := map[string]htCall{}
		for _, c := range calls[5:] {
			assert.Equal(s.t, htGoroutine(), c.goroutine)
			assert.Equal(s.t, processlock.ErrLost, c.Err)
			ends[c.String()] = c
		}
		assert.Contains(s.t, ends, "Failed k1 waited=1s held=2s "+lost)
		assert.Contains(s.t, ends, "Failed k2 held=2s "+lost)
		assert.Contains(s.t, ends, "Failed k3 held=2s "+lost)
		assert.Equal(s.t, processlock.ModeShared, ends["Failed k2 held=2s "+lost].Mode)
		assert.Contains(s.t, ends["Failed k2 held=2s "+lost].Func, "ltCall")
		htLater(1)
		one.open()
		several.open()
		assert.ErrorIs(s.t, one.err, processlock.ErrLost)
		assert.ErrorIs(s.t, several.err, processlock.ErrLost)
		b.open()
		assert.Len(s.t, s.of("a"), 9, "told twice of the end of a hold")
		s.wants("b", "Waiting k1", "Acquired k1 waited=2s", "Released k1 waited=2s held=1s")
	})
}

// Hooks that came later than a hold are not told of its loss, and those that
// have been removed meanwhile are: each Acquired has its end.
//
// Rule 42.
func TestHooksAreToldOfTheEndOfWhatTheyWereToldOf(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		early, late := &htLog{}, &htLog{}
		remove := c.AddHooks(early.hooks())
		ctx, client := c.WithClient(t.Context(), "a")
		lost := ltGo(ctx, c, "lost")
		ctxB, _ := c.WithClient(t.Context(), "b")
		released := ltGo(ctxB, c, "released")
		ctxC, _ := c.WithClient(t.Context(), "c")
		waits := ltGo(ctxC, c, "released")
		remove()
		removeLate := c.AddHooks(late.hooks())
		defer removeLate()
		htLater(1)
		client.Close()
		lost.open()
		released.open()
		waits.open()
		early.told(t, "a", "Acquired lost", "Failed lost held=1s (processlock: lock was lost while fn ran)")
		early.told(t, "b", "Acquired released", "Released released held=1s")
		early.told(t, "c", "Waiting released", "Acquired released waited=1s", "Released released waited=1s")
		assert.Empty(t, late.calls)
	})
}
