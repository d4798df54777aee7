package processlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// A nested wait that ends without a grant leaves its queue at once, and goes on
// with a slot like any other.
//
// Rules 5, 9, 20 and 25.
func TestGroupSlotIsTakenAgainAfterAWaitInVain(t *testing.T) {
	for _, way := range []struct {
		name string
		opts []processlock.Option
		with func(ctx context.Context) (context.Context, func()) // what the call is made with, and what ends it
		want error
	}{
		{"MaxWait", []processlock.Option{processlock.MaxWait(time.Second)},
			func(ctx context.Context) (context.Context, func()) { return ctx, func() { time.Sleep(time.Second) } },
			processlock.ErrWaitTimeout},
		{"cancel", nil, func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }, context.Canceled},
		{"Client.Close", nil, func(ctx context.Context) (context.Context, func()) {
			ctx, client := processlock.WithClient(ctx, "inner")
			return ctx, client.Close
		}, processlock.ErrClosed},
		{"Client.Close, WithoutCancel", nil, func(ctx context.Context) (context.Context, func()) {
			ctx, client := processlock.WithClient(ctx, "inner")
			return context.WithoutCancel(ctx), client.Close
		}, processlock.ErrClosed},
	} {
		t.Run(way.name, func(t *testing.T) {
			gtBubble(t, 1, func(s *gtScene) {
				busy := s.call("k")
				var stop func()
				var err error
				back := false
				a := s.freeLast(func(ctx context.Context) error {
					ctx, stop = way.with(ctx)
					err = s.c.WithLock(ctx, "k", ctNever(s), way.opts...)
					back = true
					return nil
				})
				b, d := s.free(), s.free()
				a.open()
				behind := s.call("k")
				stop()
				synctest.Wait()
				assert.EqualValues(s, 1, s.c.Stats().Waiting, "it is out of the queue")
				assert.False(s, back, "b has the slot")
				s.states([]string{"runs", "waits"}, b, d)
				b.open()
				assert.True(s, back)
				assert.ErrorIs(s, err, way.want)
				s.states([]string{"over", "runs"}, a, d)
				d.open()
				busy.open()
				behind.open()
			})
		})
	}
}

// A nested call that was granted its key while there is no slot for it does not
// keep the key from others once its context is done.
//
// Rules 9, 10 and 25.
func TestGroupCallWithoutASlotGivesItsKeyUpWhenItsContextEnds(t *testing.T) {
	for _, close := range []bool{false, true} {
		gtBubble(t, 1, func(s *gtScene) {
			busy := s.call("k")
			var stop func()
			var err error
			a := s.freeLast(func(ctx context.Context) error {
				if close {
					var client *processlock.Client
					ctx, client = processlock.WithClient(ctx, "inner")
					stop = client.Close
				} else {
					ctx, stop = context.WithCancel(ctx)
				}
				err = s.c.WithLock(ctx, "k", ctNever(s))
				return nil
			})
			b := s.free()
			a.open()
			behind := s.call("k")
			busy.open()
			assert.Equal(s, "waits", behind.state(), "a has the key")
			stop()
			synctest.Wait()
			assert.Equal(s, "runs", behind.state())
			s.states([]string{"runs", "runs"}, a, b)
			b.open()
			s.states([]string{"over"}, a)
			assert.Equal(s, close, errors.Is(err, processlock.ErrClosed))
			assert.ErrorIs(s, err, context.Canceled)
			behind.open()
			want := processlock.Stats{Acquired: 2, Waited: 2, Canceled: 1}
			if close {
				want = processlock.Stats{Acquired: 2, Waited: 2, Closed: 1}
			}
			assert.Equal(s, want, s.stats())
		})
	}
}

// What such a call holds shows with the time of its grant, and its wait for the
// slot is none for the key.
//
// Rules 39, 40 and 41.
func TestGroupCallWithoutASlotShowsSinceItsGrant(t *testing.T) {
	gtBubble(t, 1, func(s *gtScene) {
		busy := s.call("k")
		a := s.nested("a", "k")
		b := s.free()
		a.open()
		time.Sleep(3 * time.Second)
		granted := time.Now()
		busy.open()
		time.Sleep(5 * time.Second)
		locks := s.c.Snapshot().Locks
		require.Len(s, locks, 2)
		h := locks[1].Holders[0]
		assert.Equal(s, "g-1", h.Client)
		assert.False(s, h.Running)
		assert.True(s, granted.Equal(h.Since), "since %v, granted %v", h.Since, granted)
		b.open()
		h = s.c.Snapshot().Locks[1].Holders[0]
		assert.True(s, h.Running)
		assert.True(s, granted.Equal(h.Since), "since %v, granted %v", h.Since, granted)
		assert.Equal(s, 3*time.Second, s.c.Stats().WaitDuration)
		a.inner.open()
	})
}

// A task that waits for a slot shows as a holder that does not run, since its
// grant.
//
// Rules 39 and 40.
func TestGroupTaskWithoutASlotShowsSinceItsGrant(t *testing.T) {
	for _, track := range []bool{false, true} {
		for _, key := range []any{"k", processlock.All("k", "l")} {
			gtBubbleWith(t, processlock.Options{TrackHolds: track}, 1, func(s *gtScene) {
				busy := s.call("k")
				running := s.free()
				x := s.lock(key)
				_, several := key.(processlock.Keys)
				asked := time.Now()
				row := func() processlock.LockState { return s.c.Snapshot().Locks[0] }
				w := row().Waiters[0]
				assert.Equal(s, "g-2", w.Client)
				assert.True(s, asked.Equal(w.Since))
				assert.Contains(s, w.Func, "gtTask")
				time.Sleep(time.Second)
				granted := time.Now()
				busy.open()
				time.Sleep(time.Second)
				for _, l := range s.c.Snapshot().Locks {
					h := l.Holders[0]
					assert.Equal(s, "g-2", h.Client)
					assert.False(s, h.Running)
					if l.Key == processlock.MustKey("k") {
						assert.True(s, granted.Equal(h.Since), "since %v, granted %v", h.Since, granted)
					} else {
						assert.Equal(s, track, !h.Since.IsZero(), "it was free")
					}
				}
				running.open()
				h := row().Holders[0]
				assert.True(s, h.Running)
				assert.True(s, granted.Equal(h.Since))
				assert.Equal(s, time.Second, s.c.Stats().WaitDuration)
				x.open()
				want := processlock.Stats{Acquired: 2, Waited: 1}
				if several {
					want.Acquired++
				}
				assert.Equal(s, want, s.stats())
			})
		}
	}
}
