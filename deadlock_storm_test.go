package processlock

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
	"time"

	"github.com/stretchr/testify/assert"
)

// dtStorm is real goroutines in real time, whose contexts never end: a wait
// ends by its grant or as a deadlock, or the storm never does.
type dtStorm struct {
	cs      []*Coordinator
	keys    int
	ordered bool // keys are only taken upwards, so that no cycle can come about

	inside    []atomic.Int64 // by key: 1 a reader, dtAlone a writer
	broken    atomic.Int64   // fns that were not alone
	ran       atomic.Int64
	deadlocks atomic.Int64
	other     sync.Map // unexpected errors
}

const dtAlone = 1 << 32

// fall takes keys above floor at random, nested, some at once, some in
// goroutines side by side.
func (s *dtStorm) fall(ctx context.Context, r *rand.Rand, floor, depth int) {
	total := len(s.cs) * s.keys
	if !s.ordered {
		floor = 0
	}
	if floor >= total {
		return
	}
	key := floor + r.IntN(total-floor)
	on := key / s.keys
	several := []int{key}
	for r.IntN(4) == 0 && len(several) < 3 {
		several = append(several, on*s.keys+r.IntN(s.keys))
	}
	if s.ordered {
		several = slices.DeleteFunc(several, func(k int) bool { return k < floor })
	}
	slices.Sort(several)
	several = slices.Compact(several)
	var names []any
	for _, k := range several {
		names = append(names, fmt.Sprintf("k%02d", k))
	}
	var opts []Option
	weight := int64(dtAlone)
	if r.IntN(3) == 0 {
		weight, opts = 1, append(opts, Shared)
	}
	seed := r.Uint64()
	err := s.cs[on].WithLock(ctx, All(names...), func(ctx context.Context) error {
		for _, k := range several {
			if others := s.inside[k].Add(weight) - weight; others >= dtAlone || weight == dtAlone && others != 0 {
				s.broken.Add(1)
			}
		}
		s.ran.Add(1)
		s.within(ctx, rand.New(rand.NewPCG(seed, 7)), several[len(several)-1]+1, depth)
		for _, k := range several {
			s.inside[k].Add(-weight)
		}
		return nil
	}, opts...)
	switch {
	case err == nil:
	case errors.Is(err, ErrDeadlock):
		s.deadlocks.Add(1)
	default:
		s.other.Store(err.Error(), true)
	}
}

func (s *dtStorm) within(ctx context.Context, r *rand.Rand, floor, depth int) {
	if depth == 0 {
		return
	}
	switch r.IntN(4) {
	case 0:
		runtime.Gosched()
	case 1:
		var siblings sync.WaitGroup
		defer siblings.Wait()
		for range 2 {
			r := rand.New(rand.NewPCG(r.Uint64(), 9))
			siblings.Go(func() { s.fall(ctx, r, floor, depth-1) })
		}
	default:
		s.fall(ctx, r, floor, depth-1)
	}
}

// blow runs trees side by side for a while, and reports whether all came back.
func (s *dtStorm) blow(t *testing.T, trees int, long time.Duration) {
	s.inside = make([]atomic.Int64, len(s.cs)*s.keys)
	stop := time.Now().Add(long)
	var all sync.WaitGroup
	for tree := range trees {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(tree), 31))
			for time.Now().Before(stop) {
				s.fall(context.Background(), r, 0, 3)
			}
		})
	}
	back := make(chan struct{})
	go func() { all.Wait(); close(back) }()
	select {
	case <-back:
	case <-time.After(long + 20*time.Second):
		for _, c := range s.cs {
			t.Logf("%+v\n%+v", c.Stats(), c.Snapshot())
		}
		t.Fatal("somebody waits for ever")
	}
	assert.Zero(t, s.broken.Load(), "fns that were not alone")
	s.other.Range(func(text, _ any) bool { return assert.Fail(t, "unexpected", text) })
	assert.Positive(t, s.ran.Load())
	dtAssertNothingLeft(t, s.cs...)
	var acquired, deadlocks int64
	for _, c := range s.cs {
		acquired += c.Stats().Acquired
		deadlocks += c.Stats().Deadlocks
	}
	assert.Equal(t, s.deadlocks.Load(), deadlocks)
	assert.GreaterOrEqual(t, acquired, s.ran.Load())
}

// Under load too, every cycle is found, so that nobody hangs, and where there
// can be none, none is found.
//
// Rules 1, 23, 31 and 32.
func TestDeadlockStorm(t *testing.T) {
	long := dtStress(t, 1200*time.Millisecond) / 6
	for _, procs := range []int{1, 2, 8} {
		for _, ordered := range []bool{false, true} {
			t.Run(fmt.Sprint("procs=", procs, "/ordered=", ordered), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				s := &dtStorm{cs: []*Coordinator{New(Options{}), New(Options{})}, keys: 4, ordered: ordered}
				s.blow(t, 12, long)
				if ordered {
					assert.Zero(t, s.deadlocks.Load(), "false alarms")
				} else {
					assert.Positive(t, s.deadlocks.Load(), "the storm is too weak to deadlock")
				}
			})
		}
	}
}
