package processlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Rule 1.
func TestOneExclusiveHolderAtATime(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx := t.Context()
		first := ltGo(ctx, c, "k")
		second := ltGo(ctx, c, "k")
		assert.Equal(t, []string{"runs", "waits"}, ltStates(first, second))
		first.open()
		assert.Equal(t, []string{"over", "runs"}, ltStates(first, second))
		second.open()
		ltServed(t, first)
		ltServed(t, second)
	})
}

// The entry of the key comes and goes all the time, and a look-up must never
// find one that has left the table or serves another key by now.
//
// Rule 1.
func TestExclusionWhileEntriesComeAndGo(t *testing.T) {
	c := processlock.New(processlock.Options{})
	keys := []any{"a", 1, []any{"a", 1}}
	inside := make([]ltInside, len(keys))
	counts := make([]int, len(keys)) // guarded by the lock under test
	const goroutines, rounds = 8, 1500
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				k := (i + g) % len(keys)
				err := c.WithLock(context.Background(), keys[k], func(context.Context) error {
					defer inside[k].enter(false)()
					counts[k]++
					return nil
				})
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	for k := range keys {
		assert.False(t, inside[k].broken.Load(), "two were inside %v", keys[k])
		assert.Equal(t, goroutines*rounds/len(keys), counts[k], "lost updates under %v", keys[k])
	}
	ltIdle(t, c)
}

// Thousands of keys share 64 shards, so most of these pairs are neighbours of
// some kind; IfAvailable would report the first that stand in each other's way.
//
// Rule 2.
func TestAnyTwoKeysCanBeNested(t *testing.T) {
	c := processlock.New(processlock.Options{})
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		a, b := r.IntN(1000), r.IntN(1000)
		if a == b {
			continue
		}
		err := c.WithLock(context.Background(), a, func(ctx context.Context) error {
			return c.WithLock(ctx, b, ltNop, processlock.IfAvailable)
		})
		require.NoError(t, err, "%d around %d", a, b)
	}
	ltIdle(t, c)
}

// Rule 2.
func TestManyKeysAreHeldAtOnce(t *testing.T) {
	c := processlock.New(processlock.Options{})
	keys := []any{"", "1", 1, -1, "int", []any{1, 1}, []any{"1", 1}, []byte("1"), true, struct{ A int }{1}}
	for i := range 500 {
		keys = append(keys, []any{"row", i})
	}
	var nest func(ctx context.Context, depth int) error
	nest = func(ctx context.Context, depth int) error {
		if depth == len(keys) {
			assert.Equal(t, int64(len(keys)), c.Stats().Held)
			return nil
		}
		return c.WithLock(ctx, keys[depth], func(ctx context.Context) error {
			return nest(ctx, depth+1)
		}, processlock.IfAvailable)
	}
	require.NoError(t, nest(context.Background(), 0))
	ltIdle(t, c)
}

// A method locks in its own coordinator, a function in the one that the context
// carries, whichever client or hold is around.
//
// Rules 2 and 24.
func TestWhichCoordinatorLocks(t *testing.T) {
	c, other := processlock.New(processlock.Options{}), processlock.New(processlock.Options{})
	held := func(in *processlock.Coordinator) func(context.Context) error {
		return func(context.Context) error {
			assert.False(t, ltFree(in, "k"))
			for _, o := range []*processlock.Coordinator{c, other, processlock.Default()} {
				assert.Equal(t, o != in, ltFree(o, "k"))
			}
			return nil
		}
	}
	ctx := context.Background()
	assert.NoError(t, processlock.WithLock(ctx, "k", held(processlock.Default())))
	ctx = processlock.WithCoordinator(ctx, other)
	assert.NoError(t, processlock.WithLock(ctx, "k", held(other)))
	assert.NoError(t, c.WithLock(ctx, "k", held(c)))
	assert.NoError(t, processlock.WithLock(processlock.WithCoordinator(ctx, c), "k", held(c)))
	named, cl := c.WithClient(ctx, "names a worker, moves no lock")
	defer cl.Close()
	assert.NoError(t, processlock.WithLock(named, "k", held(other)))
	assert.NoError(t, c.WithLock(ctx, "outer", func(ctx context.Context) error {
		return processlock.WithLock(ctx, "k", held(other))
	}))
}

