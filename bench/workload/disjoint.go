package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dbx-tools/processlock/bench/contender"
)

// disjoint locks keys that nobody else wants, on several processors.
func disjoint() []Workload {
	var ws []Workload
	for _, procs := range []int{1, 2, 4, 8} {
		var es []Entrant
		for _, c := range slices.Concat(contender.Strings(), []contender.Contender[string]{contender.Method, contender.UnderClient}, contender.Limits()) {
			es = append(es, ranges(c, "", procs, procs))
		}
		ws = append(ws, Workload{Name: fmt.Sprintf("Disjoint/procs=%d", procs), Entrants: es, Procs: procs})
	}
	return ws
}

// Growths are the numbers of keys of disjointGrowth.
var Growths = []int{2, 1024, 65_536, 1_000_000}

// disjointGrowth asks whether many keys cost more than few. A bare mutex, which
// doesn't look at its key, shows what walking the keys costs. Who never forgets
// a key stays out: a million of them would slow the collector for the others.
func disjointGrowth() Workload {
	var es []Entrant
	for _, n := range Growths {
		for _, name := range []string{"processlock", "map+Mutex", "map+Weighted", "map+Cond", "chained channels", "bare Mutex"} {
			c := contender.Named(slices.Concat(contender.Strings(), contender.Limits()), name)
			es = append(es, ranges(c, fmt.Sprintf("keys=%d", n), 2, n))
		}
	}
	return Workload{Name: "DisjointGrowth/procs=2", Entrants: es, Procs: 2}
}

// ranges gives each of so many goroutines a range of keys of its own.
func ranges(c contender.Contender[string], variant string, goroutines, keys int) Entrant {
	return entrant(c, variant, func(l contender.Lock[string]) Run {
		ks := names(keys)
		ctx, cancel := cancellable()
		each := keys / goroutines
		next := make([]int, goroutines)
		return Run{func(n int, m Meter) {
			together(goroutines, m, func(g int) {
				own, i := ks[g*each:(g+1)*each], next[g]
				for range n / goroutines {
					_ = l.Do(ctx, own[i], nothing)
					if i++; i == each {
						i = 0
					}
				}
				next[g] = i
			})
		}, cancel}
	})
}

// together runs body in so many goroutines and measures from when they are all
// there.
func together(goroutines int, m Meter, body func(g int)) {
	var here, done sync.WaitGroup
	gate := make(chan struct{})
	here.Add(goroutines)
	for g := range goroutines {
		done.Go(func() {
			here.Done()
			<-gate
			body(g)
		})
	}
	here.Wait()
	m.Start()
	close(gate)
	done.Wait()
	m.Stop()
}

var background = context.Background()
