package processlock_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dbx-tools/processlock"
)

// htSlowWaits runs fn in a bubble with a coordinator that warns of waits of ten
// seconds.
func htSlowWaits(t *testing.T, fn func(s *htScene, warned func(want ...string))) {
	lines := &htLines{}
	logger := slog.New(slog.NewTextHandler(lines, nil))
	htBubble(t, processlock.Options{SlowWait: 10 * time.Second, Logger: logger}, func(s *htScene) {
		fn(s, func(want ...string) {
			t.Helper()
			assert.ElementsMatch(t, want, lines.take())
		})
	})
}

// Who has the key when a wait begins, and who has it last, may have kept the
// request waiting for next to nothing.
func TestSlowWaitNamesWhoIsToBlame(t *testing.T) {
	htSlowWaits(t, func(s *htScene, warned func(...string)) {
		quick, culprit, late := s.start("quick", "k"), s.start("culprit", "k"), s.start("late", "k")
		victim, second := s.start("victim", "k"), s.start("second", "k")
		htLater(0.001)
		quick.open()
		htLater(12)
		next := s.start("next", "k") // who does not wait long for the culprit
		culprit.open()
		warned(htSlowWait + htKey("k") + "by.client=late waited=12.001s holder.client=quick longest.client=culprit longest.waited=12s queue=2")
		htLater(2)
		late.open()
		warned(htSlowWait + htKey("k") + "by.client=victim waited=14.001s holder.client=quick longest.client=culprit longest.waited=12s queue=3")
		htLater(5)
		victim.open()
		warned(htSlowWait + htKey("k") + "by.client=second waited=19.001s holder.client=quick longest.client=culprit longest.waited=12s queue=4")
		htLater(4)
		second.open()
		warned(htSlowWait + htKey("k") + "by.client=next waited=11s holder.client=culprit longest.client=victim longest.waited=5s queue=4")
		next.open()
	})
}

// Who was there when the wait began is named once, if nobody kept it waiting for
// longer.
func TestSlowWaitNamesNobodyTwice(t *testing.T) {
	htSlowWaits(t, func(s *htScene, warned func(...string)) {
		a, b, c := s.start("a", "k"), s.start("b", "k"), s.start("c", "k")
		htLater(6)
		a.open()
		htLater(6)
		b.open()
		warned(htSlowWait + htKey("k") + "by.client=c waited=12s holder.client=a queue=2")
		c.open()
	})
}

// A tenth of SlowWait is enough to be to blame, less is not.
func TestSlowWaitBlamesNobodyForAMoment(t *testing.T) {
	for held, blamed := range map[float64]string{0.999: "", 1: " longest.client=some longest.waited=1s"} {
		htSlowWaits(t, func(s *htScene, warned func(...string)) {
			var calls []*ltCall
			for range 6 {
				calls = append(calls, s.start("many", "k"))
			}
			calls = append(calls, s.start("some", "k"))
			for range 4 {
				calls = append(calls, s.start("many", "k"))
			}
			last := s.start("last", "k")
			for i, call := range calls {
				if i == 6 {
					htLater(held)
				} else {
					htLater(0.99)
				}
				call.open()
			}
			warned(htSlowWait + htKey("k") + "by.client=last waited=" + time.Duration(9.9e9+held*1e9).String() + " holder.client=many" + blamed + " queue=11")
			last.open()
		})
	}
}

// Of shared holders the last to leave is to blame. Those who leave before let
// nobody in.
func TestSlowWaitBlamesTheLastOfSharedHolders(t *testing.T) {
	htSlowWaits(t, func(s *htScene, warned func(...string)) {
		a, b, c := s.start("a", "k", processlock.Shared), s.start("b", "k", processlock.Shared), s.start("c", "k", processlock.Shared)
		victim := s.start("victim", "k")
		htLater(1)
		a.open()
		htLater(8)
		c.open()
		htLater(3)
		b.open()
		warned(htSlowWait + htKey("k") + "by.client=victim waited=12s holder.client=a longest.client=b longest.waited=12s queue=1")
		victim.open()
	})
}

// Who gives up names who has the key by then, and who had it for longer.
func TestSlowWaitThatIsGivenUpNamesWhoIsToBlame(t *testing.T) {
	const late = ` error="not available within MaxWait"`
	htSlowWaits(t, func(s *htScene, warned func(...string)) {
		a, b, c := s.start("a", "k"), s.start("b", "k"), s.start("c", "k")
		s.start("first", "k", processlock.MaxWait(14*time.Second))
		s.start("second", "k", processlock.MaxWait(20*time.Second))
		htLater(1)
		a.open()
		htLater(9)
		b.open()
		warned(htSlowWait + htKey("k") + "by.client=c waited=10s holder.client=a longest.client=b longest.waited=9s queue=2")
		htLater(4)
		warned(htSlowWait + htKey("k") + "by.client=first waited=14s holder.client=c longest.client=b longest.waited=9s queue=2" + late)
		htLater(6)
		warned(htSlowWait + htKey("k") + "by.client=second waited=20s holder.client=c queue=1" + late)
		c.open()
	})
}

