package pools_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sourcegraph/conc/pool"

	"github.com/dbx-tools/processlock"
)

// A pool with a context: the first error cancels the waits of all others.
func Example_conc() {
	var mailed [3]int // letters, by tenant
	p := pool.New().WithMaxGoroutines(4).WithContext(context.Background()).WithCancelOnError().WithFirstError()
	for i := range 300 {
		tenant := i % len(mailed)
		p.Go(processlock.Worker(fmt.Sprintf("mail-%d", i), func(ctx context.Context) error {
			return processlock.WithLock(ctx, []any{"tenant", tenant}, func(context.Context) error {
				mailed[tenant]++ // alone for this tenant
				return nil
			})
		}))
	}
	err := p.Wait()
	fmt.Println(err, mailed)
	// Output: <nil> [100 100 100]
}

// The pool's context ends the wait of a worker whose key somebody else holds.
func Example_concCancel() {
	c := processlock.New(processlock.Options{})
	ctx := processlock.WithCoordinator(context.Background(), c)
	full := errors.New("the disk is full")

	// Nobody who waits has the context of this fn, so it is none of theirs.
	err := c.WithLock(ctx, "tenant-1", func(context.Context) error {
		p := pool.New().WithContext(ctx).WithCancelOnError()
		p.Go(processlock.Worker("waits", func(ctx context.Context) error {
			return processlock.WithLock(ctx, "tenant-1", func(context.Context) error { return nil })
		}))
		p.Go(processlock.Worker("fails", func(context.Context) error {
			await(func() bool { return c.Stats().Waiting == 1 })
			return full
		}))
		return p.Wait()
	})
	fmt.Println(errors.Is(err, full), errors.Is(err, context.Canceled), c.Stats().Canceled)
	// Output: true true 1
}

// Results of a pool that collects them.
func Example_concResults() {
	var stock int
	p := pool.NewWithResults[int]().WithMaxGoroutines(4).WithContext(context.Background())
	for range 10 {
		p.Go(func(ctx context.Context) (int, error) {
			return processlock.WithLockValue(ctx, "stock", func(context.Context) (int, error) {
				stock++
				return stock, nil
			})
		})
	}
	counts, err := p.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	fmt.Println(len(counts), sum, err)
	// Output: 10 55 <nil>
}
