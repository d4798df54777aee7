package proof

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dbx-tools/processlock"
)

// group runs a group of tasks, of which none fails: what is dropped after its key
// was granted would be acquired and yet not run.
func (s *soaker) group(r *rand.Rand) {
	g, ctx := processlock.NewGroup(processlock.WithCoordinator(context.Background(), s.c), "group")
	limit := r.IntN(4)
	g.SetLimit(limit)
	var running atomic.Int64
	n, ran, asked := 2+r.IntN(6), atomic.Int64{}, 0
	for range n {
		var opts []processlock.Option
		shared := r.IntN(3) == 0
		if shared {
			opts = append(opts, processlock.Shared)
		}
		switch r.IntN(6) {
		case 0:
			opts = append(opts, processlock.IfAvailable)
		case 1:
			opts = append(opts, processlock.MaxWait(time.Duration(1+r.IntN(100))*time.Microsecond))
		}
		k, own := r.IntN(len(s.sections)), rand.New(rand.NewPCG(r.Uint64(), 0))
		task := func(ctx context.Context) error {
			ran.Add(1)
			if busy := running.Add(1); limit > 0 && busy > int64(limit) {
				s.tally.wrong("%d tasks run, limit %d", busy, limit)
			}
			if !s.sections[k].enter(shared) {
				s.tally.wrong("key %d is not a task's", k)
			}
			runtime.Gosched()
			s.sections[k].leave(shared)
			running.Add(-1) // what follows may wait, without the slot
			if own.IntN(3) == 0 {
				s.action(context.WithoutCancel(ctx), own, 1)
			}
			return nil
		}
		if r.IntN(4) == 0 {
			g.Go(func(ctx context.Context) error {
				ran.Add(1)
				s.action(context.WithoutCancel(ctx), own, 1)
				return nil
			})
			continue
		}
		g.GoLocked(k, task, opts...)
		asked++
	}
	if err := g.Wait(); err != nil || ctx.Err() == nil {
		s.tally.wrong("Wait: %v", err)
	}
	skipped := g.Skipped()
	if int(ran.Load())+skipped != n {
		s.tally.wrong("of %d tasks %d ran and %d were skipped", n, ran.Load(), skipped)
	}
	s.tally.acquired.Add(int64(asked - skipped))
	s.tally.unavailable.Add(int64(skipped))
}
