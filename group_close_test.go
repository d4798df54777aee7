package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// gtStage is where a task is when something is closed around it.
type gtStage struct {
	name string
	key  any
	// slot, busy: somebody else has the slot, the key
	slot, busy bool
	acquired   int64 // of the task's requests, by then
	waited     int64
}

var gtStages = []gtStage{
	{"waits for its key", "k", false, true, 0, 1},
	{"waits for its key and there is no slot", "k", true, true, 0, 1},
	{"waits for the first of its keys", processlock.All("k", "l"), false, true, 0, 1},
	{"waits for the last of its keys", processlock.All("j", "k"), false, true, 1, 1},
	{"waits for a slot", "k", true, false, 1, 0},
	{"waits for a slot, with several keys", processlock.All("j", "k"), true, false, 2, 0},
	{"runs", "k", false, false, 1, 0},
	{"runs with several keys", processlock.All("j", "k"), false, false, 2, 0},
}

// Closing the client of NewGroup's context at each stage of a task: one that has
// not started ends as a call of the client would, with ErrClosed in an
// AcquireError, which is the group's error; one that runs sees its context end,
// if that is the client's, and keeps its key, since it has a client of its own.
//
// Rules 24, 25 and 41.
func TestGroupWhenTheClientAroundIsClosed(t *testing.T) {
	for _, st := range gtStages {
		for _, cancelable := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cancelable=%t", st.name, cancelable), func(t *testing.T) {
				gtBubble(t, 0, func(s *gtScene) {
					ctx, client := processlock.WithClient(s.root, "outer")
					if !cancelable {
						ctx = context.WithoutCancel(ctx)
					}
					g, gctx := processlock.NewGroup(ctx, "in")
					g.SetLimit(1)
					var busy *ltCall
					if st.busy {
						busy = s.call("k")
					}
					slot := gtNew(s, ltNop)
					if st.slot {
						g.Go(slot.fn)
					} else {
						slot.let()
					}
					x := gtNew(s, ltNop)
					g.GoLocked(st.key, x.fn)
					synctest.Wait()
					runs := !st.slot && !st.busy
					assert.Equal(s, runs, x.state() == "runs")
					behind := s.call("k")

					client.Close()
					synctest.Wait()
					if !runs {
						assert.Equal(s, !st.busy, behind.state() == "runs", "what it held is handed on")
						assert.True(s, ltFree(s.c, "j"))
					} else {
						assert.Equal(s, "runs", x.state())
						assert.Equal(s, "waits", behind.state())
						assert.Equal(s, cancelable, x.ctx.Err() != nil)
					}
					if cancelable {
						assert.Equal(s, processlock.ErrClosed, context.Cause(gctx))
					}
					slot.open()
					x.let()
					err := g.Wait()
					if runs {
						assert.NoError(s, err)
					} else {
						assert.False(s, x.entered.Load())
						ctRequireClosed(s, err)
						assert.Equal(s, cancelable, errors.Is(err, context.Canceled))
						var ae *processlock.AcquireError
						require.ErrorAs(s, err, &ae)
						if st.acquired < 2 {
							assert.Equal(s, processlock.MustKey("k"), ae.Key)
						}
					}
					synctest.Wait()
					if busy != nil {
						busy.open()
					}
					behind.open()
					want := processlock.Stats{Acquired: 1 + st.acquired, Waited: 1 + st.waited, Closed: st.waited}
					if st.busy {
						want.Acquired++
					}
					if !runs {
						want.Acquired++ // the look at j
					}
					assert.Equal(s, want, s.stats())
				})
			})
		}
	}
}

// A client that is closed already refuses the task's request.
//
// Rules 8 and 25.
func TestGroupOfAClosedClient(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		ctx, client := processlock.WithClient(s.root, "outer")
		client.Close()
		g, _ := processlock.NewGroup(context.WithoutCancel(ctx), "in")
		x := gtNew(s, ltNop)
		x.let()
		g.Go(x.fn)
		synctest.Wait()
		s.states([]string{"over"}, x)
		g.GoLocked("k", ctNever(s))
		err := g.Wait()
		ctRequireClosed(s, err)
		assert.NotErrorIs(s, err, context.Canceled)

		g, _ = processlock.NewGroup(ctx, "done")
		g.GoLocked("k", ctNever(s))
		err = g.Wait()
		assert.ErrorIs(s, err, processlock.ErrClosed)
		assert.ErrorIs(s, err, context.Canceled)
		assert.Equal(s, processlock.Stats{}, s.stats())
	})
}

