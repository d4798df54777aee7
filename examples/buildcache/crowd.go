package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dbx-tools/processlock"
)

// crowd is the workers and what they have done so far.
type crowd struct {
	config
	tree    fs.FS
	store   *cache
	folders []string

	requests atomic.Int64
	built    atomic.Int64
	building atomic.Int64
	peak     atomic.Int64   // the most at one time
	builds   []atomic.Int64 // by folder
	longest  []wait         // by worker, each written by that worker only
}

// wait is how long a worker waited for a folder's lock.
type wait struct {
	time   time.Duration
	folder string
}

func newCrowd(cfg config, tree fs.FS, store *cache, folders []string) *crowd {
	return &crowd{
		config:  cfg,
		tree:    tree,
		store:   store,
		folders: folders,
		builds:  make([]atomic.Int64, len(folders)),
		longest: make([]wait, cfg.workers),
	}
}

// run returns when every worker has every artifact, or with the first error.
func (c *crowd) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for n := range c.workers {
		worker := processlock.Worker(fmt.Sprintf("worker-%d", n+1), func(ctx context.Context) error {
			return c.ask(ctx, n)
		})
		g.Go(func() error { return worker(ctx) })
	}
	return g.Wait()
}

// ask is the work of worker n: to request each folder in each round.
func (c *crowd) ask(ctx context.Context, n int) error {
	random := rand.New(rand.NewPCG(c.seed, uint64(n)))
	for range c.rounds {
		for _, i := range random.Perm(len(c.folders)) {
			waited, err := c.request(ctx, i)
			if err != nil {
				return err
			}
			if waited > c.longest[n].time {
				c.longest[n] = wait{waited, c.folders[i]}
			}
			c.requests.Add(1)
		}
	}
	return nil
}

// request sees to it that the i-th folder's artifact is in the cache, and
// returns how long it waited for its turn.
func (c *crowd) request(ctx context.Context, i int) (waited time.Duration, err error) {
	folder := c.folders[i]
	if c.nolock {
		return 0, c.checkThenBuild(ctx, i)
	}
	start := time.Now()
	err = processlock.WithLock(ctx, []any{"cache", folder}, func(ctx context.Context) error {
		waited = time.Since(start)
		return c.checkThenBuild(ctx, i)
	})
	return waited, err
}

// checkThenBuild is right only if nobody else does the same for this folder
// between its check and its build.
func (c *crowd) checkThenBuild(ctx context.Context, i int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	folder := c.folders[i]
	there, err := c.store.has(folder)
	if err != nil {
		return fmt.Errorf("looking for the artifact of %s: %w", folder, err)
	}
	if there {
		return nil
	}

	raise(&c.peak, c.building.Add(1))
	defer c.building.Add(-1)
	if err := c.store.build(ctx, c.tree, folder); err != nil {
		return fmt.Errorf("building the artifact of %s: %w", folder, err)
	}
	c.builds[i].Add(1)
	c.built.Add(1)
	return nil
}

// raise sets m to n if that is more.
func raise(m *atomic.Int64, n int64) {
	for old := m.Load(); n > old && !m.CompareAndSwap(old, n); old = m.Load() {
	}
}

// progress is the line to show while the workers run.
func (c *crowd) progress() string {
	total := int64(c.workers) * int64(c.rounds) * int64(len(c.folders))
	return fmt.Sprintf("%s builds of %s folders, %s of %s requests, %d building",
		thousands(c.built.Load()), thousands(int64(len(c.folders))),
		thousands(c.requests.Load()), thousands(total), c.building.Load())
}
