package workload

import (
	"fmt"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/bench/contender"
)

// several takes a set of keys: with All, or by nesting, for which the caller
// has to sort them.
func several() []Workload {
	var ws []Workload
	for _, n := range []int{2, 5, 20} {
		ours := contender.Processlock[string]()
		all := func(variant string, prebuilt bool) Entrant {
			return entrant(ours, variant, func(contender.Lock[string]) Run {
				var keys []any
				for _, k := range names(n) {
					keys = append(keys, k)
				}
				ctx, cancel := cancellable()
				set := processlock.All(keys...)
				return Run{func(n int, _ Meter) {
					for range n {
						if !prebuilt {
							set = processlock.All(keys...)
						}
						_ = processlock.WithLock(ctx, set, nothing)
					}
				}, cancel}
			})
		}
		es := []Entrant{all("form=All", false), all("form=prebuilt", true)}
		for _, name := range []string{"processlock", "map+Mutex", "map+Weighted", "map+Cond"} {
			es = append(es, entrant(contender.Named(contender.Strings(), name), "form=nested", func(l contender.Lock[string]) Run {
				return nestedRun(l, names(n))
			}))
		}
		ws = append(ws, Workload{Name: fmt.Sprintf("All/keys=%d", n), Entrants: es})
	}
	return ws
}