// Where the context has ended before for a reason of its own, that alone counts.
//
// Rule 25.
func TestGroupOfAContextThatEndedBeforeItsClientWasClosed(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		busy := s.call("k")
		ctx, client := processlock.WithClient(s.root, "outer")
		g, _ := processlock.NewGroup(ctx, "in")
		g.GoLocked("k", ctNever(s))
		s.cancel(errGtCause)
		client.Close()
		err := g.Wait()
		assert.ErrorIs(s, err, errGtCause)
		assert.NotErrorIs(s, err, processlock.ErrClosed)
		busy.open()
		st := s.stats()
		assert.EqualValues(s, 1, st.Canceled+st.Closed)
	})
}

// Shutdown at each stage of a task: its waits end with ErrClosed, and what it
// holds otherwise is a hold that Shutdown waits for, also without a slot.
//
// Rules 29 and 41.
func TestGroupWhenTheCoordinatorIsShutDown(t *testing.T) {
	for _, st := range gtStages {
		t.Run(st.name, func(t *testing.T) {
			gtBubble(t, 1, func(s *gtScene) {
				var busy *ltCall
				if st.busy {
					busy = s.call("k")
				}
				slot := gtNew(s, ltNop)
				if st.slot {
					s.g.Go(slot.fn)
				} else {
					slot.let()
				}
				x := s.lock(st.key)
				over := make(chan struct{})
				var err error
				go func() {
					defer close(over)
					err = s.c.Shutdown(s.Context())
				}()
				synctest.Wait()
				assert.False(s, ctClosed(over))
				if busy != nil {
					assert.Equal(s, [2][]string{{"*"}, nil}, gtLocks(s.c)[`["k"]`])
					assert.Len(s, gtLocks(s.c), 1, "it gave up what it had")
					busy.open()
					assert.True(s, ctClosed(over))
				}
				slot.open()
				if !st.busy {
					s.states([]string{"runs"}, x)
					assert.False(s, ctClosed(over))
				}
				x.open()
				<-over
				assert.NoError(s, err)
				werr := s.g.Wait()
				want := processlock.Stats{Acquired: st.acquired, Waited: st.waited, Closed: st.waited}
				if st.busy {
					ctRequireClosed(s, werr)
					assert.NotErrorIs(s, werr, context.Canceled)
					want.Acquired++
				} else {
					assert.NoError(s, werr)
				}
				assert.Equal(s, want, s.stats())
			})
		})
	}
	gtBubble(t, 0, func(s *gtScene) { // afterwards
		require.NoError(s, s.c.Shutdown(s.Context()))
		x := s.free()
		x.open()
		assert.Equal(s, "over", x.state(), "it needs no key")
		s.g.GoLocked("k", ctNever(s))
		ctRequireClosed(s, s.g.Wait())
		assert.Equal(s, processlock.Stats{}, s.stats())
	})
}

// Tasks of a group made inside an fn that holds a key belong to that fn: Shutdown
// serves those that wait and those that come.
//
// Rule 29.
func TestGroupInsideFnIsExemptFromShutdown(t *testing.T) {
	for _, key := range []any{"k", processlock.All("j", "k")} {
		gtBubble(t, 0, func(s *gtScene) {
			busy := s.call("k")
			x, y, z := gtNew(s, ltNop), gtNew(s, ltNop), gtNew(s, ltNop)
			var werr error
			h := ltGoLast(s.root, s.c, "h", func(ctx context.Context) error {
				g, _ := processlock.NewGroup(ctx, "in")
				g.SetLimit(1)
				g.GoLocked(key, x.fn)
				time.Sleep(time.Second)
				g.GoLocked(key, y.fn)
				g.GoLocked("free", z.fn)
				werr = g.Wait()
				return nil
			})
			close(h.gate)
			synctest.Wait()
			over := make(chan struct{})
			go func() {
				defer close(over)
				assert.NoError(s, s.c.Shutdown(s.Context()))
			}()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			s.states([]string{"waits", "waits", "runs"}, x, y, z)
			z.open()
			busy.open()
			s.states([]string{"runs", "waits"}, x, y)
			x.open()
			s.states([]string{"runs"}, y)
			assert.False(s, ctClosed(over))
			y.open()
			assert.NoError(s, werr)
			assert.True(s, ctClosed(over))
			assert.Zero(s, s.c.Stats().Closed)
		})
	}
}

