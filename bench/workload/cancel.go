package workload

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dbx-tools/processlock/bench/contender"
)

// cancelMiddle cancels waiters in the middle of a queue, one after the other,
// until they are gone.
func cancelMiddle(s Size) []Workload {
	var ws []Workload
	for _, size := range []int{2 * s.Cancels, s.Crowd} {
		ws = append(ws, Workload{Name: fmt.Sprintf("CancelMiddle/queue=%d", size), Ops: s.Cancels, MaxRounds: 3, Fresh: true,
			Entrants: entrants(those(contender.Strings(), hasCtx), "", func(l contender.Lock[string]) Run {
				return cancelRun(l, size)
			})})
	}
	return ws
}

func cancelRun(l contender.Lock[string], size int) Run {
	free, held := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = l.Do(background, "hot", func(context.Context) error {
			close(held)
			<-free
			return nil
		})
	})
	<-held
	var returned atomic.Int64
	cancels := make([]func(), size)
	for i := range cancels {
		var ctx context.Context
		ctx, cancels[i] = context.WithCancel(background)
		all.Go(func() {
			if l.Do(ctx, "hot", nothing) != nil {
				returned.Add(1)
			}
		})
	}
	awaitIdle(10 * time.Second)
	return Run{func(n int, m Meter) {
		returned.Store(0)
		m.Start()
		for _, cancel := range cancels[size/2-n/2:][:n] {
			cancel()
		}
		for returned.Load() < int64(n) {
			runtime.Gosched()
		}
		m.Stop()
	}, func() {
		close(free)
		all.Wait()
		for _, cancel := range cancels {
			cancel()
		}
	}}
}

// awaitIdle returns when all other goroutines wait, or after the limit: the
// runtime's counts are approximate.
func awaitIdle(limit time.Duration) {
	s := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}}
	idle := 0
	for end := time.Now().Add(limit); idle < 3 && time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if metrics.Read(s); s[0].Value.Uint64() == 0 && s[1].Value.Uint64() <= 1 {
			idle++
		} else {
			idle = 0
		}
	}
}

// storm has many waits end by their deadline after a millisecond. The limit
// waits for the deadline alone.
func storm() Workload {
	const goroutines = 1000
	es := append(entrants(those(contender.Strings(), hasCtx), "", stormRun(goroutines)),
		Entrant{"deadline alone", "", contender.Limit, contender.Guarantees{Note: "a wait for the context"}, func() Run {
			return stormRun(goroutines)(deadlineOnly{})
		}})
	return Workload{Name: fmt.Sprintf("DeadlineStorm/goroutines=%d", goroutines), MinOps: 5 * goroutines, Entrants: es}
}

type deadlineOnly struct{}

func (deadlineOnly) Do(ctx context.Context, _ string, fn func(context.Context) error) error {
	if ctx.Done() == nil { // the holder
		return fn(ctx)
	}
	<-ctx.Done()
	return ctx.Err()
}

func stormRun(goroutines int) func(l contender.Lock[string]) Run {
	return func(l contender.Lock[string]) Run {
		return Run{func(n int, m Meter) {
			_ = l.Do(background, "hot", func(context.Context) error {
				var left atomic.Int64
				left.Store(int64(n))
				together(goroutines, m, func(int) {
					for left.Add(-1) >= 0 {
						ctx, cancel := context.WithTimeout(background, time.Millisecond)
						_ = l.Do(ctx, "hot", nothing)
						cancel()
					}
				})
				return nil
			})
		}, nil}
	}
}
