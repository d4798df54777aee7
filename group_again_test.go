package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// gtOutlived is a group that was made in an fn that held k and is over, while a
// task of it had the group's only slot, and others, of key, had taken k's hold
// over and waited for the slot.
type gtOutlived struct {
	g     *processlock.Group
	slot  *gtTask
	tasks []*gtTask
}

func (s *gtScene) outlived(ctx context.Context, key any, opts ...[]processlock.Option) *gtOutlived {
	o := &gtOutlived{slot: gtNew(s, ltNop)}
	require.NoError(s, s.c.WithLock(ctx, "k", func(ctx context.Context) error {
		o.g, _ = processlock.NewGroup(ctx, "in")
		o.g.SetLimit(1)
		o.g.Go(o.slot.fn)
		for _, with := range opts {
			x := gtNew(s, ltNop)
			o.g.GoLocked(key, x.fn, append(with, processlock.Reentrant)...)
			o.tasks = append(o.tasks, x)
		}
		synctest.Wait()
		return nil
	}))
	return o
}

var gtPlain []processlock.Option

// A task that has taken a hold over, which is gone when the slot comes, does not
// run beside the key's new holder. It queues for the key, behind all that have
// come, without the slot, and then is a holder like any other.
//
// Rules 1, 3 and 22.
func TestGroupReentrantTaskAsksAgainWhenTheHoldIsGone(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		o := s.outlived(s.root, "k", gtPlain, gtPlain)
		x, y := o.tasks[0], o.tasks[1]
		holder, behind := s.call("k"), s.call("k")
		o.slot.open()
		s.states([]string{"waits", "waits"}, x, y)
		assert.Equal(s, [2][]string{{"*"}, {"", "in-2", "in-3"}}, gtLocks(s.c)[`["k"]`])
		free := gtNew(s, ltNop)
		o.g.Go(free.fn)
		synctest.Wait()
		s.states([]string{"runs"}, free)

		holder.open()
		assert.Equal(s, "runs", behind.state())
		behind.open()
		s.states([]string{"waits", "waits"}, x, y)
		assert.Equal(s, [2][]string{{"in-2"}, {"in-3"}}, gtLocks(s.c)[`["k"]`], "it has the key, and no slot")
		free.open()
		s.states([]string{"runs", "waits"}, x, y)
		last := s.call("k")
		x.open()
		s.states([]string{"over", "runs"}, x, y)
		assert.Equal(s, "waits", last.state())
		y.open()
		assert.NoError(s, o.g.Wait(), "nothing was lost")
		last.open()
		// Each of the two has had the key twice: in the hold, and of its own.
		assert.Equal(s, processlock.Stats{Acquired: 1 + 2 + 2 + 3, Waited: 4}, s.stats())
	})
	gtBubble(t, 0, func(s *gtScene) { // the key is free
		o := s.outlived(s.root, "k", gtPlain)
		o.slot.open()
		s.states([]string{"runs"}, o.tasks...)
		assert.Equal(s, [2][]string{{"in-2*"}, nil}, gtLocks(s.c)[`["k"]`])
		o.tasks[0].open()
		assert.NoError(s, o.g.Wait())
	})
}

// With All it gives back its other keys too, whatever it was waiting for when the
// hold ended: a slot, or another of the keys.
//
// Rules 22 and 23.
func TestGroupReentrantTaskWithAllGivesItsKeysBack(t *testing.T) {
	all := processlock.All("j", "k", "l")
	gtBubble(t, 0, func(s *gtScene) {
		o := s.outlived(s.root, all, gtPlain)
		x := o.tasks[0]
		j, k := s.call("j"), s.call("k")
		assert.Equal(s, [2][]string{{"in-2"}, {""}}, gtLocks(s.c)[`["j"]`])
		o.slot.open()
		s.states([]string{"waits"}, x)
		assert.Equal(s, map[string][2][]string{`["j"]`: {{"*"}, {"in-2"}}, `["k"]`: {{"*"}, nil}}, gtLocks(s.c))
		j.open()
		assert.Equal(s, map[string][2][]string{`["j"]`: {{"in-2"}, nil}, `["k"]`: {{"*"}, {"in-2"}}}, gtLocks(s.c))
		k.open()
		s.states([]string{"runs"}, x)
		assert.Len(s, gtLocks(s.c), 3)
		x.open()
		assert.NoError(s, o.g.Wait())
	})
	gtBubble(t, 0, func(s *gtScene) {
		l := s.call("l")
		var g *processlock.Group
		x := gtNew(s, ltNop)
		require.NoError(s, s.c.WithLock(s.root, "k", func(ctx context.Context) error {
			g, _ = processlock.NewGroup(ctx, "in")
			g.GoLocked(all, x.fn, processlock.Reentrant)
			return nil
		}))
		k := s.call("k")
		l.open()
		s.states([]string{"waits"}, x)
		assert.Equal(s, map[string][2][]string{`["j"]`: {{"in-1"}, nil}, `["k"]`: {{"*"}, {"in-1"}}}, gtLocks(s.c))
		k.open()
		s.states([]string{"runs"}, x)
		x.open()
		assert.NoError(s, g.Wait())
	})
}

