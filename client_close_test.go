package processlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// ctScene is a request of a client that is closed at some moment of the
// request's life, and somebody who queues behind it.
type ctScene struct {
	c      *processlock.Coordinator
	client *processlock.Client
	ctx    *ctSlowCtx // the request's
	opts   []processlock.Option

	busy, victim, next *ctCall
}

func (s *ctScene) hold(t *testing.T) { s.busy = ctHold(t, s.c, t.Context(), "k") }
func (s *ctScene) start(t *testing.T) {
	s.victim = ctStart(t, s.c, s.ctx, "k", s.opts...)
	synctest.Wait()
}
func (s *ctScene) follow(t *testing.T) { s.next = ctStart(t, s.c, t.Context(), "k"); synctest.Wait() }

// Wherever a request stands when its client closes, it ends in exactly one way:
// refused or ended before its fn ran, lost while it runs, or as if nothing had
// happened. Whoever is behind it goes on at once.
//
// Rules 25, 27 and 41.
func TestCloseMeetsARequestAtAnyMoment(t *testing.T) {
	const (
		refused = iota
		lost
		untouched
	)
	for _, moment := range []struct {
		name string
		do   func(t *testing.T, s *ctScene)
		want int
		// beside: another shared holder stays, and keeps next out
		beside bool
		stats  processlock.Stats // once all is over
	}{
		{
			name:  "before it arrives",
			do:    func(t *testing.T, s *ctScene) { s.client.Close(); s.start(t) },
			want:  refused,
			stats: processlock.Stats{},
		},
		{
			name: "before it arrives at a busy key",
			do: func(t *testing.T, s *ctScene) {
				s.hold(t)
				s.client.Close()
				s.start(t)
			},
			want:  refused,
			stats: processlock.Stats{Acquired: 1},
		},
		{
			name: "while it waits",
			do: func(t *testing.T, s *ctScene) {
				s.hold(t)
				s.start(t)
				s.follow(t)
				s.client.Close()
				synctest.Wait()
				require.True(t, s.victim.ended(), "it left the queue")
				require.False(t, s.next.ran(), "the key is held by somebody else")
				require.NoError(t, s.busy.finish())
			},
			want:  refused,
			stats: processlock.Stats{Acquired: 2, Waited: 2, Closed: 1},
		},
		{
			name: "granted, not resumed",
			do: func(t *testing.T, s *ctScene) {
				s.hold(t)
				s.start(t)
				s.follow(t)
				s.ctx.armed.Store(true)
				require.NoError(t, s.busy.finish())
				<-s.ctx.asked
				s.client.Close()
				synctest.Wait()
				require.True(t, s.next.running(), "passed on before the loser has noticed")
				close(s.ctx.gate)
			},
			want:  refused,
			stats: processlock.Stats{Acquired: 2, Waited: 2, Closed: 1},
		},
		{
			name: "while fn runs on a key that was free",
			do: func(t *testing.T, s *ctScene) {
				s.start(t)
				s.follow(t)
				s.client.Close()
			},
			want:  lost,
			stats: processlock.Stats{Acquired: 2, Waited: 1, Lost: 1},
		},
		{
			name: "while fn runs after a wait",
			do: func(t *testing.T, s *ctScene) {
				s.hold(t)
				s.start(t)
				s.follow(t)
				require.NoError(t, s.busy.finish())
				synctest.Wait()
				s.client.Close()
			},
			want:  lost,
			stats: processlock.Stats{Acquired: 3, Waited: 2, Lost: 1},
		},
		{
			name: "while fn runs beside another shared holder",
			do: func(t *testing.T, s *ctScene) {
				s.busy = ctHold(t, s.c, t.Context(), "k", processlock.Shared)
				s.opts = []processlock.Option{processlock.Shared}
				s.start(t)
				s.follow(t)
				s.client.Close()
			},
			want:   lost,
			beside: true,
			stats:  processlock.Stats{Acquired: 3, Waited: 1, Lost: 1},
		},
		{
			name: "while fn runs, another shared holder came later",
			do: func(t *testing.T, s *ctScene) {
				s.opts = []processlock.Option{processlock.Shared}
				s.start(t)
				s.busy = ctHold(t, s.c, t.Context(), "k", processlock.Shared)
				s.follow(t)
				s.client.Close()
			},
			want:   lost,
			beside: true,
			stats:  processlock.Stats{Acquired: 3, Waited: 1, Lost: 1},
		},
		{
			name: "when it has returned",
			do: func(t *testing.T, s *ctScene) {
				s.start(t)
				s.follow(t)
				require.NoError(t, s.victim.finish())
				s.client.Close()
			},
			want:  untouched,
			stats: processlock.Stats{Acquired: 2, Waited: 1},
		},
	} {
		for _, cancelable := range []bool{true, false} {
			for _, track := range []bool{false, true} {
				name := moment.name
				if !cancelable {
					name += ", WithoutCancel"
				}
				if track {
					name += ", TrackHolds"
				}
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &ctScene{c: processlock.New(processlock.Options{TrackHolds: track})}
						ctx, client := s.c.WithClient(t.Context(), "victim")
						if !cancelable {
							ctx = context.WithoutCancel(ctx)
						}
						s.client, s.ctx = client, ctSlowly(ctx)
						moment.do(t, s)
						synctest.Wait()

						if s.next != nil && moment.beside {
							require.False(t, s.next.ran())
							require.NoError(t, s.busy.finish())
							synctest.Wait()
						}
						if s.next != nil {
							require.True(t, s.next.running(), "whoever is behind goes on")
						}
						if moment.want == lost {
							require.True(t, s.victim.running(), "fn is not disturbed but by its context")
							require.Equal(t, cancelable, s.victim.fnCtx.Err() != nil)
							if cancelable {
								require.Equal(t, processlock.ErrClosed, context.Cause(s.victim.fnCtx))
							}
						}
						err := s.victim.finish()
						switch moment.want {
						case refused:
							require.False(t, s.victim.ran())
							ctRequireClosed(t, err)
							require.Equal(t, cancelable, errors.Is(err, context.Canceled))
							var ae *processlock.AcquireError
							require.ErrorAs(t, err, &ae)
							require.Equal(t, processlock.MustKey("k"), ae.Key)
						case lost:
							require.Equal(t, processlock.ErrLost, err)
						case untouched:
							require.NoError(t, err)
						}
						if s.next != nil {
							require.True(t, s.next.running(), "a late release releases nobody else's hold")
							require.NoError(t, s.next.finish())
						}
						if s.busy != nil {
							require.NoError(t, s.busy.finish())
						}
						got := s.c.Stats()
						got.WaitDuration = 0
						require.Equal(t, moment.stats, got)
						ctRequireIdle(t, s.c)
					})
				})
			}
		}
	}
}

