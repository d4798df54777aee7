package workload

import (
	"context"
	"fmt"

	"github.com/dbx-tools/processlock/bench/contender"
)

// nested locks keys inside each other. Only who keeps keys apart can.
func nested() []Workload {
	var ws []Workload
	for _, depth := range []int{2, 5} {
		ws = append(ws, Workload{Name: fmt.Sprintf("Nested/depth=%d", depth),
			Entrants: entrants(those(contender.Strings(), isExact), "", func(l contender.Lock[string]) Run {
				return nestedRun(l, names(depth))
			})})
	}
	return ws
}

func nestedRun(l contender.Lock[string], keys []string) Run {
	ctx, cancel := cancellable()
	fn := nothing
	for _, key := range keys[1:] {
		inner := fn
		fn = func(ctx context.Context) error { return l.Do(ctx, key, inner) }
	}
	return Run{func(n int, _ Meter) {
		for range n {
			_ = l.Do(ctx, keys[0], fn)
		}
	}, cancel}
}
