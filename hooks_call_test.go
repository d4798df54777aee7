package processlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Hooks run on the request's goroutine, as fn does.
//
// Rule 42.
func TestHooksRunInTheRequestsGoroutine(t *testing.T) {
	htBubble(t, processlock.Options{}, func(s *htScene) {
		a := s.start("a", "k")
		var own, failed string
		ctx, _ := s.as("b")
		b := ltGoLast(ctx, s.c, processlock.All("k", "l"), func(context.Context) error { own = htGoroutine(); return nil })
		c := make(chan struct{})
		go func() {
			defer close(c)
			ctx, _ := s.as("c")
			failed = htGoroutine()
			assert.Error(s.t, s.c.WithLock(ctx, "k", ltNop, processlock.MaxWait(1)))
		}()
		<-c
		a.open()
		b.open()
		require.Len(s.t, s.of("b"), 5)
		for _, call := range s.of("b") {
			assert.Equal(s.t, own, call.goroutine, call)
		}
		require.Len(s.t, s.of("c"), 2)
		for _, call := range s.of("c") {
			assert.Equal(s.t, failed, call.goroutine, call)
		}
	})
}

// Every hook may call back into the library, on the request's own key and on
// others; a mutex held around it would stop it for ever.
//
// Rules 36 and 42.
func TestHooksMayCallBack(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var calls [4]atomic.Int64
		back := func(kind int) func(processlock.Event) {
			return func(e processlock.Event) {
				if e.Client != "main" { // one that a hook has made
					return
				}
				calls[kind].Add(1)
				ctCallback(c, e.Key, "other", "k1", "k2")
				c.AddHooks(processlock.Hooks{Failed: func(processlock.Event) {}})()
			}
		}
		remove := c.AddHooks(processlock.Hooks{Waiting: back(0), Acquired: back(1), Released: back(2), Failed: back(3)})
		ctx, client := c.WithClient(t.Context(), "main")
		a := ltGo(ctx, c, processlock.All("k1", "k2"))
		htLater(1)
		b := ltGo(ctx, c, "k1")
		d := ltGo(ctx, c, "k2", processlock.MaxWait(time.Second))
		e := ltGo(ctx, c, "k2", processlock.IfAvailable)
		htLater(2)
		ltRefused(t, d, processlock.ErrWaitTimeout)
		ltRefused(t, e, processlock.ErrUnavailable)
		a.open()
		htLater(1)
		ltServed(t, a)
		b.open()
		htLater(1)
		ltServed(t, b)
		lost := ltGo(ctx, c, "k1")
		htLater(1)
		client.Close()
		lost.open()
		assert.ErrorIs(t, lost.err, processlock.ErrLost)
		remove()
		for kind, want := range []int64{2, 4, 3, 3} {
			assert.Equal(t, want, calls[kind].Load(), "kind %d", kind)
		}
	})
}

// Released comes after the hand-over: the key is free, or the next has it.
//
// Rules 3 and 42.
func TestHooksAreToldOfAReleaseAfterTheHandOver(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var holders []string
		remove := c.AddHooks(processlock.Hooks{Released: func(processlock.Event) {
			name := "nobody"
			for _, l := range c.Snapshot().Locks {
				name = l.Holders[0].Client
			}
			holders = append(holders, name)
		}})
		defer remove()
		ctxA, clientA := c.WithClient(t.Context(), "a")
		defer clientA.Close()
		ctxB, clientB := c.WithClient(t.Context(), "b")
		defer clientB.Close()
		a, b := ltGo(ctxA, c, "k"), ltGo(ctxB, c, "k")
		a.open()
		b.open()
		assert.Equal(t, []string{"b", "nobody"}, holders)
	})
}

// A request waits for its hooks, but not another for them: what a hook takes
// counts to no wait or hold but where the key is kept meanwhile.
//
// Rule 42.
func TestHooksThatTakeTimeAreNotMeasured(t *testing.T) {
	htBubble(t, processlock.Options{}, func(s *htScene) {
		remove := s.c.AddHooks(processlock.Hooks{
			Waiting:  func(processlock.Event) { htSleep(1) },
			Released: func(processlock.Event) { htSleep(10) },
			Failed:   func(processlock.Event) { htSleep(100) },
		})
		defer remove()
		ctx, client := s.as("lost")
		lost := ltGo(ctx, s.c, processlock.All("l1", "l2"))
		several := s.start("several", processlock.All("k1", "k2"))
		late := s.start("late", "k1", processlock.MaxWait(2*time.Second))
		next := s.start("next", "k2")
		htLater(4)
		several.open()
		htLater(60)
		next.open()
		client.Close()
		lost.open()
		htLater(200)
		ltRefused(s.t, late, processlock.ErrWaitTimeout)
		s.wants("late", "Waiting k1", `Failed k1 waited=2s (processlock: lock ["k1"]: not available within MaxWait)`)
		s.wants("several", "Acquired k1", "Acquired k2", "Released k2 held=4s", "Released k1 held=4s")
		s.wants("next", "Waiting k2", "Acquired k2 waited=4s", "Released k2 waited=4s held=1m0s")
		calls := s.of("lost")
		require.Len(s.t, calls, 4)
		assert.Equal(s.t, []time.Duration{64 * time.Second, 64 * time.Second}, []time.Duration{calls[2].Held, calls[3].Held})
	})
}

// Nil hooks are not called, and those that are there are, in the order in which
// they came.
//
// Rule 42.
func TestHooksMayBeNilAndSeveral(t *testing.T) {
	var got []string
	say := func(what string) func(processlock.Event) {
		return func(processlock.Event) { got = append(got, what) }
	}
	c := processlock.New(processlock.Options{Hooks: processlock.Hooks{Acquired: say("1 Acquired")}})
	defer c.AddHooks(processlock.Hooks{Released: say("2 Released")})()
	defer c.AddHooks(processlock.Hooks{Acquired: say("3 Acquired"), Released: say("3 Released"), Failed: say("3 Failed")})()
	require.Error(t, c.WithLock(t.Context(), "k", func(ctx context.Context) error { return c.WithLock(ctx, "k", ltNop) }))
	assert.Equal(t, []string{"1 Acquired", "3 Acquired", "3 Failed", "2 Released", "3 Released"}, got)
}
