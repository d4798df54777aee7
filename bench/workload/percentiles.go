package workload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dbx-tools/processlock/bench/contender"
)

// Units of what percentiles reports.
const (
	P50    = "p50-ns"
	P99    = "p99-ns"
	Max    = "max-ns"
	Spread = "spread-%" // most turns of a goroutine less fewest, of the mean
)

// percentiles has 16 goroutines hold one key for 20 us at a time. The ideal
// queue does the same holds back to back in one goroutine, and counts as the
// wait of each the 15 before it: what neighbours on the machine stretch there
// they stretch here.
func percentiles(turns int) Workload {
	const goroutines, hold = 16, 20 * time.Microsecond
	es := entrants(slices.Concat(contender.Strings(), contender.Limits()), "", func(l contender.Lock[string]) Run {
		return Run{func(n int, m Meter) {
			var count atomic.Int64
			waits := make([][]time.Duration, goroutines)
			for g := range waits {
				waits[g] = make([]time.Duration, 0, n) // growing would be part of a wait
			}
			together(goroutines, m, func(g int) {
				for count.Load() < int64(n) {
					asked := time.Now()
					_ = l.Do(background, "hot", func(context.Context) error {
						waits[g] = append(waits[g], time.Since(asked))
						spin(hold)
						count.Add(1)
						return nil
					})
				}
			})
			reportWaits(m, slices.Concat(waits...))
			reportSpread(m, waits)
		}, nil}
	})
	es = append(es, Entrant{"ideal queue", "", contender.Limit, contender.Guarantees{FIFO: true, Note: "the same holds back to back"}, func() Run {
		return Run{func(n int, m Meter) {
			took := make([]time.Duration, n)
			m.Start()
			for i := range took {
				start := time.Now()
				spin(hold)
				took[i] = time.Since(start)
			}
			m.Stop()
			var sums []time.Duration
			for i := range n - goroutines + 1 {
				var sum time.Duration
				for _, d := range took[i : i+goroutines-1] {
					sum += d
				}
				sums = append(sums, sum)
			}
			reportWaits(m, sums)
			m.Report(0, Spread)
		}, nil}
	}})
	return Workload{Name: fmt.Sprintf("Waits/goroutines=%d/hold=%v", goroutines, hold), Ops: turns, Entrants: es, MaxRounds: 5}
}

func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

func reportWaits(m Meter, waits []time.Duration) {
	slices.Sort(waits)
	at := func(q float64) float64 { return float64(waits[int(math.Ceil(q*float64(len(waits))))-1]) }
	m.Report(at(0.5), P50)
	m.Report(at(0.99), P99)
	m.Report(at(1), Max)
}

func reportSpread(m Meter, waits [][]time.Duration) {
	least, most, total := math.MaxInt, 0, 0
	for _, w := range waits {
		least, most, total = min(least, len(w)), max(most, len(w)), total+len(w)
	}
	m.Report(100*float64(most-least)*float64(len(waits))/float64(total), Spread)
}
