package processlock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dbx-tools/processlock"
)

// A task's hooks are a call's. It is told of Acquired when it starts, so its
// wait for a slot is part of what it held, and none of what it waited.
func TestHooksOfTasks(t *testing.T) {
	log := &htLog{}
	gtBubbleWith(t, processlock.Options{Hooks: log.hooks()}, 1, func(s *gtScene) {
		first := s.lock("a")  // g-1
		second := s.lock("a") // g-2, waits for the key
		third := s.lock("b")  // g-3, has its key and waits for the slot
		time.Sleep(time.Second)
		log.told(s, "g-1", "Acquired a")
		log.told(s, "g-2", "Waiting a")
		log.told(s, "g-3")

		first.open() // its key goes to the second, its slot to the third
		time.Sleep(time.Second)
		third.open()
		time.Sleep(time.Second)
		second.open()
		log.told(s, "g-1", "Acquired a", "Released a held=1s")
		log.told(s, "g-2", "Waiting a", "Acquired a waited=1s", "Released a waited=1s held=2s")
		log.told(s, "g-3", "Acquired b", "Released b held=2s")
		calls := log.of("g-2")
		assert.Contains(s, calls[1].Func, "gtTask", "where fn begins")
		assert.Equal(s, calls[1].goroutine, calls[2].goroutine, "Acquired and Released come from the task's own goroutine")
	})
}

func TestHooksOfTasksThatDontStart(t *testing.T) {
	log := &htLog{}
	gtBubbleWith(t, processlock.Options{Hooks: log.hooks(), MaxWaiters: 3}, 1, func(s *gtScene) {
		first := s.lock("a")
		s.lock("a", processlock.IfAvailable)
		s.lock("a", processlock.MaxWait(time.Second))
		s.lock(processlock.All("a", "b"))
		s.lock("a")
		s.lock("a", processlock.Shared) // one too many
		s.lock("c")                     // waits for the slot
		time.Sleep(2 * time.Second)
		s.cancel(errors.New("enough"))
		first.open()
		log.told(s, "g-2", "Failed a (processlock: lock [\"a\"]: not available now)")
		log.told(s, "g-3", "Waiting a", "Failed a waited=1s (processlock: lock [\"a\"]: not available within MaxWait)")
		enough := "(processlock: lock [\"a\"]: context canceled: enough)"
		log.told(s, "g-4", "Waiting a", "Failed a waited=2s "+enough)
		log.told(s, "g-5", "Waiting a", "Failed a waited=2s "+enough)
		log.told(s, "g-6", "Failed a (processlock: lock [\"a\"]: queue is full (Options.MaxWaiters))")
		log.told(s, "g-7", "Failed c "+strings.ReplaceAll(enough, `"a"`, `"c"`))
	})
}

// All tells of each key when the task starts, or that it never will.
func TestHooksOfTasksWithSeveralKeys(t *testing.T) {
	log := &htLog{}
	gtBubbleWith(t, processlock.Options{Hooks: log.hooks()}, 0, func(s *gtScene) {
		b := s.call("b")
		all := s.lock(processlock.All("a", "b", "c"))
		log.told(s, "g-1", "Waiting b")
		time.Sleep(time.Second)
		b.open()
		time.Sleep(time.Second)
		all.open()
		log.told(s, "g-1", "Waiting b",
			"Acquired a", "Acquired b waited=1s", "Acquired c",
			"Released c held=1s", "Released b waited=1s held=1s", "Released a held=2s")

		c := s.call("c")
		s.lock(processlock.All("a", "c"))
		s.cancel(nil)
		c.open()
		log.told(s, "g-2", "Waiting c",
			`Failed a (processlock: lock ["a"]: context canceled)`, `Failed c (processlock: lock ["c"]: context canceled)`)
	})
}

func TestHooksOfATaskInADeadlock(t *testing.T) {
	log := &htLog{}
	gtBubbleWith(t, processlock.Options{Hooks: log.hooks()}, 0, func(s *gtScene) {
		err := s.c.WithLock(s.root, "a", func(ctx context.Context) error {
			inner, _ := processlock.NewGroup(ctx, "inner")
			inner.GoLocked("a", ltNop)
			return inner.Wait()
		})
		assert.ErrorIs(s, err, processlock.ErrDeadlock)
		calls := log.of("inner-1")
		if assert.Len(s, calls, 1) {
			assert.Equal(s, "Failed", calls[0].kind)
			assert.ErrorIs(s, calls[0].Err, processlock.ErrDeadlock)
		}
	})
}

// A task that is slow is warned of as a call is, by its name.
func TestSlowTasksAreLogged(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	opts := processlock.Options{SlowWait: time.Second, SlowHold: 3 * time.Second, Logger: logger}
	gtBubbleWith(t, opts, 0, func(s *gtScene) {
		first, second := s.lock("a"), s.lock("a")
		time.Sleep(2 * time.Second)
		first.open()
		assert.Equal(s, 1, strings.Count(out.String(), "slow wait"), out.String())
		assert.Contains(s, out.String(), "by.client=g-2")
		assert.Contains(s, out.String(), "holder.client=g-1")
		time.Sleep(3 * time.Second)
		second.open()
		assert.Equal(s, 1, strings.Count(out.String(), "slow hold"), out.String())
	})
}