// The options count anew, but MaxWait has what is left of it: no wait for a slot
// has used it.
//
// Rules 19 and 20.
func TestGroupReentrantTaskAsksAgainWithItsOptions(t *testing.T) {
	for _, free := range []bool{true, false} {
		gtBubble(t, 0, func(s *gtScene) {
			o := s.outlived(s.root, "k", []processlock.Option{processlock.IfAvailable})
			k := s.call("k")
			if free {
				k.open()
			}
			o.slot.open()
			if free {
				s.states([]string{"runs"}, o.tasks...)
			}
			o.tasks[0].let()
			assert.NoError(s, o.g.Wait())
			assert.Equal(s, !free, o.g.Skipped() == 1)
			if !free {
				k.open()
			}
		})
	}
	gtBubble(t, 0, func(s *gtScene) { // it has not waited for a key yet
		o := s.outlived(s.root, "k", []processlock.Option{processlock.MaxWait(time.Second)})
		k := s.call("k")
		time.Sleep(time.Hour)
		o.slot.open()
		time.Sleep(time.Second - 1)
		assert.EqualValues(s, 1, s.c.Stats().Waiting)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(s, 1, o.g.Skipped())
		k.open()
	})
	// It has waited for l before the slot. Where the grant and the end of MaxWait
	// meet, it may have been skipped then.
	for _, waited := range append([]time.Duration{600 * time.Millisecond}, slices.Repeat([]time.Duration{time.Second}, 50)...) {
		gtBubble(t, 0, func(s *gtScene) {
			go s.c.WithLock(s.root, "l", func(context.Context) error { time.Sleep(waited); return nil })
			synctest.Wait()
			o := s.outlived(s.root, processlock.All("k", "l"), []processlock.Option{processlock.MaxWait(time.Second)})
			k := s.call("k")
			time.Sleep(time.Hour)
			o.slot.open()
			if left := time.Second - waited; left > 0 {
				time.Sleep(left - 1)
				assert.EqualValues(s, 1, s.c.Stats().Waiting)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
			}
			assert.Equal(s, 1, o.g.Skipped())
			k.open()
		})
	}
}

