package processlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// ctFloor counts who runs under a key: one exclusive fn or any number of shared
// ones. An fn whose client has been declared dead is off the floor from just
// before Close on, though it may still run.
type ctFloor struct {
	exclusive, shared atomic.Int32
	bad               atomic.Int32
}

func (f *ctFloor) step(mode processlock.Mode, by int32) {
	if mode == processlock.ModeShared {
		f.shared.Add(by)
	} else {
		f.exclusive.Add(by)
	}
	if x, s := f.exclusive.Load(), f.shared.Load(); by > 0 && (x > 1 || x == 1 && s > 0) {
		f.bad.Add(1)
	}
}

// ctWorker is a client together with the floors that its fns are on.
type ctWorker struct {
	client *processlock.Client
	ctx    context.Context

	mu   sync.Mutex
	dead bool
	on   map[*ctVisit]bool
}

type ctVisit struct {
	floor *ctFloor
	mode  processlock.Mode
}

func ctNewWorker(c *processlock.Coordinator, ctx context.Context) *ctWorker {
	w := &ctWorker{on: make(map[*ctVisit]bool)}
	w.ctx, w.client = c.WithClient(ctx, "w")
	return w
}

// enter counts an fn. One that starts once its worker counts as dead is not
// counted: whether it still holds anything is Close's race to decide.
func (w *ctWorker) enter(f *ctFloor, mode processlock.Mode) *ctVisit {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return nil
	}
	v := &ctVisit{f, mode}
	w.on[v] = true
	f.step(mode, 1)
	return v
}

func (w *ctWorker) leave(v *ctVisit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v != nil && w.on[v] {
		delete(w.on, v)
		v.floor.step(v.mode, -1)
	}
}

// kill closes the worker's client, with everything of it off the floors before.
func (w *ctWorker) kill() {
	w.mu.Lock()
	w.dead = true
	for v := range w.on {
		v.floor.step(v.mode, -1)
	}
	clear(w.on)
	w.mu.Unlock()
	w.client.Close()
}

// ctVisitUnder runs fn's part of a storm: a short stay on key's floor.
func ctVisitUnder(w *ctWorker, f *ctFloor, mode processlock.Mode, spin int) error {
	v := w.enter(f, mode)
	ctYield(spin)
	w.leave(v)
	return nil
}

// ctYield lets others run n times.
func ctYield(n int) {
	for range n {
		runtime.Gosched()
	}
}

// Clients die all the time while they arrive, wait, are granted, run and
// release, on few keys; nobody ever meets a live holder of another mode or
// client, every call ends in one of the ways that it may, and nothing is left.
//
// Rules 1, 25, 27, 34 and 38.
func TestStormOfClosesAgainstArrivalsGrantsAndReleases(t *testing.T) {
	for _, row := range []struct {
		name    string
		options processlock.Options
		shared  int // of 10 requests
	}{
		{"exclusive", processlock.Options{}, 0},
		{"mixed, TrackHolds, MaxWaiters", processlock.Options{TrackHolds: true, MaxWaiters: 4}, 6},
	} {
		t.Run(row.name, func(t *testing.T) { ctCloseStorm(t, row.options, row.shared) })
	}
}

func ctCloseStorm(t *testing.T, options processlock.Options, shared int) {
	c := processlock.New(options)
	var floors [3]ctFloor
	var ran, lost, bad atomic.Int64
	var all sync.WaitGroup
	until := time.Now().Add(300 * time.Millisecond)
	for g := range 6 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 7))
			for time.Now().Before(until) {
				w := ctNewWorker(c, t.Context())
				var calls sync.WaitGroup
				for range 1 + rnd.IntN(3) {
					key, mode, spin := rnd.IntN(len(floors)), processlock.ModeExclusive, rnd.IntN(6)
					var opts []processlock.Option
					if rnd.IntN(10) < shared {
						mode, opts = processlock.ModeShared, append(opts, processlock.Shared)
					}
					if rnd.IntN(8) == 0 {
						opts = append(opts, processlock.MaxWait(time.Duration(rnd.IntN(100))*time.Microsecond))
					}
					ctx := w.ctx
					if rnd.IntN(3) == 0 {
						ctx = context.WithoutCancel(ctx)
					}
					calls.Go(func() {
						entered := false
						err := c.WithLock(ctx, key, func(context.Context) error {
							entered = true
							ran.Add(1)
							return ctVisitUnder(w, &floors[key], mode, spin)
						}, opts...)
						if errors.Is(err, processlock.ErrLost) {
							lost.Add(1)
						}
						if !ctFits(err, entered) {
							bad.Add(1)
							t.Errorf("entered: %v, but: %v", entered, err)
						}
					})
				}
				ctYield(rnd.IntN(20))
				w.kill()
				calls.Wait()
			}
		})
	}
	all.Wait()
	for i := range floors {
		require.Zero(t, floors[i].bad.Load(), "two ran at once under one live hold")
		require.Zero(t, floors[i].exclusive.Load())
		require.Zero(t, floors[i].shared.Load())
	}
	s := c.Stats()
	require.Equal(t, ran.Load(), s.Acquired)
	require.Equal(t, lost.Load(), s.Lost)
	t.Logf("%d ran, %d of them lost, %d closed, %d canceled", ran.Load(), lost.Load(), s.Closed, s.Canceled)
	ctRequireIdle(t, c)
}

