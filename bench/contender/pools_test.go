package contender

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// Run with the race detector: nothing but its key guards a task's count.
func TestEveryPoolExcludes(t *testing.T) {
	for _, c := range Pools() {
		t.Run(c.Name, func(t *testing.T) {
			const tasks, keys = 2000, 3
			var counts [keys]int
			p := c.New(context.Background(), 4)
			for i := range tasks {
				p.Go(strconv.Itoa(i%keys), func(context.Context) error {
					counts[i%keys]++
					return nil
				})
			}
			p.Wait()
			if total := counts[0] + counts[1] + counts[2]; total != tasks {
				t.Errorf("%d of %d tasks count", total, tasks)
			}
		})
	}
}

// Who claims it runs a key's tasks in the order in which they were added.
func TestFIFOPoolsKeepTheOrder(t *testing.T) {
	for _, c := range Pools() {
		if !c.FIFO {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			var seen [3][]int
			p := c.New(context.Background(), 4)
			for i := range 2000 {
				p.Go(strconv.Itoa(i%3), func(context.Context) error {
					seen[i%3] = append(seen[i%3], i)
					return nil
				})
			}
			p.Wait()
			for _, s := range seen {
				if !slices.IsSorted(s) || len(s) < 666 {
					t.Errorf("out of order, or not all: %v", s)
				}
			}
		})
	}
}

// Who limits what runs lets no more run.
func TestPoolsKeepTheLimit(t *testing.T) {
	for _, c := range Pools() {
		if c.Name == "errgroup+WithLock" { // as its note says
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			const limit = 4
			slots := make(chan struct{}, limit)
			p := c.New(context.Background(), limit)
			for i := range 2000 {
				p.Go(strconv.Itoa(i), func(context.Context) error {
					select {
					case slots <- struct{}{}:
						runtime.Gosched()
						<-slots
					default:
						t.Error("one more than the limit runs")
					}
					return nil
				})
			}
			p.Wait()
		})
	}
}
