package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// ltTally is what the callers of a storm saw, in the terms of Stats.
type ltTally struct {
	acquired, canceled, unavailable, deadlocks, closed atomic.Int64
	unknown                                            atomic.Value
}

// add counts a call for keys, in the order in which they are taken.
func (n *ltTally) add(keys []processlock.Key, ran bool, err error) {
	var refusal *processlock.AcquireError
	if ran || !errors.As(err, &refusal) {
		n.acquired.Add(int64(len(keys)))
		return
	}
	n.acquired.Add(int64(slices.Index(keys, refusal.Key)))
	switch {
	case errors.Is(err, processlock.ErrClosed):
		n.closed.Add(1)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		n.canceled.Add(1)
	case errors.Is(err, processlock.ErrUnavailable):
		n.unavailable.Add(1)
	case errors.Is(err, processlock.ErrDeadlock):
		n.deadlocks.Add(1)
	default:
		n.unknown.Store(err)
	}
}

// ltStorm is callers at random on a few keys.
type ltStorm struct {
	t      *testing.T
	c      *processlock.Coordinator
	inside [4]ltInside // one a key
	tally  ltTally
	tick   time.Duration // deadlines are a few of it
	pause  func(r *rand.Rand)
	// exact: a context only ends during a wait, so that every request reaches
	// the table. It takes a bubble's clock, which stands still while a goroutine
	// runs.
	exact bool
}

// call makes one call at random, and others inside its fn.
func (s *ltStorm) call(ctx context.Context, r *rand.Rand, depth int) {
	var opts []processlock.Option
	shared := r.IntN(4) == 0
	if shared {
		opts = append(opts, processlock.Shared)
	}
	key, picked := s.pick(r)
	after := time.Duration(1+r.IntN(5)) * s.tick
	cancel := func() {}
	switch r.IntN(6) {
	case 0:
		opts = append(opts, processlock.MaxWait(after))
	case 1:
		opts = append(opts, processlock.IfAvailable)
	case 2, 3:
		if len(picked) == 1 || !s.exact { // All looks at its context between the keys, too
			ctx, cancel = context.WithTimeout(ctx, after)
		}
	case 4:
		if len(picked) == 1 && !s.exact {
			s.closable(ctx, key, after)
			return
		}
	}
	defer cancel()
	request, err := processlock.Resolve(key, opts...)
	if err != nil {
		s.tally.unknown.Store(err)
		return
	}
	ran := false
	err = s.c.WithLock(ctx, key, func(ctx context.Context) error {
		if ran {
			s.tally.unknown.Store(errors.New("fn ran twice"))
		}
		ran = true
		func() {
			for _, k := range picked {
				defer s.inside[k].enter(shared)()
			}
			s.pause(r)
		}()
		if depth < 2 && r.IntN(3) == 0 {
			s.call(context.WithoutCancel(ctx), r, depth+1)
		}
		return nil
	}, opts...)
	if ran == (err != nil) {
		s.tally.unknown.Store(fmt.Errorf("fn ran: %t, error: %w", ran, err))
	}
	s.tally.add(request.Keys, ran, err)
}

// pick returns a key or several, as WithLock takes them and as indexes.
func (s *ltStorm) pick(r *rand.Rand) (key any, picked []int) {
	if r.IntN(4) > 0 {
		k := r.IntN(len(s.inside))
		return k, []int{k}
	}
	picked = r.Perm(len(s.inside))[:2+r.IntN(2)]
	keys := make([]any, len(picked))
	for i, k := range picked {
		keys[i] = k
	}
	return processlock.All(keys...), picked
}

// closable makes a call whose client is closed meanwhile. Its fn stays out of
// the critical section, since a hold that is taken away excludes nobody.
func (s *ltStorm) closable(ctx context.Context, key any, after time.Duration) {
	request, _ := processlock.Resolve(key)
	ctx, cl := s.c.WithClient(ctx, "dies")
	timer := time.AfterFunc(after, cl.Close)
	defer timer.Stop()
	defer cl.Close()
	ran := false
	err := s.c.WithLock(ctx, key, func(context.Context) error {
		ran = true
		return nil
	})
	s.tally.add(request.Keys, ran, err)
}