// What else a new request may come to: another hold of the lineage, a deadlock,
// the end of its group, and a coordinator that was shut down.
//
// Rules 22, 29 and 31.
func TestGroupReentrantTaskThatAsksAgainIsANewRequest(t *testing.T) {
	t.Run("taken over again", func(t *testing.T) {
		gtBubble(t, 0, func(s *gtScene) {
			shared := processlock.Shared
			slot, x := gtNew(s, ltNop), gtNew(s, ltNop)
			require.NoError(s, s.c.WithLock(s.root, "k", func(ctx context.Context) error {
				var g *processlock.Group
				require.NoError(s, s.c.WithLock(ctx, "k", func(ctx context.Context) error {
					g, _ = processlock.NewGroup(ctx, "in")
					g.SetLimit(1)
					g.Go(slot.fn)
					g.GoLocked("k", x.fn, shared, processlock.Reentrant)
					synctest.Wait()
					return nil
				}, shared))
				writer := s.call("k")
				slot.open()
				s.states([]string{"runs"}, x)
				assert.Equal(s, [2][]string{{"*"}, {""}}, gtLocks(s.c)[`["k"]`])
				x.open()
				close(writer.gate)
				return g.Wait()
			}, shared))
		})
	})
	t.Run("deadlock", func(t *testing.T) {
		gtBubble(t, 0, func(s *gtScene) {
			require.NoError(s, s.c.WithLock(s.root, "h", func(ctx context.Context) error {
				o := s.outlived(ctx, "k", gtPlain)
				k := ltGoLast(s.root, s.c, "k", func(ctx context.Context) error { return s.c.WithLock(ctx, "h", ltNop) })
				k.open()
				assert.EqualValues(s, 1, s.c.Stats().Waiting)
				o.slot.open()
				assert.Equal(s, []string{`["k"] of ""`, `["h"] of ""`}, gtCycle(s, o.g.Wait()))
				return nil
			}))
		})
	})
	t.Run("canceled", func(t *testing.T) {
		gtBubble(t, 0, func(s *gtScene) {
			o := s.outlived(s.root, "k", gtPlain)
			k := s.call("k")
			o.slot.open()
			assert.EqualValues(s, 1, s.c.Stats().Waiting)
			s.cancel(errGtCause)
			synctest.Wait()
			assert.Zero(s, s.c.Stats().Waiting)
			assert.ErrorIs(s, o.g.Wait(), errGtCause)
			k.open()
		})
	})
	t.Run("shut down", func(t *testing.T) {
		gtBubble(t, 0, func(s *gtScene) {
			o := s.outlived(s.root, "k", gtPlain)
			require.NoError(s, s.c.Shutdown(s.Context()))
			o.slot.open()
			ctRequireClosed(s, o.g.Wait())
			s.states([]string{"waits"}, o.tasks...)
		})
	})
	t.Run("shut down before it was added", func(t *testing.T) { // it belonged to the fn that ran
		gtBubble(t, 0, func(s *gtScene) {
			other := s.call("other")
			slot := gtNew(s, ltNop)
			var g *processlock.Group
			h := ltGoLast(s.root, s.c, "k", func(ctx context.Context) error {
				g, _ = processlock.NewGroup(ctx, "in")
				g.SetLimit(1)
				g.Go(slot.fn)
				g.GoLocked(processlock.All("j", "k"), ctNever(s), processlock.Reentrant)
				return nil
			})
			over := make(chan struct{})
			go func() {
				defer close(over)
				assert.NoError(s, s.c.Shutdown(s.Context()))
			}()
			synctest.Wait()
			h.open()
			assert.Equal(s, [2][]string{{"in-2"}, nil}, gtLocks(s.c)[`["j"]`], "it was served")
			slot.open()
			ctRequireClosed(s, g.Wait())
			assert.False(s, ctClosed(over))
			other.open()
			assert.True(s, ctClosed(over))
		})
	})
}

// Those who look are told that a request for a key that is given back has come to
// nothing, and then of the new one. A hook that exits there ends the task, as the
// group's error.
//
// Rule 42.
func TestHooksOfAReentrantTaskThatAsksAgain(t *testing.T) {
	log := &htLog{}
	const gone = `(processlock: lock ["j"]: the hold that Reentrant took over is gone; the task asks again)`
	gtBubbleWith(t, processlock.Options{Hooks: log.hooks()}, 0, func(s *gtScene) {
		o := s.outlived(s.root, processlock.All("j", "k"), gtPlain)
		k := s.call("k")
		o.slot.open()
		time.Sleep(time.Second)
		k.open()
		time.Sleep(time.Second)
		o.tasks[0].open()
		log.told(s, "in-2", "Failed j "+gone, "Waiting k", "Acquired j", "Acquired k waited=1s",
			"Released k waited=1s held=1s", "Released j held=2s")
	})
	// Where Client.Close has taken all of it away it does not ask again, though its
	// context goes on.
	log = &htLog{}
	gtBubbleWith(t, processlock.Options{Hooks: log.hooks()}, 0, func(s *gtScene) {
		ctx, client := s.c.WithClient(s.root, "c")
		slot, x := gtNew(s, ltNop), gtNew(s, ltNop)
		var g *processlock.Group
		err := s.c.WithLock(ctx, "k", func(ctx context.Context) error {
			g, _ = processlock.NewGroup(context.WithoutCancel(ctx), "in")
			g.SetLimit(1)
			g.Go(slot.fn)
			g.GoLocked(processlock.All("j", "k"), x.fn, processlock.Reentrant)
			synctest.Wait()
			client.Close()
			return nil
		})
		assert.ErrorIs(s, err, processlock.ErrLost)
		slot.open()
		assert.EqualError(s, g.Wait(), `processlock: lock ["j"]: client or coordinator closed`)
		log.told(s, "in-2", `Failed j (processlock: lock ["j"]: client or coordinator closed)`)
	})
	exit := processlock.Hooks{Failed: func(processlock.Event) { runtime.Goexit() }}
	gtBubbleWith(t, processlock.Options{Hooks: exit}, 0, func(s *gtScene) {
		o := s.outlived(s.root, processlock.All("j", "k"), gtPlain)
		o.slot.open()
		err := o.g.Wait()
		assert.EqualError(s, err, `processlock: lock ["j"]: a hook or a context's method panicked or exited`, "it has none")
		s.states([]string{"waits"}, o.tasks...)
	})
}

