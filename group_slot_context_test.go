package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/dbx-tools/processlock"
)

// The slot follows the task's context through WithClient, WithCoordinator and
// WithoutCancel; a detached one is not the task's, nor is another.
func TestGroupSlotFollowsTheContext(t *testing.T) {
	for _, way := range []struct {
		name string
		with func(s *gtScene, ctx context.Context) context.Context
		back bool
	}{
		{"task", func(_ *gtScene, ctx context.Context) context.Context { return ctx }, true},
		{"WithoutCancel", func(_ *gtScene, ctx context.Context) context.Context { return context.WithoutCancel(ctx) }, true},
		{"WithClient", func(_ *gtScene, ctx context.Context) context.Context {
			ctx, _ = processlock.WithClient(ctx, "inner")
			return ctx
		}, true},
		{"WithCoordinator", func(_ *gtScene, ctx context.Context) context.Context {
			return processlock.WithCoordinator(ctx, processlock.New(processlock.Options{}))
		}, true},
		{"Detach", func(_ *gtScene, ctx context.Context) context.Context { return processlock.Detach(ctx) }, false},
		{"Detach, WithClient", func(_ *gtScene, ctx context.Context) context.Context {
			ctx, _ = processlock.WithClient(processlock.Detach(ctx), "inner")
			return ctx
		}, false},
		{"another", func(s *gtScene, _ context.Context) context.Context { return s.root }, false},
		{"the group's", func(s *gtScene, _ context.Context) context.Context { return s.ctx }, false},
	} {
		for _, key := range []any{nil, "key"} {
			t.Run(way.name, func(t *testing.T) {
				gtBubble(t, 1, func(s *gtScene) {
					busy := s.call("k")
					last := func(ctx context.Context) error { return s.c.WithLock(way.with(s, ctx), "k", ltNop) }
					var a *gtTask
					if key == nil {
						a = s.freeLast(last)
					} else {
						a = s.lockLast(key, last)
					}
					b := s.free()
					a.open()
					assert.Equal(s, way.back, b.state() == "runs")
					busy.open()
					b.open()
					s.states([]string{"over", "over"}, a, b)
				})
			})
		}
	}
}

// Wait in a task of another group gives the slot back, so that nested groups work
// at a limit of 1.
func TestGroupSlotIsGivenBackWhileWaitWaits(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		inner := gtNew(s, ltNop)
		var err error
		a := s.freeLast(func(ctx context.Context) error {
			g, _ := processlock.NewGroup(ctx, "inner")
			g.SetLimit(1)
			g.GoLocked("k", inner.fn)
			err = g.Wait()
			return nil
		})
		b, d := s.lock("k"), s.free()
		a.open()
		s.states([]string{"waits", "runs", "waits"}, inner, b, d)
		b.open()
		s.states([]string{"runs", "runs"}, inner, d)
		inner.open()
		s.states([]string{"runs"}, a)
		d.open()
		s.states([]string{"over"}, a)
		assert.NoError(s, err)
	})
}

// So does Shutdown: it may wait for tasks that hold their keys and wait for a
// slot.
//
// Rule 29.
func TestGroupSlotIsGivenBackWhileShutdownWaits(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		var err error
		a := s.freeLast(func(ctx context.Context) error {
			err = s.c.Shutdown(ctx)
			return nil
		})
		b := s.lock("k")
		s.states([]string{"runs", "waits"}, a, b)
		a.open()
		s.states([]string{"runs", "runs"}, a, b)
		b.open()
		s.states([]string{"over", "over"}, a, b)
		assert.NoError(s, err)
	})
}

// What a task leaves behind when it ends has no slot to wait for.
func TestGroupSlotIsNothingToWhatATaskLeavesBehind(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		left, other := &ltCall{gate: make(chan struct{}), last: ltNop}, &ltCall{}
		over := make(chan struct{})
		a := s.freeLast(func(ctx context.Context) error {
			go left.run(func() error { return s.c.WithLock(context.WithoutCancel(ctx), "l", left.fn) })
			go other.run(func() error { return s.c.WithLock(ctx, "k", ltNop) })
			<-over
			return nil
		})
		b, d := s.free(), s.free()
		a.open()
		s.states([]string{"runs", "runs", "waits"}, a, b, d)
		assert.Equal(s, []string{"runs", "waits"}, ltStates(left, other))
		close(over)
		synctest.Wait()
		s.states([]string{"over", "runs", "waits"}, a, b, d)
		ltRefused(s, other, processlock.ErrClosed)
		assert.Equal(s, "runs", left.state())
		left.open()
		assert.Equal(s, "over", left.state())
		assert.Equal(s, processlock.ErrLost, left.err, "its client was closed with the task")
		b.open()
		d.open()
		busy.open()
	})
}

// Nor when it is waiting for one just then.
func TestGroupTaskEndsWhileACallOfItsWaitsForTheSlot(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		left, over := &ltCall{}, make(chan struct{})
		a := s.freeLast(func(ctx context.Context) error {
			go left.run(func() error { return s.c.WithLock(context.WithoutCancel(ctx), "k", ctNever(s)) })
			<-over
			return nil
		})
		b, d := s.free(), s.free()
		a.open()
		busy.open()
		assert.Equal(s, "waits", left.state())
		s.states([]string{"runs", "runs", "waits"}, a, b, d)
		close(over)
		synctest.Wait()
		s.states([]string{"over", "runs", "waits"}, a, b, d)
		ltRefused(s, left, processlock.ErrClosed)
		b.open()
		d.open()
	})
}
