package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// What hooks are told of a request in every way that one can go, with exact
// times.
//
// Rules 41 and 42.
func TestHooksAreToldOfARequestInOrder(t *testing.T) {
	for _, row := range []struct {
		name string
		opts processlock.Options
		run  func(s *htScene)
	}{
		{name: "free", run: func(s *htScene) {
			a := s.start("a", "k")
			s.wants("a", "Acquired k")
			htLater(1)
			a.open()
			s.wants("a", "Acquired k", "Released k held=1s")
		}},
		{name: "fn fails", run: func(s *htScene) {
			ctx, _ := s.as("a")
			assert.Error(s.t, s.c.WithLock(ctx, "k", func(context.Context) error { return errors.New("no") }))
			s.wants("a", "Acquired k", "Released k")
		}},
		{name: "waits", run: func(s *htScene) {
			a := s.start("a", "k")
			htLater(1)
			b := s.start("b", "k")
			s.wants("b", "Waiting k")
			htLater(2)
			a.open()
			s.wants("b", "Waiting k", "Acquired k waited=2s")
			htLater(4)
			b.open()
			s.wants("a", "Acquired k", "Released k held=3s")
			s.wants("b", "Waiting k", "Acquired k waited=2s", "Released k waited=2s held=4s")
		}},
		{name: "shared", run: func(s *htScene) {
			a, b := s.start("a", "k", processlock.Shared), s.start("b", "k", processlock.Shared)
			c := s.start("c", "k")
			d, e := s.start("d", "k", processlock.Shared), s.start("e", "k", processlock.Shared)
			htLater(1)
			a.open()
			b.open()
			htLater(1)
			c.open() // which grants to d and e together
			htLater(1)
			d.open()
			htLater(1)
			e.open()
			s.wants("a", "Acquired k", "Released k held=1s")
			s.wants("b", "Acquired k", "Released k held=1s")
			s.wants("c", "Waiting k", "Acquired k waited=1s", "Released k waited=1s held=1s")
			s.wants("d", "Waiting k", "Acquired k waited=2s", "Released k waited=2s held=1s")
			s.wants("e", "Waiting k", "Acquired k waited=2s", "Released k waited=2s held=2s")
		}},
		{name: "All", run: func(s *htScene) {
			b := s.start("b", "k2")
			a := s.start("a", processlock.All("k3", "k1", "k2"))
			htLater(1)
			s.wants("a", "Acquired k1", "Waiting k2")
			b.open()
			htLater(1)
			a.open()
			s.wants("a", "Acquired k1", "Waiting k2", "Acquired k2 waited=1s", "Acquired k3",
				"Released k3 held=1s", "Released k2 waited=1s held=1s", "Released k1 held=2s")
		}},
		{name: "All, not all to be had", run: func(s *htScene) {
			b := s.start("b", "k2")
			a := s.start("a", processlock.All("k1", "k2", "k3"), processlock.IfAvailable)
			ltRefused(s.t, a, processlock.ErrUnavailable)
			b.open()
			s.wants("a", "Acquired k1", `Failed k2 (processlock: lock ["k2"]: not available now)`, "Released k1")
		}},
		{name: "All, of no keys", run: func(s *htScene) {
			s.start("a", processlock.All()).open()
			s.wants("a")
		}},
		{name: "Reentrant", run: func(s *htScene) {
			ctx, _ := s.as("a")
			require.NoError(s.t, s.c.WithLock(ctx, "k", func(ctx context.Context) error {
				htLater(1)
				return errors.Join(
					s.c.WithLock(ctx, "k", ltNop, processlock.Reentrant),
					s.c.WithLock(ctx, "l", ltNop, processlock.Reentrant))
			}))
			s.wants("a", "Acquired k", "Acquired l", "Released l", "Released k held=1s")
		}},
		{name: "Reentrant, All", run: func(s *htScene) {
			ctx, _ := s.as("a")
			require.NoError(s.t, s.c.WithLock(ctx, "k2", func(ctx context.Context) error {
				return s.c.WithLock(ctx, processlock.All("k1", "k2", "k3"), ltNop, processlock.Reentrant)
			}))
			s.wants("a", "Acquired k2", "Acquired k1", "Acquired k3", "Released k3", "Released k1", "Released k2")
		}},
		{name: "IfAvailable", run: func(s *htScene) {
			a := s.start("a", "k", processlock.IfAvailable)
			htLater(1)
			ltRefused(s.t, s.start("b", "k", processlock.IfAvailable), processlock.ErrUnavailable)
			ltRefused(s.t, s.start("c", "k", processlock.MaxWait(0)), processlock.ErrUnavailable)
			a.open()
			s.wants("a", "Acquired k", "Released k held=1s")
			s.wants("b", `Failed k (processlock: lock ["k"]: not available now)`)
			s.wants("c", `Failed k (processlock: lock ["k"]: not available now)`)
		}},
		{name: "MaxWait", run: func(s *htScene) {
			a := s.start("a", "k")
			b := s.start("b", "k", processlock.MaxWait(3e9))
			htLater(5)
			ltRefused(s.t, b, processlock.ErrWaitTimeout)
			a.open()
			s.wants("b", "Waiting k", `Failed k waited=3s (processlock: lock ["k"]: not available within MaxWait)`)
		}},
		{name: "MaxWaiters", opts: processlock.Options{MaxWaiters: 1}, run: func(s *htScene) {
			a, b := s.start("a", "k"), s.start("b", "k")
			ltRefused(s.t, s.start("c", "k"), processlock.ErrQueueFull)
			a.open()
			b.open()
			s.wants("c", `Failed k (processlock: lock ["k"]: queue is full (Options.MaxWaiters))`)
		}},
		{name: "canceled", run: func(s *htScene) {
			a := s.start("a", "k")
			ctx, _ := s.as("b")
			ctx, cancel := context.WithCancelCause(ctx)
			b := ltGo(ctx, s.c, "k")
			htLater(1)
			cancel(errors.New("enough"))
			synctest.Wait()
			ltRefused(s.t, b, context.Canceled)
			a.open()
			s.wants("b", "Waiting k", `Failed k waited=1s (processlock: lock ["k"]: context canceled: enough)`)
		}},
		{name: "done before", run: func(s *htScene) {
			ctx, _ := s.as("a")
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			for _, key := range []any{"k", processlock.All("k"), []any{1, 2}} {
				assert.ErrorIs(s.t, s.c.WithLock(ctx, key, ltNop), context.Canceled)
			}
			s.wants("a")
		}},
		{name: "done between the keys of All", run: func(s *htScene) {
			b := s.start("b", "k1")
			ctx, _ := s.as("a")
			ctx, cancel := context.WithCancel(ctx)
			remove := s.c.AddHooks(processlock.Hooks{Acquired: func(e processlock.Event) {
				if e.Client == "a" {
					cancel()
				}
			}})
			defer remove()
			a := ltGo(ctx, s.c, processlock.All("k1", "k2"))
			htLater(1)
			b.open()
			ltRefused(s.t, a, context.Canceled)
			s.wants("a", "Waiting k1", "Acquired k1 waited=1s", "Released k1 waited=1s")
		}},
		{name: "no identity", run: func(s *htScene) {
			ctx, _ := s.as("a")
			for _, key := range []any{make(chan int), processlock.Key{}, processlock.All("k", make(chan int))} {
				assert.ErrorIs(s.t, s.c.WithLock(ctx, key, ltNop), processlock.ErrKey)
			}
			s.wants("a")
		}},
		{name: "own lineage", run: func(s *htScene) {
			ctx, _ := s.as("a")
			assert.ErrorIs(s.t, s.c.WithLock(ctx, "k", func(ctx context.Context) error {
				htLater(1)
				return s.c.WithLock(ctx, "k", ltNop)
			}), processlock.ErrDeadlock)
			require.Len(s.t, s.of("a"), 3)
			assert.Equal(s.t, "Acquired k", s.of("a")[0].String())
			assert.ErrorIs(s.t, s.of("a")[1].Err, processlock.ErrDeadlock)
			assert.Zero(s.t, s.of("a")[1].Waited)
			assert.Equal(s.t, "Released k held=1s", s.of("a")[2].String())
		}},
		{name: "panic", run: func(s *htScene) {
			ctx, _ := s.as("a")
			a := ltGoLast(ctx, s.c, "k", func(context.Context) error { panic("fn's") })
			b := s.start("b", "k")
			htLater(1)
			a.open()
			assert.Equal(s.t, "fn's", a.value)
			b.open()
			s.wants("a", "Acquired k", "Released k held=1s")
			s.wants("b", "Waiting k", "Acquired k waited=1s", "Released k waited=1s")
		}},
		{name: "Goexit", run: func(s *htScene) {
			ctx, _ := s.as("a")
			a := ltGoLast(ctx, s.c, processlock.All("k", "l"), func(context.Context) error { runtime.Goexit(); return nil })
			a.open()
			assert.Equal(s.t, "exit", a.ended())
			s.wants("a", "Acquired k", "Acquired l", "Released l", "Released k")
		}},
	} {
		t.Run(row.name, func(t *testing.T) { htBubble(t, row.opts, row.run) })
	}
}
