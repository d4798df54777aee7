package processlock_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// ltConsistent fails the test unless call ended in exactly one of two ways: fn
// ran and there is no error, or it did not and the context is to blame.
func ltConsistent(t *testing.T, call *ltCall) {
	t.Helper()
	if call.entered.Load() {
		ltServed(t, call)
	} else {
		ltRefused(t, call, context.Canceled)
	}
}

// Head of the queue cancels in the same tick as the release: whoever is behind
// it runs.
//
// Rules 5 and 10.
func TestField_A1_HeadCancelsAsTheHolderReleases(t *testing.T) {
	ltProcs(t, func(t *testing.T) {
		for i := range 300 {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				ctx, cancel := context.WithCancel(t.Context())
				holder := ltGo(t.Context(), c, "k")
				first := ltGo(ctx, c, "k")
				second := ltGo(t.Context(), c, "k")
				close(first.gate)
				if i%2 == 0 {
					cancel()
					close(holder.gate)
				} else {
					close(holder.gate)
					cancel()
				}
				synctest.Wait()
				ltConsistent(t, first)
				assert.Equal(t, "runs", second.state())
				second.open()
			})
		}
	})
}

// The waiter that was granted is cancelled before it resumes: the releaser
// cancels it in its very next step.
//
// Rule 10.
func TestField_A2_GrantedWaiterIsCancelledBeforeItResumes(t *testing.T) {
	ltProcs(t, func(t *testing.T) {
		for i := range 300 {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				ctx, cancel := context.WithCancel(t.Context())
				gate := make(chan struct{})
				go func() {
					_ = c.WithLock(t.Context(), "k", func(context.Context) error {
						<-gate
						return nil
					})
					if i%2 == 0 {
						runtime.Gosched()
					}
					cancel()
				}()
				first := ltGo(ctx, c, "k")
				second, third := ltGo(t.Context(), c, "k"), ltGo(t.Context(), c, "k")
				for _, call := range []*ltCall{first, second, third} {
					close(call.gate)
				}
				close(gate)
				synctest.Wait()
				ltConsistent(t, first)
				ltServed(t, second)
				ltServed(t, third)
			})
		}
	})
}

// Rules 9 and 10.
func TestField_B3_CancelBeforeTheReleaseWins(t *testing.T) {
	for _, pause := range []func(){synctest.Wait, func() {}, runtime.Gosched} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			ctx, cancel := context.WithCancel(t.Context())
			holder := ltGo(t.Context(), c, "k")
			waiter := ltGo(ctx, c, "k")
			close(waiter.gate)
			cancel()
			pause()
			holder.open()
			// The cancel came first in every case.
			ltRefused(t, waiter, context.Canceled)
		})
	}
}

// Rule 11.
func TestField_B7_CancelDuringFnReturnsWhenFnDoes(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		want := &ltFnError{"fn's own"}
		call := ltGoLast(ctx, c, "k", func(context.Context) error { return want })
		cancel()
		synctest.Wait()
		assert.Equal(t, "runs", call.state(), "the caller was told while fn still works")
		assert.False(t, ltFree(c, "k"))
		call.open()
		assert.Same(t, want, call.err)
	})
}

// Rules 8 and 10.
func TestField_B8_DoneContextNeverRunsFn(t *testing.T) {
	c := processlock.New(processlock.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ran := 0
	for range 1000 {
		assert.ErrorIs(t, c.WithLock(ctx, "k", func(context.Context) error {
			ran++
			return nil
		}), context.Canceled)
	}
	assert.Zero(t, ran)
	ltIdle(t, c)

	// Grant and cancel are both there when the waiter looks: it must not be
	// left to chance that the context wins.
	for range 300 {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			ctx, cancel := context.WithCancel(t.Context())
			holder := ltGoLast(t.Context(), c, "k", func(context.Context) error {
				cancel()
				return nil
			})
			waiter := ltGo(ctx, c, "k")
			close(waiter.gate)
			holder.open()
			ltRefused(t, waiter, context.Canceled)
		})
	}
}
