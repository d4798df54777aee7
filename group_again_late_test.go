package processlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// MaxWait may be over when the grant comes, and its timer be stopped before it
// has told so: then nothing is left of it for a task that asks again.
//
// Rule 20.
func TestGroupReentrantTaskAsksAgainWithNothingLeftOfMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{})
		ctx := WithCoordinator(t.Context(), c)
		slot, hold := make(chan struct{}), make(chan struct{})
		go c.WithLock(ctx, "l", func(context.Context) error { time.Sleep(time.Second / 2); return nil })
		synctest.Wait()
		var g *Group
		assert.NoError(t, c.WithLock(ctx, "k", func(ctx context.Context) error {
			g, _ = NewGroup(ctx, "g")
			g.SetLimit(1)
			g.Go(func(context.Context) error { <-slot; return nil })
			g.GoLocked(All("k", "l"), func(context.Context) error { return nil }, Reentrant, MaxWait(time.Second))
			time.Sleep(time.Second)
			return nil
		}))
		go c.WithLock(ctx, "k", func(context.Context) error { <-hold; return nil })
		synctest.Wait()
		g.mu.Lock()
		g.ready.first.several.maxWait -= time.Second / 2 // the grant came so late
		g.mu.Unlock()
		close(slot)
		synctest.Wait()
		assert.Equal(t, 1, g.Skipped())
		close(hold)
		assert.NoError(t, g.Wait())
	})
}
