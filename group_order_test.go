package processlock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Tasks of one key run one after the other, in the order of the GoLocked calls,
// whatever the limit.
//
// Rules 1 and 3.
func TestGroupRunsAKeysTasksInTheOrderOfTheCalls(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 8} {
		t.Run(fmt.Sprint("limit=", limit), func(t *testing.T) {
			gtBubble(t, limit, func(s *gtScene) {
				const n, keys = 200, 3
				var order [keys][]int
				inside := [keys]ltInside{}
				for i := range n {
					key := i % keys
					s.g.GoLocked(key, func(context.Context) error {
						defer inside[key].enter(false)()
						order[key] = append(order[key], i)
						runtime.Gosched()
						return nil
					})
				}
				require.NoError(s, s.g.Wait())
				for key := range keys {
					assert.False(s, inside[key].broken.Load())
					for j, i := range order[key] {
						assert.Equal(s, key+j*keys, i)
					}
				}
				assert.EqualValues(s, n, s.stats().Acquired)
			})
		})
	}
}

// Tasks and calls of WithLock stand in one queue.
//
// Rule 3.
func TestGroupIsFairWithWithLock(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		busy := s.call("k")
		first := s.lock("k")
		call := s.call("k")
		second := s.lock("k")
		last := s.call("k")
		assert.Equal(s, map[string][2][]string{`["k"]`: {{"*"}, {"g-1", "", "g-2", ""}}}, gtLocks(s.c))

		busy.open()
		s.states([]string{"runs", "waits"}, first, second)
		assert.Equal(s, "waits", call.state())
		first.open()
		assert.Equal(s, "runs", call.state())
		assert.Equal(s, "waits", second.state())
		call.open()
		s.states([]string{"over", "runs"}, first, second)
		assert.Equal(s, "waits", last.state())
		second.open()
		assert.Equal(s, "runs", last.state())
		last.open()
		require.NoError(s, s.g.Wait())
		assert.Equal(s, processlock.Stats{Acquired: 5, Waited: 4}, s.stats())
	})
}

// Shared tasks run together with each other and with calls, and none passes an
// exclusive one.
//
// Rule 4.
func TestGroupRunsSharedTasksTogether(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		r1 := s.lock("k", processlock.Shared)
		r2 := s.lock("k", processlock.Shared)
		call := s.call("k", processlock.Shared)
		s.states([]string{"runs", "runs"}, r1, r2)
		assert.Equal(s, "runs", call.state())
		w := s.lock("k")
		r3 := s.lock("k", processlock.Shared)
		r4 := s.lock("k", processlock.Shared)
		s.states([]string{"waits", "waits", "waits"}, w, r3, r4)
		r1.open()
		call.open()
		s.states([]string{"waits"}, w)
		r2.open()
		s.states([]string{"runs", "waits", "waits"}, w, r3, r4)
		w.open()
		s.states([]string{"over", "runs", "runs"}, w, r3, r4)
		r3.open()
		r4.open()
		require.NoError(s, s.g.Wait())
		assert.Equal(s, processlock.Stats{Acquired: 6, Waited: 3}, s.stats())
	})
}

// A shared task takes a slot each.
func TestGroupLimitsSharedTasks(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		r1, r2 := s.lock("k", processlock.Shared), s.lock("k", processlock.Shared)
		busy.open()
		s.states([]string{"runs", "waits"}, r1, r2)
		assert.Equal(s, map[string][2][]string{`["k"]`: {{"g-1*", "g-2"}, nil}}, gtLocks(s.c), "both hold it")
		r1.open()
		s.states([]string{"over", "runs"}, r1, r2)
		r2.open()
	})
}

// A task that waits for its key has neither a slot nor a goroutine, and one that
// waits for a slot has its key and no goroutine.
//
// Rules 35 and 39.
func TestGroupTasksThatWaitHaveNoGoroutine(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("busy")
		for range 100 {
			s.g.GoLocked("busy", ltNop)
		}
		for range 100 {
			s.g.GoLocked(processlock.All("also", "busy"), ltNop)
		}
		synctest.Wait()
		assert.Zero(s, gtGoroutines())

		running := s.lock("other")
		s.states([]string{"runs"}, running)
		for i := range 100 {
			s.g.GoLocked(i, ltNop)
			s.g.Go(ltNop)
		}
		synctest.Wait()
		assert.Equal(s, 1, gtGoroutines(), "the running task's")
		assert.EqualValues(s, 1+1+1+100, s.stats().Held, "the keys of those that wait for a slot too")
		busy.open()
		running.open()
		require.NoError(s, s.g.Wait())
		synctest.Wait()
		assert.Zero(s, gtGoroutines())
	})
}

