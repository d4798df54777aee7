package processlock_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Every way in which a call can end, and what it adds to the counters. Where a
// row waits, it waits a minute. "busy" is held exclusively by somebody else and
// "read" shared; what they count is not in the rows.
//
// Rule 41.
func TestStatsOfEveryWayACallCanEnd(t *testing.T) {
	type scene struct {
		t       *testing.T
		c       *processlock.Coordinator
		ctx     context.Context
		letBusy func() // ends the hold of busy
	}
	lock := func(s scene, ctx context.Context, key any, opts ...processlock.Option) error {
		return s.c.WithLock(ctx, key, ctNop, opts...)
	}
	inAMinute := func(f func()) { time.AfterFunc(time.Minute, f) }
	nested := func(s scene, key any, f func(ctx context.Context) error) {
		require.NoError(s.t, s.c.WithLock(s.ctx, key, f))
	}
	const wait = time.Minute
	for _, row := range []struct {
		name string
		do   func(s scene) error
		want error // of do; nil for none
		diff processlock.Stats
	}{
		{"granted", func(s scene) error { return lock(s, s.ctx, "free") }, nil,
			processlock.Stats{Acquired: 1}},
		{"granted, tried", func(s scene) error { return lock(s, s.ctx, "free", processlock.IfAvailable) }, nil,
			processlock.Stats{Acquired: 1}},
		{"granted beside shared ones", func(s scene) error { return lock(s, s.ctx, "read", processlock.Shared) }, nil,
			processlock.Stats{Acquired: 1}},
		{"granted after a wait", func(s scene) error {
			inAMinute(s.letBusy)
			return lock(s, s.ctx, "busy")
		}, nil, processlock.Stats{Acquired: 1, Waited: 1, WaitDuration: wait}},
		{"granted after a wait, nested", func(s scene) (err error) {
			inAMinute(s.letBusy)
			nested(s, "free", func(ctx context.Context) error { err = lock(s, ctx, "busy"); return nil })
			return err
		}, nil, processlock.Stats{Acquired: 2, Waited: 1, WaitDuration: wait}},
		{"Reentrant", func(s scene) (err error) {
			nested(s, "free", func(ctx context.Context) error {
				err = lock(s, ctx, "free", processlock.Reentrant)
				return nil
			})
			return err
		}, nil, processlock.Stats{Acquired: 2}},
		{"panic", func(s scene) error {
			defer func() { _ = recover() }()
			return s.c.WithLock(s.ctx, "free", func(context.Context) error { panic("boom") })
		}, nil, processlock.Stats{Acquired: 1}},
		{"Goexit", func(s scene) error {
			over := make(chan struct{})
			go func() {
				defer close(over)
				_ = s.c.WithLock(s.ctx, "free", func(context.Context) error { runtime.Goexit(); return nil })
			}()
			<-over
			return nil
		}, nil, processlock.Stats{Acquired: 1}},
		{"All", func(s scene) error { return lock(s, s.ctx, processlock.All(1, 2, 3)) }, nil,
			processlock.Stats{Acquired: 3}},
		{"All of none", func(s scene) error { return lock(s, s.ctx, processlock.All()) }, nil,
			processlock.Stats{}},
		{"lost", func(s scene) error {
			ctx, client := s.c.WithClient(s.ctx, "w")
			return s.c.WithLock(ctx, "free", func(context.Context) error { client.Close(); return nil })
		}, processlock.ErrLost, processlock.Stats{Acquired: 1, Lost: 1}},

		{"done before", func(s scene) error {
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			return lock(s, ctx, "busy")
		}, context.Canceled, processlock.Stats{}},
		{"bad key", func(s scene) error { return lock(s, s.ctx, math.NaN()) }, processlock.ErrKey,
			processlock.Stats{}},
		{"client closed before", func(s scene) error {
			ctx, client := s.c.WithClient(s.ctx, "w")
			client.Close()
			return lock(s, context.WithoutCancel(ctx), "busy")
		}, processlock.ErrClosed, processlock.Stats{}},

		{"canceled while it waits", func(s scene) error {
			ctx, cancel := context.WithCancel(s.ctx)
			inAMinute(cancel)
			return lock(s, ctx, "busy")
		}, context.Canceled, processlock.Stats{Waited: 1, Canceled: 1, WaitDuration: wait}},
		{"deadline while it waits", func(s scene) error {
			ctx, cancel := context.WithTimeout(s.ctx, wait)
			defer cancel()
			return lock(s, ctx, "busy")
		}, context.DeadlineExceeded, processlock.Stats{Waited: 1, Canceled: 1, WaitDuration: wait}},
		{"deadline while it waits, nested", func(s scene) (err error) {
			nested(s, "free", func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, wait)
				defer cancel()
				err = lock(s, ctx, "busy")
				return nil
			})
			return err
		}, context.DeadlineExceeded, processlock.Stats{Acquired: 1, Waited: 1, Canceled: 1, WaitDuration: wait}},
		{"canceled with its grant", func(s scene) error {
			ctx, cancel := context.WithCancel(s.ctx)
			inAMinute(func() { cancel(); s.letBusy() })
			return lock(s, ctx, "busy")
		}, context.Canceled, processlock.Stats{Waited: 1, Canceled: 1, WaitDuration: wait}},

		{"IfAvailable", func(s scene) error { return lock(s, s.ctx, "busy", processlock.IfAvailable) },
			processlock.ErrUnavailable, processlock.Stats{Unavailable: 1}},
		{"IfAvailable, own lineage", func(s scene) (err error) {
			nested(s, "free", func(ctx context.Context) error {
				err = lock(s, ctx, "free", processlock.IfAvailable)
				return nil
			})
			return err
		}, processlock.ErrUnavailable, processlock.Stats{Acquired: 1, Unavailable: 1}},
		{"MaxWait", func(s scene) error { return lock(s, s.ctx, "busy", processlock.MaxWait(wait)) },
			processlock.ErrWaitTimeout, processlock.Stats{Waited: 1, Unavailable: 1, WaitDuration: wait}},
		{"queue full", func(s scene) error {
			first := ctStart(s.t, s.c, s.ctx, "read")
			synctest.Wait()
			defer first.letGo()
			return lock(s, s.ctx, "read")
		}, processlock.ErrQueueFull, processlock.Stats{Acquired: 1, Waited: 1, Unavailable: 1}},
		{"All, the second is busy", func(s scene) error {
			return lock(s, s.ctx, processlock.All("a", "busy", "third"), processlock.IfAvailable)
		}, processlock.ErrUnavailable, processlock.Stats{Acquired: 1, Unavailable: 1}},

		{"own lineage", func(s scene) (err error) {
			nested(s, "free", func(ctx context.Context) error { err = lock(s, ctx, "free"); return nil })
			return err
		}, processlock.ErrDeadlock, processlock.Stats{Acquired: 1, Deadlocks: 1}},
		{"exclusive on top of one's own shared", func(s scene) error {
			return s.c.WithLock(s.ctx, "free", func(ctx context.Context) error {
				err := lock(s, ctx, "free", processlock.Reentrant)
				require.ErrorIs(s.t, err, processlock.ErrDeadlock)
				return nil
			}, processlock.Shared)
		}, nil, processlock.Stats{Acquired: 1, Deadlocks: 1}},
		{"cycle", func(s scene) error {
			x, y := ctHold(s.t, s.c, s.ctx, "x"), ctHold(s.t, s.c, s.ctx, "y")
			w := ctStart(s.t, s.c, x.fnCtx, "y")
			time.Sleep(wait)
			err := lock(s, y.fnCtx, "x")
			require.NoError(s.t, y.finish())
			require.NoError(s.t, errors.Join(w.finish(), x.finish()))
			return err
		}, processlock.ErrDeadlock, processlock.Stats{Acquired: 3, Waited: 1, Deadlocks: 1, WaitDuration: wait}},

		{"client closed while it waits", func(s scene) error {
			ctx, client := s.c.WithClient(s.ctx, "w")
			inAMinute(client.Close)
			return lock(s, ctx, "busy")
		}, processlock.ErrClosed, processlock.Stats{Waited: 1, Closed: 1, WaitDuration: wait}},
		{"client closed while it waits, WithoutCancel", func(s scene) error {
			ctx, client := s.c.WithClient(s.ctx, "w")
			inAMinute(client.Close)
			return lock(s, context.WithoutCancel(ctx), "busy")
		}, processlock.ErrClosed, processlock.Stats{Waited: 1, Closed: 1, WaitDuration: wait}},
		{"shut down while it waits", func(s scene) error {
			inAMinute(func() { ctShut(s.c, s.t.Context()) })
			return lock(s, s.ctx, "busy")
		}, processlock.ErrClosed, processlock.Stats{Waited: 1, Closed: 1, WaitDuration: wait}},
		{"shut down before", func(s scene) error {
			ctShut(s.c, s.t.Context())
			synctest.Wait()
			return lock(s, s.ctx, "busy")
		}, processlock.ErrClosed, processlock.Stats{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := processlock.New(processlock.Options{MaxWaiters: 1})
				busy := ctHold(t, c, t.Context(), "busy")
				read := ctHold(t, c, t.Context(), "read", processlock.Shared)
				require.Equal(t, processlock.Stats{Held: 2, Acquired: 2}, c.Stats())
				err := row.do(scene{t, c, t.Context(), busy.letGo})
				if row.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, row.want)
				}
				require.NoError(t, busy.finish())
				require.NoError(t, read.finish())
				synctest.Wait()
				want := row.diff
				want.Acquired += 2
				require.Equal(t, want, c.Stats())
				ctRequireIdle(t, c)
			})
		})
	}
}

// Held counts rows of holders, and Waiting requests in queues, while they are
// there.
//
// Rule 41.
func TestStatsOfWhatIsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		var calls []*ctCall
		step := func(held, waiting int64) {
			t.Helper()
			synctest.Wait()
			s := c.Stats()
			require.Equal(t, []int64{held, waiting}, []int64{s.Held, s.Waiting})
		}
		add := func(key any, opts ...processlock.Option) {
			calls = append(calls, ctStart(t, &c, t.Context(), key, opts...))
		}
		step(0, 0)
		add("r", processlock.Shared)
		step(1, 0)
		add("r", processlock.Shared)
		step(2, 0)
		add("r")
		step(2, 1)
		add("r", processlock.Shared)
		step(2, 2)
		add(processlock.All(1, 2, 3))
		step(5, 2)
		add(processlock.All(0, 3))
		step(6, 3)
		for i, want := range [][2]int64{{5, 3}, {5, 2}, {5, 1}, {4, 1}, {2, 0}, {0, 0}} {
			require.NoError(t, calls[i].finish())
			step(want[0], want[1])
		}
	})
}
