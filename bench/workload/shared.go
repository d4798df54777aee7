package workload

import (
	"fmt"

	"github.com/dbx-tools/processlock/bench/contender"
)

// shared holds one hot key in shared mode, in all turns or in most.
func shared() []Workload {
	var ws []Workload
	for _, percent := range []int{100, 95} {
		const goroutines = 8
		es := entrants(contender.Sharing(), "", func(l contender.Lock[string]) Run {
			s := l.(contender.Shared[string])
			ctx, cancel := cancellable()
			return Run{func(n int, m Meter) {
				together(goroutines, m, func(g int) {
					for i := range n / goroutines {
						if (i+g)%20 == 0 && percent < 100 {
							_ = s.Do(ctx, "hot", nothing)
						} else {
							_ = s.DoShared(ctx, "hot", nothing)
						}
					}
				})
			}, cancel}
		})
		ws = append(ws, Workload{Name: fmt.Sprintf("Shared/percent=%d/goroutines=%d", percent, goroutines), MinOps: 20 * goroutines, Entrants: es})
	}
	return ws
}