// Rule 3.
func TestGrantsFollowArrival(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k")
		var order []int // guarded by the lock under test
		calls := make([]*ltCall, 50)
		for i := range calls {
			calls[i] = ltGoLast(t.Context(), c, "k", func(context.Context) error {
				order = append(order, i)
				return nil
			})
			close(calls[i].gate)
		}
		holder.open()
		want := make([]int, len(calls))
		for i := range want {
			want[i] = i
			ltServed(t, calls[i])
		}
		assert.Equal(t, want, order)
	})
}

// The releaser's very next step finds the key taken, though the waiter may not
// have been scheduled yet.
//
// Rule 3.
func TestReleaseHandsOverToTheQueue(t *testing.T) {
	for range 100 {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			release := make(chan struct{})
			var try, again error
			greedy := &ltCall{gate: make(chan struct{}), last: ltNop}
			go greedy.run(func() error {
				err := c.WithLock(t.Context(), "k", func(context.Context) error {
					<-release
					return nil
				})
				try = c.WithLock(t.Context(), "k", ltNop, processlock.IfAvailable)
				again = c.WithLock(t.Context(), "k", greedy.fn)
				return err
			})
			waiters := []*ltCall{ltGo(t.Context(), c, "k"), ltGo(t.Context(), c, "k")}
			close(release)
			for _, w := range waiters {
				w.open()
				ltServed(t, w)
			}
			assert.ErrorIs(t, try, processlock.ErrUnavailable)
			assert.Equal(t, "runs", greedy.state(), "after the two that waited")
			greedy.open()
			assert.NoError(t, again)
		})
	}
}

func ltGoroutine() string {
	buf := make([]byte, 64)
	text := string(buf[:runtime.Stack(buf, false)])
	id, _, _ := strings.Cut(strings.TrimPrefix(text, "goroutine "), " ")
	return id
}

// Rule 6.
func TestFnRunsOnTheCallersGoroutine(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var ran []string
		note := func(context.Context) error {
			ran = append(ran, ltGoroutine())
			return nil
		}
		holder := ltGo(t.Context(), c, "busy")
		var caller string
		go func() {
			caller = ltGoroutine()
			ctx := processlock.WithCoordinator(t.Context(), c)
			assert.NoError(t, c.WithLock(ctx, "free", note))
			assert.NoError(t, c.WithLock(ctx, "busy", note))
			assert.NoError(t, c.WithLock(ctx, processlock.All("a", "b"), note))
			assert.NoError(t, processlock.WithLock(ctx, "free", note))
			_, err := processlock.WithLockValue(ctx, "free", func(ctx context.Context) (int, error) {
				return 0, processlock.WithLock(ctx, "free", note, processlock.Reentrant)
			})
			assert.NoError(t, err)
		}()
		holder.open()
		assert.Equal(t, []string{caller, caller, caller, caller, caller}, ran)
	})
}

// The race detector is the judge: nothing but the lock orders the accesses.
//
// Rule 7.
func TestHoldsAreOrderedInMemory(t *testing.T) {
	c := processlock.New(processlock.Options{})
	var value [2]int
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				assert.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error {
					value[0]++
					value[1]++
					return nil
				}))
				assert.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error {
					if value[0] != value[1] {
						return errors.New("half a write was seen")
					}
					return nil
				}, processlock.Shared))
			}
		})
	}
	wg.Wait()
	assert.Equal(t, [2]int{2000, 2000}, value)
	ltIdle(t, c)
}

// Each shared holder writes its own variable and the exclusive one that follows
// reads all: the end of every shared hold must be seen, not of the last alone.
//
// Rule 7.
func TestSharedHoldsAreOrderedBeforeTheExclusive(t *testing.T) {
	c := processlock.New(processlock.Options{})
	for range 200 {
		var written [4]int
		var wg, inside sync.WaitGroup
		inside.Add(len(written))
		for i := range written {
			wg.Go(func() {
				assert.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error {
					inside.Done()
					written[i] = 1
					return nil
				}, processlock.Shared))
			})
		}
		inside.Wait()
		assert.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error {
			assert.Equal(t, [4]int{1, 1, 1, 1}, written)
			return nil
		}))
		wg.Wait()
	}
	ltIdle(t, c)
}
