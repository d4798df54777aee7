package workload

import (
	"context"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/bench/contender"
)

// clientLife makes a client, lets it lock or not, and closes it. A cancellable
// context, which a client contains, is the limit.
func clientLife() []Workload {
	ours := contender.Processlock[string]()
	life := func(variant string, body func(ctx context.Context)) Entrant {
		return entrant(ours, variant, func(contender.Lock[string]) Run {
			ctx, cancel := cancellable()
			return Run{func(n int, _ Meter) {
				for range n {
					ctx, c := processlock.WithClient(ctx, "worker")
					body(ctx)
					c.Close()
				}
			}, cancel}
		})
	}
	limit := Entrant{"WithCancel", "life=idle", contender.Limit, contender.Guarantees{Note: "the context alone"}, func() Run {
		ctx, cancel := cancellable()
		return Run{func(n int, _ Meter) {
			for range n {
				_, end := context.WithCancel(ctx)
				end()
			}
		}, cancel}
	}}
	return []Workload{{Name: "Client", Entrants: []Entrant{
		life("life=idle", func(context.Context) {}),
		life("life=lock", func(ctx context.Context) { _ = processlock.WithLock(ctx, "tenant-0", nothing) }),
		limit,
	}}}
}
