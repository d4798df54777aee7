package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dbx-tools/processlock/bench/contender"
)

// Units of what pools reports.
const (
	HalfDone      = "half-ns"       // until half of the tasks were done
	Goroutines    = "goroutines"    // at most, beyond those there were
	QueuedPerTask = "queued-B/task" // heap and stacks of a task beyond the limit
)

// PoolNames are the workloads of pools: tasks that keep a processor busy, and
// tasks that wait for somebody else, of which a pool wants as many as it may.
func PoolNames() (busy, waiting string) {
	return fmt.Sprintf("Pools/keys=%d/limit=%d/busy=%v", poolKeys, poolLimit, poolBusy),
		fmt.Sprintf("Pools/keys=%d/limit=%d/waits=%v", poolKeys, poolLimit, poolWait)
}

const (
	poolKeys, poolLimit = 1000, 8
	poolBusy, poolWait  = 5 * time.Microsecond, time.Millisecond
)

// pools has worker pools run tasks, some of whose keys are popular, which all
// are added at once. The most popular key has a fifth of them, so that its tasks,
// one after the other, take longer than all others at the limit: nobody can be
// done before them, but the others can be done before.
func pools(tasks int) []Workload {
	busy, waiting := PoolNames()
	of := func(name string, ops int, hold func()) Workload {
		w := Workload{Name: name, Ops: ops, MaxRounds: 3, Fresh: true}
		for _, c := range contender.Pools() {
			w.Entrants = append(w.Entrants, Entrant{c.Name, "", c.Kind, c.Guarantees, func() Run {
				keys := popular(tasks)
				return Run{func(n int, m Meter) {
					queue(c, keys, m)
					drain(c, keys[:n], m, hold)
				}, nil}
			}})
		}
		return w
	}
	return []Workload{
		of(busy, tasks, func() { spin(poolBusy) }),
		of(waiting, tasks/25, func() { time.Sleep(poolWait) }),
	}
}

func popular(tasks int) []string {
	ks := names(poolKeys)
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.1, 1, poolKeys-1)
	drawn := make([]string, tasks)
	for i := range drawn {
		drawn[i] = ks[z.Uint64()]
	}
	return drawn
}

// drain measures how long the tasks take, and after what time half of them were
// done.
func drain(c contender.PoolContender, keys []string, m Meter, hold func()) {
	ctx, cancel := cancellable()
	defer cancel()
	before := int64(runtime.NumGoroutine())
	var most, done atomic.Int64
	var start time.Time
	var half time.Duration
	p := c.New(ctx, poolLimit)
	fn := func(context.Context) error {
		n := int64(runtime.NumGoroutine())
		// While the runtime moves a batch of 32 dead ones it counts them, too.
		for i := 0; i < 3 && n > most.Load(); i++ {
			runtime.Gosched()
			n = min(n, int64(runtime.NumGoroutine()))
		}
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		hold()
		if done.Add(1) == int64(len(keys)/2) {
			half = time.Since(start)
		}
		return nil
	}
	m.Start()
	start = time.Now()
	for _, k := range keys {
		p.Go(k, fn)
	}
	p.Wait()
	m.Stop()
	m.Report(float64(half), HalfDone)
	m.Report(float64(most.Load()-before), Goroutines)
}

// queue measures what tasks take that are added while those that run don't end.
// Who takes no more than the limit is asked nothing. Descriptors of goroutines
// are not seen: the runtime keeps those of earlier rounds.
func queue(c contender.PoolContender, keys []string, m Meter) {
	ctx, cancel := cancellable()
	defer cancel()
	before := heap() + stacks()
	p := c.New(ctx, poolLimit)
	gate, done := make(chan struct{}), make(chan struct{})
	fn := func(context.Context) error {
		<-gate
		return nil
	}
	var taken atomic.Int64
	go func() {
		defer close(done)
		for _, k := range keys {
			p.Go(k, fn)
			taken.Add(1)
		}
		p.Wait()
	}()
	awaitIdle(10 * time.Second)
	if beyond := taken.Load() - poolLimit; beyond > poolLimit {
		m.Report(float64(heap()+stacks()-before)/float64(beyond), QueuedPerTask)
	}
	close(gate)
	<-done
}

func stacks() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.StackInuse)
}
