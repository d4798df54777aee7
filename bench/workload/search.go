package workload

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/bench/contender"
)

// search is a nested request that has to wait, and gives up at once, among
// others that are nested and wait. Nobody else looks for deadlocks.
func search(others int) Workload {
	ours := contender.Processlock[string]()
	shape := func(variant string, want any, layOut func(c *crowd)) Entrant {
		return entrant(ours, variant, func(contender.Lock[string]) Run {
			c := &crowd{c: processlock.New(processlock.Options{}), free: make(chan struct{})}
			c.hold("other")
			layOut(c)
			return Run{func(n int, m Meter) {
				_ = c.c.WithLock(background, "mine", func(ctx context.Context) error {
					m.Start()
					for range n {
						_ = c.c.WithLock(ctx, want, nothing, processlock.MaxWait(1))
					}
					m.Stop()
					return nil
				})
			}, c.close}
		})
	}
	return Workload{Name: fmt.Sprintf("Search/others=%d", others), Ops: 200, Fresh: true, MaxRounds: 3, Entrants: []Entrant{
		shape("shape=alone", "other", func(*crowd) {}),
		shape("shape=unreachable", "other", func(c *crowd) {
			c.hold("hot")
			c.wait(others, false, func(i int) (any, any) { return i, "hot" })
		}),
		shape("shape=samekey", "hot", func(c *crowd) {
			c.hold("hot")
			c.wait(others, false, func(i int) (any, any) { return i, "hot" })
		}),
		shape("shape=chain", 0, func(c *crowd) {
			c.hold(others)
			c.wait(others, true, func(i int) (any, any) { return i, i + 1 })
		}),
	}}
}

// crowd is many nested waiters.
type crowd struct {
	c    *processlock.Coordinator
	free chan struct{} // ends the holds that wait for nothing
	all  sync.WaitGroup
}

func (c *crowd) hold(key any) {
	held := make(chan struct{})
	c.all.Go(func() {
		_ = c.c.WithLock(background, key, func(context.Context) error {
			close(held)
			<-c.free
			return nil
		})
	})
	<-held
}

// wait starts n waiters, all of which hold before the first waits. In turn each
// waits before the next does, so that no search on the way has far to go.
func (c *crowd) wait(n int, inTurn bool, keys func(i int) (holds, wants any)) {
	var held sync.WaitGroup
	held.Add(n)
	turns := make([]chan struct{}, n)
	for i := range turns {
		turns[i] = make(chan struct{})
		c.all.Go(func() {
			holds, wants := keys(i)
			_ = c.c.WithLock(background, holds, func(ctx context.Context) error {
				held.Done()
				<-turns[i]
				return c.c.WithLock(ctx, wants, nothing)
			})
		})
	}
	held.Wait()
	for i, turn := range turns {
		close(turn)
		for inTurn && c.c.Stats().Waiting <= int64(i) {
			runtime.Gosched()
		}
	}
	for c.c.Stats().Waiting < int64(n) {
		time.Sleep(time.Millisecond)
	}
}

func (c *crowd) close() {
	close(c.free)
	c.all.Wait()
}
