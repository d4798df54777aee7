package pools_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/panjf2000/ants/v2"

	"github.com/dbx-tools/processlock"
)

// A pool whose workers run one function, each time with another job.
func Example_ants() {
	ctx := context.Background()
	type job struct{ number, tenant int }
	var mailed [3]int // letters, by tenant
	var all sync.WaitGroup
	pool, err := ants.NewPoolWithFuncGeneric(4, func(j job) {
		defer all.Done()
		mail := processlock.Worker(fmt.Sprintf("mail-%d", j.number), func(ctx context.Context) error {
			return processlock.WithLock(ctx, []any{"tenant", j.tenant}, func(context.Context) error {
				mailed[j.tenant]++ // alone for this tenant
				return nil
			})
		})
		if err := mail(ctx); err != nil {
			fmt.Println(err)
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Release()

	for i := range 300 {
		all.Add(1)
		if err := pool.Invoke(job{number: i, tenant: i % len(mailed)}); err != nil {
			all.Done()
			fmt.Println(err)
		}
	}
	all.Wait()
	fmt.Println(mailed)
	// Output: [100 100 100]
}

// A Snapshot names the worker that holds a key and the one that waits for it.
// ants has a worker for each of them meanwhile, and none left for a third task.
func Example_antsSnapshot() {
	c := processlock.New(processlock.Options{})
	ctx := processlock.WithCoordinator(context.Background(), c)
	pool, err := ants.NewPool(2, ants.WithNonblocking(true))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Release()

	held, free := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	submit := func(name string, fn func(context.Context) error) error {
		worker := processlock.Worker(name, func(ctx context.Context) error {
			return processlock.WithLock(ctx, "tenant-1", fn)
		})
		all.Add(1)
		err := pool.Submit(func() {
			defer all.Done()
			if err := worker(ctx); err != nil {
				fmt.Println(err)
			}
		})
		if err != nil {
			all.Done()
		}
		return err
	}
	fmt.Println(submit("first", func(context.Context) error {
		close(held)
		<-free
		return nil
	}))
	<-held
	fmt.Println(submit("second", func(context.Context) error { return nil }))
	await(func() bool { return c.Stats().Waiting == 1 })
	fmt.Println(submit("third", func(context.Context) error { return nil }))

	lock := c.Snapshot().Locks[0]
	fmt.Println(lock.Key, "is held by", lock.Holders[0].Client, "and wanted by", lock.Waiters[0].Client)
	close(free)
	all.Wait()
	// Output:
	// <nil>
	// <nil>
	// too many goroutines blocked on submit or Nonblocking is set
	// ["tenant-1"] is held by first and wanted by second
}