// check compares the end of the storm with an idle coordinator.
func (s *ltStorm) check() {
	s.t.Helper()
	assert.Nil(s.t, s.tally.unknown.Load())
	for k := range s.inside {
		assert.False(s.t, s.inside[k].broken.Load(), "exclusion of key %d", k)
	}
	got := s.c.Stats()
	assert.Equal(s.t, s.tally.acquired.Load(), got.Acquired, "Acquired")
	assert.Equal(s.t, s.tally.unavailable.Load(), got.Unavailable, "Unavailable")
	assert.Equal(s.t, s.tally.deadlocks.Load(), got.Deadlocks, "Deadlocks")
	if s.exact {
		assert.Equal(s.t, s.tally.canceled.Load(), got.Canceled, "Canceled")
		assert.Zero(s.t, got.Closed, "Closed, though nobody closes anything")
		assert.Zero(s.t, s.tally.closed.Load(), "ErrClosed, though nobody closes anything")
	} else { // the others were refused before the table
		assert.LessOrEqual(s.t, got.Canceled, s.tally.canceled.Load(), "Canceled")
		assert.LessOrEqual(s.t, got.Closed, s.tally.closed.Load(), "Closed")
	}
	ltIdle(s.t, s.c)
	for k := range s.inside {
		assert.True(s.t, ltFree(s.c, k), "key %d is held by nobody", k)
	}
}

// ltProcs runs test with several numbers of processors.
func ltProcs(t *testing.T, test func(t *testing.T)) {
	for _, n := range []int{1, 2, 8} {
		t.Run(fmt.Sprint("procs=", n), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			test(t)
		})
	}
}

// The fake clock only moves when everybody waits, so thousands of grants,
// deadlines and MaxWaits fall on the same instant, and every number is known.
//
// Rules 1, 5, 10, 20, 23, 31, 34 and 41.
func TestStormOnOneInstantAddsUp(t *testing.T) {
	ltProcs(t, func(t *testing.T) {
		for seed := range uint64(3) {
			synctest.Test(t, func(t *testing.T) {
				s := &ltStorm{
					t: t, c: processlock.New(processlock.Options{TrackHolds: seed%2 == 1}), tick: 1, exact: true,
					pause: func(r *rand.Rand) {
						if n := r.IntN(4); n > 0 {
							time.Sleep(time.Duration(n))
						}
					},
				}
				var wg sync.WaitGroup
				for g := range 12 {
					wg.Go(func() {
						r := rand.New(rand.NewPCG(seed, uint64(g)))
						for range 80 {
							s.call(context.Background(), r, 0)
						}
					})
				}
				wg.Wait()
				assert.Positive(t, s.tally.canceled.Load(), "the storm tests nothing")
				assert.Positive(t, s.tally.unavailable.Load(), "the storm tests nothing")
				assert.Positive(t, s.tally.deadlocks.Load(), "the storm tests nothing")
				s.check()
			})
		}
	})
}

// The same by the real clock, with clients that die and with others who look on
// and use whatever else is exported.
//
// Rules 1, 10, 16, 25, 34 and 41.
func TestField_B1_B2_StormOfCancelsAndGrants(t *testing.T) {
	ltProcs(t, func(t *testing.T) {
		s := &ltStorm{
			t: t, c: processlock.New(processlock.Options{MaxWaiters: 1000}), tick: 20 * time.Microsecond,
			pause: func(r *rand.Rand) {
				if r.IntN(2) == 0 {
					runtime.Gosched()
				}
			},
		}
		deadline := time.Now().Add(ltStress(t))
		var wg sync.WaitGroup
		for g := range 10 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 1))
				for time.Now().Before(deadline) {
					s.call(context.Background(), r, 0)
				}
			})
		}
		wg.Go(func() {
			for time.Now().Before(deadline) {
				ctx := processlock.WithCoordinator(context.Background(), s.c)
				for _, l := range s.c.Snapshot().Locks {
					_ = l.Key.String() + l.Key.Canonical()
					if len(l.Holders) == 0 {
						s.tally.unknown.Store(errors.New("a row without a holder"))
					}
				}
				_ = s.c.Stats()
				ctx, cl := processlock.WithClient(ctx, "looks on")
				_ = cl.Name()
				_, err := processlock.WithLockValue(ctx, "a key of its own", func(ctx context.Context) (int, error) {
					return 1, processlock.WithLock(processlock.Detach(ctx), "another", ltNop)
				})
				s.tally.add(make([]processlock.Key, 2), true, err)
				cl.Close()
				runtime.Gosched()
			}
		})
		wg.Wait()
		assert.Positive(t, s.tally.canceled.Load(), "the storm tests nothing")
		s.check()
	})
}
