package processlock_test

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dbx-tools/processlock"
)

// A hook that exits the goroutine that works on a task leaves neither the task
// nor those that the goroutine was to see to. If fn has not run Wait says so,
// unless GoLocked's own goroutine was the one.
//
// Rules 15, 34 and 42.
func TestHookThatExitsATasksGoroutine(t *testing.T) {
	const unwound = "a hook or a context's method panicked or exited"
	fails := func(context.Context) error { return errGt }
	for _, row := range []struct {
		name, kind string // of the hook, which exits for g-1
		limit      int
		run        func(s *gtScene)
		err        string
	}{
		{"Waiting, in GoLocked", "Waiting", 1, func(s *gtScene) {
			busy := s.call("k")
			go s.g.GoLocked("k", ctNever(s))
			synctest.Wait()
			next := s.lock("k")
			busy.open()
			next.open()
		}, ""},
		{"Waiting, for a further key", "Waiting", 1, func(s *gtScene) {
			j, k := s.call("j"), s.call("k")
			defer k.open()
			// The hook that exits is that of k: it comes with the wait for j.
			s.g.GoLocked(processlock.All("j", "k"), ctNever(s))
			defer s.c.AddHooks(htEnding("Waiting", "g-1", nil, true))()
			j.open()
		}, `processlock: lock ["k"]: ` + unwound},
		{"Acquired", "Acquired", 1, func(s *gtScene) {
			s.g.GoLocked("k", ctNever(s))
			synctest.Wait()
		}, `processlock: lock ["k"]: ` + unwound},
		{"Acquired, All", "Acquired", 1, func(s *gtScene) {
			s.g.GoLocked(processlock.All("j", "k"), ctNever(s))
			synctest.Wait()
		}, `processlock: lock ["k"]: ` + unwound},
		{"Released", "Released", 1, func(s *gtScene) {
			x, next := s.lock("k"), s.lock("k")
			x.open()
			s.states([]string{"over", "runs"}, x, next)
			next.open()
		}, ""},
		{"Released, All", "Released", 1, func(s *gtScene) {
			x, next := s.lock(processlock.All("j", "k")), s.lock("j")
			x.open()
			s.states([]string{"over", "runs"}, x, next)
			next.open()
		}, ""},
		{"Released, of one that failed", "Released", 0, func(s *gtScene) {
			x := s.lockLast("k", fails)
			s.g.GoLocked("k", ctNever(s))
			x.open()
		}, errGt.Error()},
		{"Failed, by the group's end", "Failed", 0, func(s *gtScene) {
			busy := s.call("k")
			for range 3 {
				s.g.GoLocked("k", ctNever(s))
			}
			s.cancel(nil)
			synctest.Wait()
			busy.open()
		}, "processlock: group g: context canceled (tasks dropped before they started: 3)"},
		{"Failed, by MaxWait", "Failed", 0, func(s *gtScene) {
			busy := s.call("k")
			s.g.GoLocked("k", ctNever(s), processlock.MaxWait(time.Second))
			next := s.lock("k")
			time.Sleep(2 * time.Second)
			busy.open()
			next.open()
			assert.Equal(s, 1, s.g.Skipped())
		}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			log := &htLog{}
			gtBubbleWith(t, processlock.Options{}, row.limit, func(s *gtScene) {
				defer s.c.AddHooks(log.hooks())()
				if row.name != "Waiting, for a further key" {
					defer s.c.AddHooks(htEnding(row.kind, "g-1", nil, true))()
				}
				row.run(s)
				err := s.g.Wait()
				if row.err == "" {
					assert.NoError(s, err)
				} else {
					assert.EqualError(s, err, row.err)
				}
				acquired, ended := map[processlock.Key]int{}, map[processlock.Key]int{}
				for _, call := range log.of("g-1") {
					switch call.kind {
					case "Acquired":
						acquired[call.Key]++
					case "Released":
						ended[call.Key]++
					}
				}
				assert.Equal(s, acquired, ended, "Released comes after Acquired, for each key")
			})
		})
	}
}

// gtExitingContext is a context whose Err exits the goroutine that asks it, if that is
// about to start a task, once.
type gtExitingContext struct {
	context.Context
	once sync.Once
}

func (c *gtExitingContext) Err() error {
	stack := make([]byte, 1<<14)
	if bytes.Contains(stack[:runtime.Stack(stack, false)], []byte(".(*task).start(")) {
		c.once.Do(runtime.Goexit)
	}
	return c.Context.Err()
}

// Nor does a context of the group's that does so when a task has its key and its
// slot: both are given back.
//
// Rules 15, 34 and 36.
func TestContextThatExitsATasksGoroutine(t *testing.T) {
	for _, key := range []any{"k", processlock.All("k", "l")} {
		gtBubble(t, 0, func(s *gtScene) {
			g, _ := processlock.NewGroup(&gtExitingContext{Context: s.root}, "in")
			g.SetLimit(1)
			g.GoLocked(key, ctNever(s))
			synctest.Wait()
			assert.Empty(s, gtLocks(s.c))
			g.Go(ctNever(s))
			assert.EqualError(s, g.Wait(), `processlock: lock ["`+map[bool]string{true: "k", false: "l"}[key == "k"]+`"]: a hook or a context's method panicked or exited`)
		})
	}
}
