package contender

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func everyone() []Contender[string] {
	return slices.Concat(Strings(), Limits(), []Contender[string]{Method, UnderClient, mapRWMutex})
}

// Run with the race detector, which then also proves that a release happens
// before the next grant.
func TestEveryoneExcludes(t *testing.T) {
	for _, c := range everyone() {
		t.Run(c.Name, func(t *testing.T) {
			l := c.New()
			defer Close(l)
			const workers, turns = 8, 500
			keys := []string{"a", "b", "c"}
			counts := make([]int, len(keys)) // unguarded but for the lock
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for i := range turns {
						k := (w + i) % len(keys)
						_ = l.Do(context.Background(), keys[k], func(context.Context) error {
							n := counts[k]
							if i%8 == 0 {
								runtime.Gosched() // lets in who isn't kept out
							}
							counts[k] = n + 1
							return nil
						})
					}
				})
			}
			wg.Wait()
			total := 0
			for _, n := range counts {
				total += n
			}
			if total != workers*turns {
				t.Errorf("%d of %d turns count", total, workers*turns)
			}
		})
	}
}

// Whoever claims exact keys can hold one and lock any other; the others get no
// such test, since they would hang.
func TestExactKeysNeverMeet(t *testing.T) {
	for _, c := range everyone() {
		if !c.Exact {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			l := c.New()
			defer Close(l)
			ran := 0
			_ = l.Do(context.Background(), "held", func(context.Context) error {
				for i := range 2000 {
					_ = l.Do(context.Background(), strconv.Itoa(i), func(context.Context) error {
						ran++
						return nil
					})
				}
				return nil
			})
			if ran != 2000 {
				t.Errorf("%d of 2000 keys were free", ran)
			}
		})
	}
}

func TestFIFOKeepsOrder(t *testing.T) {
	for _, c := range everyone() {
		if !c.FIFO {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := c.New()
				defer Close(l)
				const waiters = 50
				var got []int
				free := make(chan struct{})
				go func() {
					_ = l.Do(context.Background(), "k", func(context.Context) error { <-free; return nil })
				}()
				synctest.Wait()
				for i := range waiters {
					go func() {
						_ = l.Do(context.Background(), "k", func(context.Context) error {
							got = append(got, i)
							return nil
						})
					}()
					synctest.Wait()
				}
				close(free)
				synctest.Wait()
				if len(got) != waiters || !slices.IsSorted(got) {
					t.Errorf("turns were %v", got)
				}
			})
		})
	}
}

func TestCtxEndsWaits(t *testing.T) {
	for _, c := range everyone() {
		if !c.Ctx || c.Name == UnderClient.Name { // whose context is its own
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			l := c.New()
			defer Close(l)
			_ = l.Do(context.Background(), "k", func(context.Context) error {
				ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				defer cancel()
				err := l.Do(ctx, "k", func(context.Context) error {
					t.Error("fn ran")
					return nil
				})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				return nil
			})
			ran := false
			_ = l.Do(context.Background(), "k", func(context.Context) error { ran = true; return nil })
			if !ran {
				t.Error("the key is stuck")
			}
		})
	}
}

func TestSharersMeet(t *testing.T) {
	for _, c := range Sharing() {
		t.Run(c.Name, func(t *testing.T) {
			l := c.New().(Shared[string])
			var both sync.WaitGroup
			both.Add(2)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					_ = l.DoShared(context.Background(), "k", func(context.Context) error {
						both.Done()
						both.Wait()
						return nil
					})
				})
			}
			wg.Wait()
		})
	}
}
