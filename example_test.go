package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
	"golang.org/x/sync/errgroup"
)

func nothing(context.Context) error { return nil }

func Example() {
	ctx := context.Background()
	var sold [2]int // seats sold, by show

	var wg sync.WaitGroup
	for i := range 100 {
		show := i % 2
		wg.Go(func() {
			err := processlock.WithLock(ctx, []any{"show", show}, func(ctx context.Context) error {
				sold[show]++ // alone for this show; the other sells meanwhile
				return nil
			})
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
	fmt.Println(sold)
	// Output: [50 50]
}

func ExampleWithLock() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	err := processlock.WithLock(ctx, "invoice-7", func(ctx context.Context) error {
		fmt.Println("nobody else settles invoice-7 now")
		return errors.New("card declined") // comes back as it is
	})
	fmt.Println(err)
	// Output:
	// nobody else settles invoice-7 now
	// card declined
}

// A context that is done never runs fn. Clean-up that needs the lock all the
// same leaves the cancellation behind.
func ExampleWithLock_cleanup() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	remove := func(context.Context) error {
		fmt.Println("removed")
		return nil
	}

	fmt.Println(processlock.WithLock(ctx, "upload-3", remove))
	fmt.Println(processlock.WithLock(context.WithoutCancel(ctx), "upload-3", remove))
	// Output:
	// processlock: lock ["upload-3"]: context canceled
	// removed
	// <nil>
}

func ExampleWithLockValue() {
	size, err := processlock.WithLockValue(context.Background(), "cache", func(ctx context.Context) (int, error) {
		return 42, nil
	})
	fmt.Println(size, err)
	// Output: 42 <nil>
}

func ExampleShared() {
	ctx := context.Background()
	both := make(chan struct{})
	var wg sync.WaitGroup
	for _, send := range []bool{true, false} {
		wg.Go(func() {
			err := processlock.WithLock(ctx, "config", func(ctx context.Context) error {
				// Each meets the other while both are inside.
				if send {
					both <- struct{}{}
				} else {
					<-both
				}
				return nil
			}, processlock.Shared)
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
	fmt.Println("two readers at once")
	// Output: two readers at once
}

func ExampleIfAvailable() {
	ctx := context.Background()
	refresh := func(context.Context) error { return nil }

	err := processlock.WithLock(ctx, "report", func(context.Context) error {
		// Somebody else, who would rather skip than wait:
		return processlock.WithLock(ctx, "report", refresh, processlock.IfAvailable)
	})
	fmt.Println(errors.Is(err, processlock.ErrUnavailable))
	fmt.Println(err)
	// Output:
	// true
	// processlock: lock ["report"]: not available now
}

func ExampleMaxWait() {
	ctx := context.Background()
	err := processlock.WithLock(ctx, "printer", func(context.Context) error {
		return processlock.WithLock(ctx, "printer", nothing, processlock.MaxWait(time.Millisecond))
	})
	var failed *processlock.AcquireError
	if errors.As(err, &failed) {
		fmt.Println(failed.Key, failed.Timeout(), failed.Err)
	}
	// Output: ["printer"] true processlock: not available within MaxWait
}

func ExampleReentrant() {
	save := func(ctx context.Context) error {
		return processlock.WithLock(ctx, "doc", func(context.Context) error {
			fmt.Println("saved")
			return nil
		}, processlock.Reentrant)
	}
	err := processlock.WithLock(context.Background(), "doc", func(ctx context.Context) error {
		return save(ctx) // ctx says that the lock is held already
	})
	fmt.Println(err)
	// Output:
	// saved
	// <nil>
}

func ExampleAll() {
	balance := map[string]*int{"alice": new(int), "bob": new(int)}
	transfer := func(ctx context.Context, from, to string, amount int) error {
		// In whatever order two transfers name their accounts, they never wait
		// for each other in a circle.
		return processlock.WithLock(ctx, processlock.All(from, to), func(ctx context.Context) error {
			*balance[from] -= amount
			*balance[to] += amount
			return nil
		})
	}

	g, ctx := errgroup.WithContext(context.Background())
	for range 100 {
		g.Go(func() error { return transfer(ctx, "alice", "bob", 3) })
		g.Go(func() error { return transfer(ctx, "bob", "alice", 2) })
	}
	err := g.Wait()
	fmt.Println(err, *balance["alice"], *balance["bob"])
	// Output: <nil> -100 100
}

func ExampleDetach() {
	done := make(chan error)
	err := processlock.WithLock(context.Background(), "job", func(ctx context.Context) error {
		// The goroutine outlives fn, so its wait for the same key is none of
		// fn's and no deadlock.
		ctx = processlock.Detach(ctx)
		go func() { done <- processlock.WithLock(ctx, "job", nothing) }()
		return nil
	})
	fmt.Println(err, <-done)
	// Output: <nil> <nil>
}

func ExampleDeadlockError() {
	ctx := context.Background()
	err := processlock.WithLock(ctx, "a", func(ctx context.Context) error {
		return processlock.WithLock(ctx, "a", nothing)
	})
	var deadlock *processlock.DeadlockError
	if errors.As(err, &deadlock) {
		for _, step := range deadlock.Cycle {
			fmt.Println(step.Key, "is held by", step.Func)
		}
	}
	// Output: ["a"] is held by github.com/dbx-tools/processlock_test.ExampleDeadlockError.func1
}

func ExampleAcquireError() {
	err := processlock.WithLock(context.Background(), func() {}, nothing)
	var failed *processlock.AcquireError
	fmt.Println(errors.As(err, &failed), errors.Is(err, processlock.ErrKey))
	fmt.Println(err)
	// Output:
	// true true
	// processlock: key: func() has no stable identity
}

func ExampleWithCoordinator() {
	// All locking below ctx is apart from the rest of the process.
	c := processlock.New(processlock.Options{})
	ctx := processlock.WithCoordinator(context.Background(), c)

	err := processlock.WithLock(context.Background(), "k", func(context.Context) error {
		return processlock.WithLock(ctx, "k", nothing)
	})
	fmt.Println(err, c.Stats().Acquired)
	// Output: <nil> 1
}

func ExampleNew() {
	c := processlock.New(processlock.Options{MaxWaiters: 100, TrackHolds: true})
	err := c.WithLock(context.Background(), "k", func(context.Context) error {
		fmt.Println("held since:", !c.Snapshot().Locks[0].Holders[0].Since.IsZero())
		return nil
	})
	fmt.Println(err)
	// Output:
	// held since: true
	// <nil>
}

func ExampleCoordinator_WithLock() {
	var c processlock.Coordinator // the zero value is ready
	err := c.WithLock(context.Background(), 7, nothing)
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithClient() {
	ctx, client := processlock.WithClient(context.Background(), "importer")
	defer client.Close()

	err := processlock.WithLock(ctx, "table", func(context.Context) error {
		holder := processlock.Default().Snapshot().Locks[0].Holders[0]
		fmt.Println(holder.Client)
		return nil
	})
	fmt.Println(err)
	// Output:
	// importer
	// <nil>
}

func ExampleCoordinator_WithClient() {
	var c processlock.Coordinator
	ctx, client := c.WithClient(context.Background(), "importer")
	defer client.Close()
	fmt.Println(client.Name(), c.WithLock(ctx, "table", nothing))
	// Output: importer <nil>
}

// Closing a client takes away what it holds. Its fn may still run: it sees its
// context end, and its call says that the lock was lost.
func ExampleClient_Close() {
	ctx, client := processlock.WithClient(context.Background(), "worker")
	err := processlock.WithLock(ctx, "k", func(ctx context.Context) error {
		client.Close()
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, processlock.ErrLost))
	fmt.Println(err)
	// Output:
	// true
	// processlock: lock was lost while fn ran: client or coordinator closed
}

func ExampleWorker() {
	g, ctx := errgroup.WithContext(context.Background())
	var done [2]int // by tenant
	for i := range 4 {
		work := processlock.Worker(fmt.Sprintf("worker-%d", i), func(ctx context.Context) error {
			for n := range 10 {
				tenant := n % 2
				err := processlock.WithLock(ctx, []any{"tenant", tenant}, func(context.Context) error {
					done[tenant]++
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		g.Go(func() error { return work(ctx) })
	}
	err := g.Wait()
	fmt.Println(done, err)
	// Output: [20 20] <nil>
}

func ExampleCoordinator_Shutdown() {
	var c processlock.Coordinator
	ctx := context.Background()
	fmt.Println(c.Shutdown(ctx)) // nothing is held
	fmt.Println(c.WithLock(ctx, "k", nothing))
	// Output:
	// <nil>
	// processlock: lock ["k"]: client or coordinator closed
}

func ExampleCoordinator_Snapshot() {
	var c processlock.Coordinator
	err := c.WithLock(context.Background(), []any{"invoice", 7}, func(context.Context) error {
		for _, l := range c.Snapshot().Locks {
			fmt.Println(l.Key, l.Holders[0].Mode, l.Holders[0].Running, len(l.Waiters))
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// ["invoice",7] exclusive true 0
	// <nil>
}

func ExampleCoordinator_Stats() {
	var c processlock.Coordinator
	_ = c.WithLock(context.Background(), "k", func(ctx context.Context) error {
		return c.WithLock(ctx, "k", nothing, processlock.IfAvailable)
	})
	s := c.Stats()
	fmt.Println(s.Acquired, s.Unavailable, s.Held)
	// Output: 1 1 0
}

func ExampleCoordinator_AddHooks() {
	var c processlock.Coordinator
	remove := c.AddHooks(processlock.Hooks{
		Acquired: func(e processlock.Event) { fmt.Println("acquired", e.Key, "for", e.Client) },
		Failed:   func(e processlock.Event) { fmt.Println("failed:", e.Err) },
	})
	defer remove()

	ctx, client := c.WithClient(context.Background(), "importer")
	defer client.Close()
	err := c.WithLock(ctx, "table", func(context.Context) error {
		return c.WithLock(context.Background(), "table", nothing, processlock.IfAvailable)
	})
	fmt.Println(errors.Is(err, processlock.ErrUnavailable))
	// Output:
	// acquired ["table"] for importer
	// failed: processlock: lock ["table"]: not available now
	// true
}

// Options.Logger is told of every wait and every hold that takes too long.
func ExampleOptions() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case "time", "held", "source":
				return slog.Attr{} // not the same each time
			}
			return a
		},
	}))
	c := processlock.New(processlock.Options{SlowHold: time.Millisecond, Logger: logger})
	ctx, client := c.WithClient(context.Background(), "importer")
	defer client.Close()
	_ = c.WithLock(ctx, "table", func(context.Context) error {
		time.Sleep(time.Millisecond)
		return nil
	})
	// Output: level=WARN msg="processlock: slow hold of a lock" key="[\"table\"]" by.client=importer by.func=github.com/dbx-tools/processlock_test.ExampleOptions.func2 queue=0
}

func ExampleAcquireError_LogValue() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	key := processlock.MustKey("invoice", 7)
	err := processlock.WithLock(context.Background(), key, func(context.Context) error {
		return processlock.WithLock(context.Background(), key, nothing, processlock.IfAvailable)
	})
	logger.Info("skipped", "lock", key, "err", err)
	// Output: level=INFO msg=skipped lock="[\"invoice\",7]" err.key="[\"invoice\",7]" err.reason="not available now"
}

func ExampleStats_String() {
	var c processlock.Coordinator
	_ = c.WithLock(context.Background(), "k", nothing)
	fmt.Println(c.Stats())
	// Output: {"held":0,"waiting":0,"acquired":1,"waited":0,"canceled":0,"unavailable":0,"deadlocks":0,"closed":0,"lost":0,"wait_seconds":0}
}

func ExampleKeyOf() {
	type invoice struct {
		Tenant string
		Number int
	}
	for _, v := range []any{"a", []any{"a"}, 7, 7.0, []any{"invoice", 7}, invoice{"acme", 7}} {
		k, err := processlock.KeyOf(v)
		fmt.Println(k, err)
	}
	_, err := processlock.KeyOf("conn", make(chan int))
	fmt.Println(err)
	// Output:
	// ["a"] <nil>
	// ["a"] <nil>
	// [7] <nil>
	// [7] <nil>
	// ["invoice",7] <nil>
	// [{"Number":7,"Tenant":"acme"}] <nil>
	// processlock: key[1]: chan int has no stable identity
}

// A key that is used often is best made once.
func ExampleMustKey() {
	schema := processlock.MustKey("schema-install", "v2")
	fmt.Println(processlock.WithLock(context.Background(), schema, nothing))
	// Output: <nil>
}

// The id is the same in every language and replica.
func ExampleKey_ID() {
	fmt.Println(processlock.MustKey("schema-install").ID())
	fmt.Println(processlock.MustKey("schema-install", "v2").ID())
	// Output:
	// 8391191540082855336
	// -6627415645816226415
}

func ExampleResolve() {
	r, err := processlock.Resolve(processlock.All("b", "a", "b"), processlock.Shared, processlock.MaxWait(time.Second))
	fmt.Println(r.Keys, r.Mode, r.MaxWait, err)
	// Output: [["a"] ["b"]] shared 1s <nil>
}