// What comes while a task asks again, here while hooks are told, is not missed: the
// grant, and the end of its group, after which it asks for nothing.
//
// Rules 8 and 42.
func TestGroupReentrantTaskThatAsksAgainMissesNothing(t *testing.T) {
	for _, ends := range []bool{false, true} {
		var s *gtScene
		var k *ltCall
		hooks := processlock.Hooks{
			Waiting: func(e processlock.Event) {
				if e.Client == "in-2" {
					close(k.gate)
					for k.state() != "over" {
						runtime.Gosched()
					}
				}
			},
			Failed: func(processlock.Event) {
				if ends {
					s.cancel(errGtCause)
				}
			},
		}
		gtBubbleWith(t, processlock.Options{Hooks: hooks}, 0, func(scene *gtScene) {
			s = scene
			o := s.outlived(s.root, processlock.All("j", "k"), gtPlain)
			k = s.call("k")
			other := s.call("other")
			o.g.GoLocked("other", ctNever(s))
			before := s.stats()
			o.slot.open()
			if ends {
				assert.ErrorIs(s, o.g.Wait(), errGtCause)
				assert.Equal(s, before.Acquired, s.c.Stats().Acquired)
				k.open()
			} else {
				s.states([]string{"runs"}, o.tasks...)
				assert.Equal(s, [2][]string{{"in-2*"}, nil}, gtLocks(s.c)[`["k"]`])
				o.tasks[0].open()
				s.cancel(errGtCause)
				assert.ErrorContains(s, o.g.Wait(), "tasks dropped before they started: 1")
			}
			other.open()
		})
	}
}

// Tasks of k and others exclude each other once the fn that held k has returned,
// whatever was handed on meanwhile.
//
// Rules 1, 38 and 41.
func TestGroupAsksAgainStorm(t *testing.T) {
	for round := range 200 {
		var c processlock.Coordinator
		root := processlock.WithCoordinator(t.Context(), &c)
		limit := 1 + round%3
		var inside [3]int // by key; no atomic: the key guards it
		enter := func(keys ...int) func(context.Context) error {
			return func(context.Context) error {
				for _, k := range keys {
					if inside[k]++; inside[k] != 1 {
						return errors.New("two inside")
					}
				}
				ctYield(round % 4)
				for _, k := range keys {
					inside[k]--
				}
				return nil
			}
		}
		gate := make(chan struct{})
		var g *processlock.Group
		require.NoError(t, c.WithLock(root, 1, func(ctx context.Context) error {
			g, _ = processlock.NewGroup(ctx, "g")
			g.SetLimit(limit)
			for range limit {
				g.Go(func(context.Context) error { <-gate; return nil })
			}
			for range 4 {
				g.GoLocked(1, enter(1), processlock.Reentrant)
				g.GoLocked(processlock.All(0, 1), enter(0, 1), processlock.Reentrant)
				g.GoLocked(processlock.All(1, 2), enter(1, 2), processlock.Reentrant, processlock.MaxWait(time.Hour))
			}
			return nil
		}))
		var others [3]chan error
		for i := range others {
			others[i] = make(chan error, 1)
			go func() {
				var err error
				for range 10 {
					err = errors.Join(err, c.WithLock(root, i, enter(i)))
				}
				others[i] <- err
			}()
		}
		ctYield(round % 20)
		close(gate)
		require.NoError(t, g.Wait(), fmt.Sprint("round ", round))
		for _, over := range others {
			require.NoError(t, <-over)
		}
		ctRequireIdle(t, &c)
	}
}