// A hold that Close takes away was one, whether fn ran or All still waited for
// another key; as was one of a task that never got a slot, or not again.
func TestSlowWaitBlamesWhatCameToNothing(t *testing.T) {
	htSlowWaits(t, func(s *htScene, warned func(...string)) {
		ctxB, clientB := s.as("b")
		ctxAll, clientAll := s.as("all")
		other := s.start("other", "k2")
		a, b := s.start("a", "k1"), ltGo(ctxB, s.c, "k1")
		all := ltGo(ctxAll, s.c, processlock.All("k1", "k2"))
		c, d := s.start("c", "k1"), s.start("d", "k1")
		htLater(1)
		a.open()
		htLater(10)
		clientB.Close()
		synctest.Wait()
		warned(htSlowWait + htKey("k1") + "by.client=all waited=11s holder.client=a longest.client=b longest.waited=10s queue=2")
		htLater(20)
		clientAll.Close()
		synctest.Wait()
		ltRefused(t, all, processlock.ErrClosed)
		warned(
			htSlowWait+htKey("k2")+`by.client=all waited=20s holder.client=other queue=1 error="context canceled: client or coordinator closed"`,
			htSlowWait+htKey("k1")+"by.client=c waited=31s holder.client=a longest.client=all longest.waited=20s queue=3")
		b.open()
		c.open()
		warned(htSlowWait + htKey("k1") + "by.client=d waited=31s holder.client=a longest.client=all longest.waited=20s queue=4")
		d.open()
		other.open()
	})
	for _, key := range []any{"k", processlock.All("k", "l")} {
		htSlowWaits(t, func(s *htScene, warned func(...string)) {
			ctx, cancel := context.WithCancel(processlock.WithCoordinator(s.ctx, s.c))
			g, _ := processlock.NewGroup(ctx, "g")
			g.SetLimit(1)
			gate := make(chan struct{})
			g.Go(func(context.Context) error { <-gate; return nil })
			a := s.start("a", "k")
			g.GoLocked(key, ltNop)
			c := s.start("c", "k")
			htLater(1)
			a.open()
			htLater(11)
			warned()
			cancel()
			synctest.Wait()
			warned(htSlowWait + htKey("k") + "by.client=c waited=12s holder.client=a longest.client=g-2 longest.waited=11s queue=2")
			close(gate)
			assert.Error(t, g.Wait())
			c.open()
		})
	}
	htSlowWaits(t, func(s *htScene, warned func(...string)) {
		g, _ := processlock.NewGroup(processlock.WithCoordinator(s.ctx, s.c), "g")
		g.SetLimit(1)
		gate := make(chan struct{})
		var cancel context.CancelFunc
		a := s.start("a", "k")
		g.Go(func(ctx context.Context) error {
			ctx, cancel = context.WithCancel(ctx)
			assert.ErrorIs(t, processlock.WithLock(ctx, "k", ltNop), context.Canceled)
			return nil
		})
		synctest.Wait()
		g.Go(func(context.Context) error { <-gate; return nil }) // with the slot of the first
		c := s.start("c", "k")
		htLater(1)
		a.open()
		htLater(11)
		cancel()
		synctest.Wait()
		warned(htSlowWait + htKey("k") + "by.client=c waited=12s holder.client=a longest.client=g-1 longest.waited=11s queue=2")
		close(gate)
		assert.NoError(t, g.Wait())
		c.open()
	})
}

// Holders write to those who wait for them, whatever way either of them ends:
// for the race detector.
//
// Rule 38.
func TestSlowWaitsInAStorm(t *testing.T) {
	c := processlock.New(processlock.Options{SlowWait: 1, SlowHold: 1, Logger: slog.New(slog.DiscardHandler)})
	until := time.Now().Add(ltStress(t))
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for n := g; time.Now().Before(until); n++ {
				ctx, client := c.WithClient(t.Context(), "w")
				ctx, cancel := context.WithCancel(ctx)
				ends := []func(){func() {}, client.Close, cancel}[n%3]
				run := func(context.Context) error {
					runtime.Gosched()
					ends()
					return nil
				}
				switch n / 3 % 4 {
				case 0:
					_ = c.WithLock(ctx, "k", run)
				case 1:
					_ = c.WithLock(ctx, "k", run, processlock.Shared)
				case 2:
					_ = c.WithLock(ctx, processlock.All("k", "l"), run)
				case 3:
					_ = c.WithLock(ctx, "k", run, processlock.MaxWait(time.Microsecond))
				}
				cancel()
				client.Close()
			}
		})
	}
	all.Wait()
	assert.NoError(t, processlock.CTLeft(c))
}
