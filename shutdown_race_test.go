package processlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Shutdown meets arrivals, waits, grants, nested calls, clients that die and
// releases. When it returns nil no live fn runs, and none ever starts again.
//
// Rules 29, 34 and 38.
func TestStormOfShutdownAgainstGrants(t *testing.T) {
	var ran, nested, cut int64
	until := time.Now().Add(400 * time.Millisecond)
	for round := uint64(0); time.Now().Before(until); round++ {
		s := ctShutdownStorm{c: processlock.New(processlock.Options{TrackHolds: round%2 == 0})}
		s.run(t, round)
		ran, nested, cut = ran+s.ran.Load(), nested+s.nested.Load(), cut+s.cut.Load()
		if t.Failed() {
			return
		}
	}
	require.NotZero(t, ran)
	t.Logf("%d ran, %d of them nested, %d ended by Shutdown", ran, nested, cut)
}

type ctShutdownStorm struct {
	c                *processlock.Coordinator
	inside           atomic.Int64 // fns that hold something
	down             atomic.Bool  // Shutdown has returned nil
	ran, nested, cut atomic.Int64
}

func (s *ctShutdownStorm) run(t *testing.T, round uint64) {
	var all sync.WaitGroup
	for g := range uint64(4) {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(round, g))
			for {
				if err := s.call(t, t.Context(), rnd, 0); errors.Is(err, processlock.ErrClosed) {
					s.cut.Add(1)
					return
				} else if err != nil && !errors.Is(err, processlock.ErrDeadlock) {
					t.Errorf("unexpected: %v", err)
					return
				}
			}
		})
	}
	ctYield(int(round % 50))
	for range 2 {
		all.Go(func() {
			if err := s.c.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			s.down.Store(true)
			if n := s.inside.Load(); n != 0 {
				t.Errorf("%d fns run after Shutdown returned", n)
			}
		})
	}
	all.Wait()
	ctRequireIdle(t, s.c)
	ctRequireClosed(t, s.c.WithLock(t.Context(), "k", ctNever(t)))
}

func (s *ctShutdownStorm) call(t *testing.T, ctx context.Context, rnd *rand.Rand, depth int) error {
	var key any = rnd.IntN(4)
	var opts []processlock.Option
	switch rnd.IntN(6) {
	case 0:
		key = processlock.All(rnd.IntN(4), rnd.IntN(4))
	case 1, 2:
		opts = append(opts, processlock.Shared)
	}
	return s.c.WithLock(ctx, key, func(ctx context.Context) error {
		s.inside.Add(1)
		defer s.inside.Add(-1)
		if s.down.Load() {
			t.Error("fn started after Shutdown had returned")
		}
		s.ran.Add(1)
		if depth < 2 && rnd.IntN(3) == 0 {
			err := s.call(t, ctx, rnd, depth+1)
			if errors.Is(err, processlock.ErrClosed) {
				t.Errorf("a running fn's call was refused: %v", err)
			}
			if err == nil {
				s.nested.Add(1)
			}
		}
		ctYield(rnd.IntN(3))
		return nil
	}, opts...)
}