// ctFits reports whether err is what a call may return whose fn returns nil.
func ctFits(err error, entered bool) bool {
	var ae *processlock.AcquireError
	if entered {
		return err == nil || err == processlock.ErrLost
	}
	return errors.As(err, &ae) && !errors.Is(err, processlock.ErrLost) &&
		(errors.Is(err, processlock.ErrClosed) || errors.Is(err, processlock.ErrUnavailable))
}

// The holder releases and its waiter's client closes in the same instant: the
// waiter runs or is refused, never both and never neither, and whoever is
// behind it always runs.
//
// Rules 10, 15 and 25.
func TestCloseAgainstGrantOfOneWaiter(t *testing.T) {
	var c processlock.Coordinator
	var refused, lost, done int
	for i := range 1500 {
		ctx, client := c.WithClient(t.Context(), "w")
		if i%2 == 0 {
			ctx = context.WithoutCancel(ctx)
		}
		busy := ctHold(t, &c, t.Context(), "k")
		var entered bool
		var err error
		var all sync.WaitGroup
		all.Go(func() {
			err = c.WithLock(ctx, "k", func(context.Context) error {
				entered = true
				ctYield(i % 3)
				return nil
			})
		})
		ctAwaitWaiters(t, &c, 1)
		all.Go(func() { assert.NoError(t, c.WithLock(t.Context(), "k", ctNop)) })
		ctAwaitWaiters(t, &c, 2)
		all.Go(func() {
			ctYield(i % 5)
			client.Close()
		})
		all.Go(func() { assert.NoError(t, busy.finish()) })
		all.Wait()
		require.True(t, ctFits(err, entered), "entered: %v, but: %v", entered, err)
		switch {
		case !entered:
			refused++
		case err != nil:
			lost++
		default:
			done++
		}
	}
	t.Logf("%d refused, %d lost, %d done", refused, lost, done)
	ctRequireIdle(t, &c)
}

// Close and a first call on a free key in the same instant.
//
// Rules 25 and 27.
func TestCloseAgainstArrivalAtAFreeKey(t *testing.T) {
	var c processlock.Coordinator
	var refused, lost, done int
	for i := range 3000 {
		ctx, client := c.WithClient(t.Context(), "w")
		if i%2 == 0 {
			ctx = context.WithoutCancel(ctx)
		}
		var key any = "k"
		if i%3 == 0 {
			key = processlock.All("k", "l", "m")
		}
		before := c.Stats().Lost
		start := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { <-start; client.Close() })
		close(start)
		ctYield(i % 2)
		entered := false
		err := c.WithLock(ctx, key, func(context.Context) error {
			entered = true
			ctYield(i % 4)
			return nil
		})
		all.Wait()
		require.True(t, ctFits(err, entered), "entered: %v, but: %v", entered, err)
		require.Equal(t, err == processlock.ErrLost, c.Stats().Lost > before, "only what a running fn held is lost")
		switch {
		case !entered:
			refused++
		case err != nil:
			lost++
		default:
			done++
		}
	}
	t.Logf("%d refused, %d lost, %d done", refused, lost, done)
	ctRequireIdle(t, &c)
}

// Close comes while All, which has its last key, starts to run. Either its fn
// runs or it doesn't, whatever of its keys Close finds in which order; and what
// never ran is not lost.
//
// Rules 23, 25 and 41.
func TestCloseAgainstTheStartOfAll(t *testing.T) {
	var c processlock.Coordinator
	keys := make([]any, 400)
	for i := range keys {
		keys[i] = i
	}
	all := processlock.All(keys...)
	var refused, lost, done, wrong, untold int
	for i := range 200 {
		ctx, client := c.WithClient(t.Context(), "w")
		last := &ctCountdownCtx{Context: context.WithoutCancel(ctx)}
		last.left.Store(int32(len(keys)))
		before := c.Stats().Lost
		var closed sync.WaitGroup
		closed.Go(func() {
			for last.left.Load() > int32(i%40) {
			}
			client.Close()
		})
		entered := false
		err := c.WithLock(last, all, func(context.Context) error { entered = true; return nil })
		closed.Wait()
		require.True(t, ctFits(err, entered), "entered: %v, but: %v", entered, err)
		switch {
		case !entered:
			refused++
			if c.Stats().Lost > before {
				wrong++
			}
		case err != nil:
			lost++
			if c.Stats().Lost == before {
				untold++
			}
		default:
			done++
		}
	}
	t.Logf("%d refused, %d lost, %d done", refused, lost, done)
	require.Zero(t, wrong, "calls whose fn never ran and whose holds count as lost")
	require.Zero(t, untold, "calls whose fn ran though Close had taken a key back before")
	ctRequireIdle(t, &c)
}

// ctCountdownCtx counts down how often it is asked for its Err.
type ctCountdownCtx struct {
	context.Context
	left atomic.Int32
}

func (c *ctCountdownCtx) Err() error {
	c.left.Add(-1)
	return c.Context.Err()
}