// Rules 5 and 25.
func TestCloseLeavesTheOrderOfTheOthersAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		dead, client := c.WithClient(t.Context(), "dead")
		busy := ctHold(t, &c, t.Context(), "k")
		var order []int
		var all sync.WaitGroup
		for i := range 12 {
			ctx := t.Context()
			if i%3 != 1 {
				ctx = dead
			}
			all.Go(func() {
				err := c.WithLock(ctx, "k", func(context.Context) error {
					order = append(order, i)
					return nil
				})
				assert.Equal(t, i%3 != 1, errors.Is(err, processlock.ErrClosed))
			})
			synctest.Wait()
		}
		client.Close()
		require.NoError(t, busy.finish())
		all.Wait()
		require.Equal(t, []int{1, 4, 7, 10}, order)
		ctRequireIdle(t, &c)
	})
}

// An exclusive waiter that dies lets in the shared ones behind it at once.
//
// Rules 4, 5 and 25.
func TestCloseOfAnExclusiveWaiterLetsTheSharedOnesIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		dead, client := c.WithClient(t.Context(), "dead")
		reader := ctHold(t, &c, t.Context(), "k", processlock.Shared)
		writer := ctStart(t, &c, dead, "k")
		synctest.Wait()
		second := ctStart(t, &c, t.Context(), "k", processlock.Shared)
		third := ctStart(t, &c, t.Context(), "k", processlock.Shared)
		synctest.Wait()
		require.False(t, second.ran() || third.ran())

		client.Close()
		synctest.Wait()
		require.True(t, second.running() && third.running())
		ctRequireClosed(t, writer.finish())
		for _, r := range []*ctCall{reader, second, third} {
			require.NoError(t, r.finish())
		}
		ctRequireIdle(t, &c)
	})
}

// What the client gives up is never granted to a wait of its own, which would
// only be taken away again.
//
// Rule 25.
func TestCloseGrantsNothingToItsOwnWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		dead, client := c.WithClient(t.Context(), "dead")
		dead = context.WithoutCancel(dead)
		var holds, waits []*ctCall
		for k := range 100 {
			holds = append(holds, ctHold(t, &c, dead, k))
			waits = append(waits, ctStart(t, &c, dead, k))
		}
		synctest.Wait()
		client.Close()
		for _, w := range waits {
			ctRequireClosed(t, w.finish())
			require.False(t, w.ran())
		}
		for _, h := range holds {
			require.Equal(t, processlock.ErrLost, h.finish())
		}
		s := c.Stats()
		require.EqualValues(t, 100, s.Closed)
		require.EqualValues(t, 100, s.Lost)
		require.EqualValues(t, 100, s.Acquired)
		ctRequireIdle(t, &c)
	})
}

// By the time the context's end can be noticed, the client's calls are refused;
// by the time a key has been handed on, the context has ended.
//
// Rule 25.
func TestCloseRefusesThenEndsTheContextThenHandsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		ctx, client := c.WithClient(t.Context(), "w")
		hold := ctHold(t, &c, ctx, "k")
		var afterEnd error
		stop := context.AfterFunc(ctx, func() {
			afterEnd = c.WithLock(context.WithoutCancel(ctx), "free", ctNever(t))
		})
		defer stop()
		var endedBefore bool
		next := make(chan error)
		go func() {
			next <- c.WithLock(t.Context(), "k", func(context.Context) error {
				endedBefore = ctx.Err() != nil
				return nil
			})
		}()
		synctest.Wait()

		client.Close()
		require.NoError(t, <-next)
		synctest.Wait()
		ctRequireClosed(t, afterEnd)
		require.True(t, endedBefore)
		require.Equal(t, processlock.ErrLost, hold.finish())
	})
}

// While Close can't get at the table yet, the context has ended already.
//
// Rule 25.
func TestCloseEndsTheContextBeforeAnythingIsHandedOn(t *testing.T) {
	var c processlock.Coordinator
	ctx, client := c.WithClient(t.Context(), "w")
	hold := ctHold(t, &c, ctx, "k")
	release := processlock.CTHoldShards(&c)
	over := make(chan struct{})
	go func() {
		defer close(over)
		client.Close()
	}()
	ctWithin(t, hold.fnCtx.Done(), "the context's end")
	require.False(t, ctClosed(over), "there is something to hand on")
	release()
	ctWithin(t, over, "Close")
	require.Equal(t, processlock.ErrLost, hold.finish())
	ctRequireIdle(t, &c)
}
