package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Tasks of All in any order, with calls of WithLock of the same keys in between,
// inside a lineage and outside: never a deadlock, and never an alarm.
//
// Rules 23, 32 and 38.
func TestGroupAllNeverDeadlocks(t *testing.T) {
	for _, limit := range []int{1, 2, 0} {
		for _, nested := range []bool{false, true} {
			t.Run(fmt.Sprintf("limit=%d nested=%t", limit, nested), func(t *testing.T) {
				var c processlock.Coordinator
				root := processlock.WithCoordinator(t.Context(), &c)
				do := func(ctx context.Context) error {
					g, _ := processlock.NewGroup(ctx, "g")
					g.SetLimit(limit)
					var inside [6]ltInside
					var ran atomic.Int64
					for i := range 1500 {
						a, b := i%6, (i*5+i/6)%6
						if a == b {
							b = (b + 1) % 6
						}
						g.GoLocked(processlock.All(a, b), func(context.Context) error {
							defer inside[a].enter(false)()
							defer inside[b].enter(false)()
							ran.Add(1)
							return nil
						})
						if i%5 == 0 {
							if err := c.WithLock(processlock.Detach(ctx), processlock.All(b, a), ltNop); err != nil {
								return err
							}
						}
					}
					err := g.Wait()
					for i := range inside {
						assert.False(t, inside[i].broken.Load())
					}
					assert.EqualValues(t, 1500, ran.Load())
					return err
				}
				if nested {
					require.NoError(t, c.WithLock(root, "outer", do))
				} else {
					require.NoError(t, do(root))
				}
				assert.Zero(t, c.Stats().Deadlocks)
				ctRequireIdle(t, &c)
			})
		}
	}
}

// Storms of tasks whose calls nest in the order of the keys, so that nothing can
// be a deadlock, with one slot and with two: no hang, no alarm, no two under one
// key, and at most the limit at work at any time.
//
// Rules 1, 31, 32 and 38.
func TestGroupNestedStorm(t *testing.T) {
	for limit := 1; limit <= 2; limit++ {
		t.Run(fmt.Sprint("limit=", limit), func(t *testing.T) {
			end := time.Now().Add(ltStress(t))
			for round := 0; round == 0 || time.Now().Before(end); round++ {
				gtNestedRound(t, limit, round)
			}
		})
	}
}

func gtNestedRound(t *testing.T, limit, round int) {
	var c processlock.Coordinator
	root := processlock.WithCoordinator(t.Context(), &c)
	g, _ := processlock.NewGroup(root, "g")
	g.SetLimit(limit)
	const keys = 6
	var inside [keys]ltInside
	var ran atomic.Int64
	// working is entered by code that has a slot for sure: that of tasks with one
	// goroutine, between their calls.
	var working, over atomic.Int64
	work := func() {
		if n := working.Add(1); n > int64(limit) {
			over.Store(n)
		}
		ctYield(round % 3)
		working.Add(-1)
	}
	var dig func(from, depth, seed int, solo bool) func(context.Context) error
	dig = func(from, depth, seed int, solo bool) func(context.Context) error {
		return func(ctx context.Context) error {
			defer inside[from].enter(false)()
			ran.Add(1)
			if solo {
				work()
			}
			if depth == 0 || from+1 >= keys {
				return nil
			}
			next := from + 1 + seed%2
			if next >= keys {
				return nil
			}
			switch seed % 7 {
			case 0: // two goroutines of the task wait at once
				var all sync.WaitGroup
				var errs [2]error
				for i := range errs {
					all.Go(func() { errs[i] = processlock.WithLock(ctx, next, dig(next, depth-1, seed/2+i, false)) })
				}
				all.Wait()
				return errors.Join(errs[0], errs[1])
			case 1: // a wait in vain
				err := processlock.WithLock(ctx, next, dig(next, depth-1, seed/2, solo), processlock.MaxWait(10*time.Microsecond))
				if errors.Is(err, processlock.ErrUnavailable) {
					err = nil
				}
				return err
			case 2:
				ctx, cancel := context.WithTimeout(ctx, 10*time.Microsecond)
				defer cancel()
				err := processlock.WithLock(ctx, next, ltNop)
				if errors.Is(err, context.DeadlineExceeded) {
					err = nil
				}
				return err
			case 3: // a group of its own
				if !solo {
					return nil
				}
				in, _ := processlock.NewGroup(ctx, "in")
				in.SetLimit(1)
				for i := range 3 {
					in.GoLocked(next, dig(next, depth-1, seed/2+i, false))
				}
				return in.Wait()
			case 4: // more for the same group
				g.GoLocked(from, dig(from, depth-1, seed/2, true))
			}
			err := processlock.WithLock(ctx, next, dig(next, depth-1, seed/2, solo))
			if solo {
				work()
			}
			return err
		}
	}
	for i := range 120 {
		from := (i*7 + round) % keys
		g.GoLocked(from, dig(from, 4, i*31+round, true))
	}
	w := gtWaits(g)
	ctWithin(t, w.over, fmt.Sprintf("the end of round %d", round))
	require.NoError(t, w.err)
	for i := range inside {
		require.False(t, inside[i].broken.Load(), "key %d", i)
	}
	require.Zero(t, over.Load(), "tasks at work at once")
	require.GreaterOrEqual(t, ran.Load(), int64(120))
	require.Zero(t, c.Stats().Deadlocks)
	ctRequireIdle(t, &c)
}

// Storms in which deadlocks do occur: whoever is told goes on, so nobody hangs,
// and each request ends in one way.
//
// Rules 31 and 41.
func TestGroupNestedStormWithDeadlocks(t *testing.T) {
	end := time.Now().Add(ltStress(t))
	var deadlocks int64
	for round := 0; round == 0 || time.Now().Before(end); round++ {
		var c processlock.Coordinator
		root := processlock.WithCoordinator(t.Context(), &c)
		g, _ := processlock.NewGroup(root, "g")
		g.SetLimit(1 + round%3)
		var granted, told atomic.Int64
		var dig func(depth, seed int) func(context.Context) error
		dig = func(depth, seed int) func(context.Context) error {
			return func(ctx context.Context) error {
				granted.Add(1)
				if depth > 0 {
					err := processlock.WithLock(ctx, seed%5, dig(depth-1, seed*13/7))
					if errors.Is(err, processlock.ErrDeadlock) {
						told.Add(1)
					} else if err != nil {
						return err
					}
				}
				return nil
			}
		}
		for i := range 100 {
			g.GoLocked((i+round)%5, dig(3, i*17+round))
		}
		w := gtWaits(g)
		ctWithin(t, w.over, fmt.Sprintf("the end of round %d", round))
		require.NoError(t, w.err)
		st := c.Stats()
		require.Equal(t, granted.Load(), st.Acquired)
		require.Equal(t, told.Load(), st.Deadlocks)
		require.Zero(t, st.Canceled+st.Unavailable+st.Closed+st.Lost)
		ctRequireIdle(t, &c)
		deadlocks += st.Deadlocks
	}
	assert.NotZero(t, deadlocks)
}
