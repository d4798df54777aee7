package workload

import (
	"math/rand/v2"
	"sync"

	"github.com/dbx-tools/processlock/bench/contender"
)

// zipf locks popular and rare keys from many goroutines.
func zipf() Workload {
	const keys, goroutines, each = 10_000, 64, 4096
	draw := sync.OnceValue(func() [][]string {
		ks := names(keys)
		drawn := make([][]string, goroutines)
		for g := range drawn {
			z := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(g))), 1.1, 1, keys-1)
			drawn[g] = make([]string, each)
			for i := range drawn[g] {
				drawn[g][i] = ks[z.Uint64()]
			}
		}
		return drawn
	})
	return Workload{Name: "Zipf/s=1.1/keys=10000/goroutines=64", MinOps: goroutines,
		Entrants: entrants(contender.Strings(), "", func(l contender.Lock[string]) Run {
			ctx, cancel := cancellable()
			drawn := draw()
			return Run{func(n int, m Meter) {
				together(goroutines, m, func(g int) {
					for i := range n / goroutines {
						_ = l.Do(ctx, drawn[g][i%each], nothing)
					}
				})
			}, cancel}
		})}
}
