package processlock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
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
