package processlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dbx-tools/processlock"
)

// The first error ends the group's context when fn has returned it, with the keys
// given up, and not when hooks are done with the task: one that takes its time
// must not keep others at work.
//
// Rule 42.
func TestGroupFirstErrorDoesNotWaitForHooks(t *testing.T) {
	fails := func(context.Context) error { return errGt }
	for _, way := range []struct {
		name string
		key  any
		last func(context.Context) error
		want error
		hook string
	}{
		{"one key", "k", fails, errGt, "Released"},
		{"several keys", processlock.All("k", "l"), fails, errGt, "Released"},
		{"the hold was lost", processlock.All("k", "lost"), ltNop, processlock.ErrLost, "Released"},
		// The task's client is closed with it, which takes a key from what it has
		// left behind.
		{"a key left behind", "k", func(ctx context.Context) error {
			entered := make(chan struct{})
			go processlock.WithLock(context.WithoutCancel(ctx), "left", func(context.Context) error {
				close(entered)
				time.Sleep(time.Hour)
				return nil
			})
			<-entered
			return errGt
		}, errGt, "Failed"},
	} {
		t.Run(way.name, func(t *testing.T) {
			var told atomic.Int64
			slow := func(processlock.Event) { told.Add(1); time.Sleep(time.Minute) }
			hooks := processlock.Hooks{Released: slow}
			if way.hook == "Failed" {
				hooks = processlock.Hooks{Failed: slow}
			}
			gtBubbleWith(t, processlock.Options{Hooks: hooks}, 0, func(s *gtScene) {
				failing, running := gtNew(s, way.last), gtNew(s, ltNop)
				add := func(ctx context.Context) error {
					s.g, s.ctx = processlock.NewGroup(ctx, "g")
					s.g.GoLocked(way.key, failing.fn, processlock.Reentrant)
					s.g.Go(running.fn)
					synctest.Wait()
					return nil
				}
				if way.want == processlock.ErrLost {
					assert.NoError(s, s.c.WithLock(s.root, "lost", add))
					time.Sleep(time.Hour) // for the hook
					told.Store(0)
				} else {
					assert.NoError(s, add(s.root))
				}
				failing.open()
				assert.EqualValues(s, 1, told.Load(), "the hook sleeps")
				assert.Equal(s, way.want, context.Cause(s.ctx))
				assert.Error(s, running.ctx.Err())
				assert.Equal(s, processlock.ErrClosed, context.Cause(failing.ctx), "its client was closed before")
				assert.NotContains(s, gtLocks(s.c), `["k"]`)
				w := gtWaits(s.g)
				running.open()
				assert.False(s, w.isOver(), "Wait does wait for hooks")
				time.Sleep(2 * time.Hour)
				assert.True(s, w.isOver())
				assert.Equal(s, way.want, w.err)
			})
		})
	}
}

// Which error is the first is not for hooks to decide.
//
// Rule 42.
func TestGroupFirstErrorIsTheFirst(t *testing.T) {
	slow := processlock.Hooks{Released: func(e processlock.Event) {
		if e.Client == "g-1" {
			time.Sleep(time.Minute)
		}
	}}
	gtBubbleWith(t, processlock.Options{Hooks: slow}, 0, func(s *gtScene) {
		first := s.lockLast("a", func(context.Context) error { return errGt })
		second := s.lockLast("b", func(context.Context) error { return errGtCause })
		first.open()
		second.open()
		assert.Equal(s, errGt, s.g.Wait())
		assert.Equal(s, errGt, context.Cause(s.ctx))
	})
}