// A wait ends with the grant, or with what ends it, not with the wait for a slot
// that comes after: of a task, and of a call in one.
//
// Rules 41 and 42.
func TestHooksAreToldOfNoWaitForASlot(t *testing.T) {
	log := &htLog{}
	const canceled = `: context canceled)`
	gtBubbleWith(t, processlock.Options{Hooks: log.hooks()}, 1, func(s *gtScene) {
		running, j, k := s.free(), s.call("j"), s.call("k") // g-1 has the slot
		s.lock("k")                                         // g-2
		s.lock(processlock.All("j", "l"))                   // g-3
		time.Sleep(time.Second)
		j.open()
		k.open()
		time.Sleep(5 * time.Second) // for the slot
		s.cancel(nil)
		synctest.Wait()
		log.told(s, "g-2", "Waiting k", `Failed k waited=1s (processlock: lock ["k"]`+canceled)
		log.told(s, "g-3", "Waiting j",
			`Failed j waited=1s (processlock: lock ["j"]`+canceled, `Failed l (processlock: lock ["l"]`+canceled)
		running.open()
		assert.Equal(s, 2*time.Second, s.c.Stats().WaitDuration)
	})
	for _, granted := range []bool{false, true} {
		log := &htLog{}
		gtBubbleWith(t, processlock.Options{Hooks: log.hooks()}, 1, func(s *gtScene) {
			busy := s.call("k")
			stop := func() {}
			a := s.freeLast(func(ctx context.Context) error {
				ctx, stop = context.WithCancel(ctx)
				_ = s.c.WithLock(ctx, "k", ctNever(s))
				return nil
			})
			b := s.free()
			a.open()
			time.Sleep(time.Second)
			if granted {
				busy.open()
				time.Sleep(5 * time.Second) // for b's slot
			}
			stop()
			time.Sleep(5 * time.Second) // for b's slot
			assert.Equal(s, time.Second, s.c.Stats().WaitDuration)
			b.open()
			log.told(s, "g-1", "Waiting k", `Failed k waited=1s (processlock: lock ["k"]`+canceled)
			if !granted {
				busy.open()
			}
		})
	}
}

// What a Failed takes is in no other's wait.
//
// Rule 42.
func TestHooksThatTakeTimeAreNotMeasuredInATask(t *testing.T) {
	log := &htLog{}
	slow := processlock.Hooks{Failed: func(processlock.Event) { time.Sleep(time.Minute) }}
	gtBubbleWith(t, processlock.Options{Hooks: log.hooks()}, 0, func(s *gtScene) {
		defer s.c.AddHooks(slow)()
		j, k := s.call("j"), s.call("k")
		s.lock(processlock.All("i", "j", "k"))
		time.Sleep(time.Second)
		j.open()
		time.Sleep(time.Second)
		s.cancel(nil)
		time.Sleep(time.Hour)
		k.open()
		log.told(s, "g-1", "Waiting j", "Waiting k",
			`Failed i (processlock: lock ["i"]: context canceled)`,
			`Failed j waited=1s (processlock: lock ["j"]: context canceled)`,
			`Failed k waited=1s (processlock: lock ["k"]: context canceled)`)
	})
}

// A task that gives up waiting judges the holds that it leaves behind, as a call
// does, and one that has its key but no slot is judged by those that it keeps
// from the key.
func TestSlowHoldsAreJudgedByAndOfTasks(t *testing.T) {
	htSlow(t, func(s *htScene, warned func(...string)) {
		k := htKey("k")
		root := processlock.WithCoordinator(s.ctx, s.c)
		g, _ := processlock.NewGroup(root, "g")
		g.SetLimit(1)
		gate := make(chan struct{})
		g.Go(func(context.Context) error { <-gate; return nil }) // g-1
		a := s.start("a", "k")
		g.GoLocked("k", ltNop, processlock.MaxWait(1500*time.Millisecond)) // g-2
		htLater(2)
		assert.Equal(t, 1, g.Skipped())
		warned(
			htSlowWait+k+`by.client=g-2 waited=1.5s holder.client=a queue=1 error="not available within MaxWait"`,
			htStillHeld+k+"by.client=a held=1.5s queue=1")
		a.open()
		warned()

		g.GoLocked("k", ltNop) // g-3, has its key and waits for the slot
		htLater(1)
		b := s.start("b", "k")
		warned(htStillHeld + k + "by.client=g-3 held=1s queue=1")
		close(gate)
		synctest.Wait()
		assert.NoError(t, g.Wait())
		b.open()
		warned()
	})
}