// A key with ten thousand tasks does not delay another key's single task by more
// than the tasks that run.
func TestGroupIsFairAcrossKeys(t *testing.T) {
	for _, limit := range []int{1, 3} {
		t.Run(fmt.Sprint("limit=", limit), func(t *testing.T) {
			gtBubble(t, limit, func(s *gtScene) {
				var hot atomic.Int64
				for range 10_000 {
					s.g.GoLocked("hot", func(context.Context) error {
						hot.Add(1)
						time.Sleep(time.Millisecond)
						return nil
					})
				}
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				before := hot.Load()
				var after int64
				s.g.GoLocked("single", func(context.Context) error {
					after = hot.Load()
					return nil
				})
				require.NoError(s, s.g.Wait())
				assert.LessOrEqual(s, after-before, int64(1), "one more of hot can have been ahead")
				assert.EqualValues(s, 10_000, hot.Load())
			})
		})
	}
}

// Slots go to tasks in the order in which their keys were granted, whatever the
// order of the calls, and whether the key was free, handed over, of several or
// none.
func TestGroupSlotsGoToTheFirstGrantedFirst(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		a, b, d := s.call("a"), s.call("b"), s.call("d")
		running := s.free()
		var order []string
		note := func(name string) func(context.Context) error {
			return func(context.Context) error {
				order = append(order, name)
				return nil
			}
		}
		s.g.GoLocked("a", note("a"))
		s.g.GoLocked("b", note("b"))
		s.g.GoLocked(processlock.All("c", "d"), note("cd"))
		s.g.GoLocked("e", note("e"))
		b.open()
		s.g.Go(note("none"))
		d.open()
		s.g.GoLocked("f", note("f"))
		a.open()
		running.open()
		require.NoError(s, s.g.Wait())
		assert.Equal(s, []string{"e", "b", "none", "cd", "f", "a"}, order)
	})
}

// That holds for grants that are made before anybody else comes to run, and for
// tasks in the wait-for graph.
func TestGroupSlotsGoToTheFirstGrantedFirstAtOnce(t *testing.T) {
	for _, nested := range []bool{false, true} {
		for _, several := range []bool{false, true} {
			t.Run(fmt.Sprintf("nested=%t several=%t", nested, several), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
				var c processlock.Coordinator
				ctx := processlock.WithCoordinator(t.Context(), &c)
				do := func(ctx context.Context) error {
					g, _ := processlock.NewGroup(ctx, "g")
					g.SetLimit(1)
					gate := make(chan struct{})
					g.Go(func(context.Context) error { <-gate; return nil })
					var order []int
					note := func(i int) func(context.Context) error {
						return func(context.Context) error { order = append(order, i); return nil }
					}
					err := processlock.WithLock(processlock.Detach(ctx), "a", func(context.Context) error {
						if several {
							g.GoLocked(processlock.All("0", "a"), note(1))
						} else {
							g.GoLocked("a", note(1))
						}
						return nil
					})
					g.GoLocked("b", note(2))
					g.Go(note(3))
					close(gate)
					assert.NoError(t, g.Wait())
					assert.Equal(t, []int{1, 2, 3}, order)
					return err
				}
				if nested {
					require.NoError(t, c.WithLock(ctx, "outer", do))
				} else {
					require.NoError(t, do(ctx))
				}
				ctRequireIdle(t, &c)
			})
		}
	}
}

// Go at the limit stands behind who waits for a slot already.
func TestGroupGoQueuesForASlot(t *testing.T) {
	gtBubble(t, 2, func(s *gtScene) {
		a, b := s.free(), s.free()
		x, y, z := s.free(), s.lock("k"), s.free()
		s.states([]string{"runs", "runs", "waits", "waits", "waits"}, a, b, x, y, z)
		b.open()
		s.states([]string{"runs", "over", "runs", "waits", "waits"}, a, b, x, y, z)
		x.open()
		s.states([]string{"runs", "waits"}, y, z)
		a.open()
		s.states([]string{"runs", "runs"}, y, z)
		y.open()
		z.open()
		assert.Equal(s, processlock.Stats{Acquired: 1}, s.stats(), "a task without a key asks for nothing")
	})
}