// What is served is served to the end: a request for several keys that belonged to
// a running fn is not refused its second key when that fn has returned meanwhile.
//
// Rules 23 and 29.
func TestGroupStaysExemptFromShutdown(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		j, k := s.call("j"), s.call("k")
		x := gtNew(s, ltNop)
		var g *processlock.Group
		h := ltGoLast(s.root, s.c, "h", func(ctx context.Context) error {
			g, _ = processlock.NewGroup(ctx, "in")
			time.Sleep(time.Second)
			g.GoLocked(processlock.All("j", "k"), x.fn)
			time.Sleep(time.Second)
			return nil
		})
		close(h.gate)
		synctest.Wait()
		over := make(chan struct{})
		go func() {
			defer close(over)
			assert.NoError(s, s.c.Shutdown(s.Context()))
		}()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Equal(s, "over", h.state())
		j.open()
		assert.Equal(s, [2][]string{{"*"}, {"in-1"}}, gtLocks(s.c)[`["k"]`])
		k.open()
		s.states([]string{"runs"}, x)
		x.open()
		assert.NoError(s, g.Wait())
		assert.True(s, ctClosed(over))
	})
}

// Shutdown with the context of a task that holds a key would wait for itself.
//
// Rule 29.
func TestGroupTaskShutsDownUnderItsOwnKey(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		x := s.lockLast("k", func(ctx context.Context) error {
			assert.ErrorIs(s, s.c.Shutdown(ctx), processlock.ErrDeadlock)
			return nil
		})
		x.open()
		s.states([]string{"over"}, x)
		assert.NoError(s, s.c.Shutdown(s.Context()))
	})
}

// Closing the client, shutting the coordinator down and failing, against tasks on
// their way: nobody hangs, nothing is left, each request is counted once.
//
// Rules 25, 29, 38 and 41.
func TestGroupCloseStorm(t *testing.T) {
	for round := range 300 {
		var c processlock.Coordinator
		root := processlock.WithCoordinator(t.Context(), &c)
		ctx, client := processlock.WithClient(root, "outer")
		if round%2 == 0 {
			ctx = context.WithoutCancel(ctx)
		}
		g, _ := processlock.NewGroup(ctx, "g")
		g.SetLimit(round % 3)
		over := make(chan struct{})
		go func() {
			defer close(over)
			ctYield(round % 30)
			if round%5 == 0 {
				_ = c.Shutdown(root)
			}
			client.Close()
		}()
		var requests int64
		for i := range 60 {
			switch i % 4 {
			case 0:
				g.GoLocked(processlock.All(i%3, i%3+1), ltNop)
				requests += 2
			case 1:
				g.GoLocked(i%3, func(ctx context.Context) error {
					return processlock.WithLock(ctx, 7, ltNop)
				})
				requests += 2
			default:
				g.GoLocked(i%3, ltNop)
				requests++
			}
		}
		w := gtWaits(g)
		ctWithin(t, w.over, "Wait")
		ctWithin(t, over, "Close")
		if w.err != nil {
			require.ErrorIs(t, w.err, processlock.ErrClosed)
		}
		st := c.Stats()
		require.LessOrEqual(t, st.Acquired+st.Canceled+st.Closed+st.Lost, requests)
		require.Zero(t, st.Deadlocks+st.Unavailable)
		ctRequireIdle(t, &c)
	}
}
