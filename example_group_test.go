package processlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dbx-tools/processlock"
)

func ExampleGroup() {
	g, _ := processlock.NewGroup(context.Background(), "events")
	g.SetLimit(4) // run at once; those that wait for their tenant don't count
	var seen [3][]int
	for event := range 9 {
		tenant := event % 3
		g.GoLocked([]any{"tenant", tenant}, func(ctx context.Context) error {
			seen[tenant] = append(seen[tenant], event) // alone for this tenant, in order
			return nil
		})
	}
	err := g.Wait()
	fmt.Println(seen, err)
	// Output: [[0 3 6] [1 4 7] [2 5 8]] <nil>
}

// Each task is a client of its own, which errors and snapshots name.
func ExampleNewGroup() {
	c := processlock.New(processlock.Options{})
	ctx := processlock.WithCoordinator(context.Background(), c)
	g, _ := processlock.NewGroup(ctx, "mail")
	g.GoLocked("outbox", func(ctx context.Context) error {
		fmt.Println(c.Snapshot().Locks[0].Holders[0].Client)
		return nil
	})
	fmt.Println(g.Wait())
	// Output:
	// mail-1
	// <nil>
}

// One task at a time is a queue: tasks without a key run in the order of the
// calls.
func ExampleGroup_SetLimit() {
	g, _ := processlock.NewGroup(context.Background(), "steps")
	g.SetLimit(1)
	for i := range 3 {
		g.Go(func(context.Context) error {
			fmt.Println("step", i)
			return nil
		})
	}
	fmt.Println(g.Wait())
	// Output:
	// step 0
	// step 1
	// step 2
	// <nil>
}

// A task that finds out only while it runs what it needs locks with its own
// context. It doesn't count as running while it waits.
func ExampleGroup_Go() {
	stock := []string{"tea", "rice", "tea", "tea", "salt", "rice"}
	counts := map[string]*int{"tea": new(int), "rice": new(int), "salt": new(int)}
	g, _ := processlock.NewGroup(context.Background(), "count")
	g.SetLimit(2)
	for i := range stock {
		g.Go(func(ctx context.Context) error {
			article := stock[i]
			return processlock.WithLock(ctx, article, func(context.Context) error {
				*counts[article]++
				return nil
			})
		})
	}
	err := g.Wait()
	fmt.Println(err, *counts["tea"], *counts["rice"], *counts["salt"])
	// Output: <nil> 3 2 1
}

func ExampleGroup_GoLocked() {
	balance := map[string]*int{"alice": new(int), "bob": new(int)}
	g, _ := processlock.NewGroup(context.Background(), "transfers")
	transfer := func(from, to string, amount int) {
		g.GoLocked(processlock.All(from, to), func(context.Context) error {
			*balance[from] -= amount
			*balance[to] += amount
			return nil
		})
	}
	for range 100 {
		transfer("alice", "bob", 3)
		transfer("bob", "alice", 2)
	}
	err := g.Wait()
	fmt.Println(err, *balance["alice"], *balance["bob"])
	// Output: <nil> -100 100
}

// The task that finds a report under way leaves it at that.
func ExampleGroup_Skipped() {
	ctx := context.Background()
	refresh := func(context.Context) error {
		fmt.Println("refreshed")
		return nil
	}
	err := processlock.WithLock(ctx, "report-1", func(context.Context) error {
		// Somebody else meanwhile:
		g, _ := processlock.NewGroup(ctx, "refresh")
		g.GoLocked("report-1", refresh, processlock.IfAvailable)
		g.GoLocked("report-2", refresh, processlock.IfAvailable)
		err := g.Wait()
		fmt.Println("skipped:", g.Skipped())
		return err
	})
	fmt.Println(err)
	// Output:
	// refreshed
	// skipped: 1
	// <nil>
}

// The first error is Wait's, and tasks that have not started by then never run.
func ExampleGroup_Wait() {
	g, ctx := processlock.NewGroup(context.Background(), "import")
	g.SetLimit(1)
	g.Go(func(context.Context) error { return errors.New("the disk is full") })
	g.GoLocked("table", func(context.Context) error {
		fmt.Println("not reached")
		return nil
	})
	fmt.Println(g.Wait())
	fmt.Println(ctx.Err(), "-", context.Cause(ctx))
	// Output:
	// the disk is full
	// context canceled - the disk is full
}
