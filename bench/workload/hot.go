package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dbx-tools/processlock/bench/contender"
)

// Crowds are the numbers of goroutines at a hot key.
var Crowds = []int{2, 8, 128, 10_000}

// hot locks one key from many goroutines, with an empty fn. It begins with all
// of them in the queue: else whether one forms is a matter of luck, and a run
// measures either a queue or hardly any contention. Whoever takes a context
// gets one that can end, too.
func hot() []Workload {
	var ws []Workload
	for _, goroutines := range Crowds {
		all := slices.Concat(contender.Strings(), contender.Limits())
		es := append(entrants(all, "ctx=background", hotRun(goroutines, false)), pingPong("ctx=background"))
		es = append(es, entrants(those(all, hasCtx), "ctx=cancellable", hotRun(goroutines, true))...)
		ws = append(ws, Workload{Name: fmt.Sprintf("Hot/goroutines=%d", goroutines), MinOps: 2 * goroutines, Entrants: es})
	}
	return ws
}

func hotRun(goroutines int, canEnd bool) func(l contender.Lock[string]) Run {
	return func(l contender.Lock[string]) Run {
		ctx, cancel := background, func() {}
		if canEnd {
			ctx, cancel = context.WithCancel(ctx)
		}
		return Run{func(n int, m Meter) {
			var left atomic.Int64
			left.Store(int64(n))
			var all sync.WaitGroup
			_ = l.Do(background, "hot", func(context.Context) error {
				for range goroutines {
					all.Go(func() {
						for left.Add(-1) >= 0 {
							_ = l.Do(ctx, "hot", nothing)
						}
					})
				}
				awaitIdle(time.Second)
				m.Start()
				return nil
			})
			all.Wait()
			m.Stop()
		}, cancel}
	}
}

// pingPong is a hand-over and nothing else: a token goes to and fro over a
// channel.
func pingPong(variant string) Entrant {
	return Entrant{"ping-pong", variant, contender.Limit, contender.Guarantees{Note: "a token over a channel"}, func() Run {
		return Run{func(n int, m Meter) {
			token := make(chan struct{})
			together(2, m, func(g int) {
				for i := range n {
					if i%2 == g {
						token <- struct{}{}
					} else {
						<-token
					}
				}
			})
		}, nil}
	}}
}
