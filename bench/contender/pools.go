package contender

import (
	"context"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/panjf2000/ants/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Pool runs tasks that need a key each.
type Pool interface {
	// Go adds a task that runs while it holds key. It may block until one that
	// runs has ended.
	Go(key string, fn func(context.Context) error)
	// Wait returns when all have run. Then the pool has been used up.
	Wait()
}

// PoolContender is an implementation, with the guarantees of its queue of tasks.
type PoolContender struct {
	Name string
	Kind Kind
	Guarantees
	New func(ctx context.Context, limit int) Pool
}

// Pools are the library's own, and what it takes to lock inside the tasks of
// others. All lock with processlock, so what differs is where a task waits.
func Pools() []PoolContender {
	return []PoolContender{
		{"processlock", Ours, promises, func(ctx context.Context, limit int) Pool {
			g, _ := processlock.NewGroup(ctx, "pool")
			g.SetLimit(limit)
			return group{g}
		}},
		{"errgroup+WithLock+Weighted", Baseline, inside("a goroutine a task, a slot within the lock"), func(ctx context.Context, limit int) Pool {
			return newErrgroup(ctx, semaphore.NewWeighted(int64(limit)))
		}},
		{"errgroup+WithLock", Rival, inside("a goroutine a task, no limit"), func(ctx context.Context, limit int) Pool {
			return newErrgroup(ctx, nil)
		}},
		{"errgroup.SetLimit+WithLock", Rival, inside("Go blocks at the limit"), func(ctx context.Context, limit int) Pool {
			p := newErrgroup(ctx, nil)
			p.g.SetLimit(limit)
			return p
		}},
		{"ants+WithLock", Rival, inside("Submit blocks at the limit"), func(ctx context.Context, limit int) Pool {
			workers, err := ants.NewPool(limit)
			if err != nil {
				panic(err)
			}
			return &antsPool{ctx: ctx, workers: workers}
		}},
	}
}

// inside is what a lock taken by the task itself guarantees: it has no part in
// which task asks for it first.
func inside(note string) Guarantees {
	g := promises
	g.FIFO, g.Note = false, note
	return g
}

type group struct{ g *processlock.Group }

func (p group) Go(key string, fn func(context.Context) error) { p.g.GoLocked(key, fn) }
func (p group) Wait()                                         { _ = p.g.Wait() }

type errgroupPool struct {
	g     *errgroup.Group
	ctx   context.Context
	slots *semaphore.Weighted // or nil
}

func newErrgroup(ctx context.Context, slots *semaphore.Weighted) *errgroupPool {
	g, ctx := errgroup.WithContext(ctx)
	return &errgroupPool{g, ctx, slots}
}

func (p *errgroupPool) Go(key string, fn func(context.Context) error) {
	p.g.Go(func() error {
		if p.slots == nil {
			return processlock.WithLock(p.ctx, key, fn)
		}
		return processlock.WithLock(p.ctx, key, func(ctx context.Context) error {
			if err := p.slots.Acquire(ctx, 1); err != nil {
				return err
			}
			defer p.slots.Release(1)
			return fn(ctx)
		})
	})
}

func (p *errgroupPool) Wait() { _ = p.g.Wait() }

type antsPool struct {
	ctx     context.Context
	workers *ants.Pool
	all     sync.WaitGroup
}

func (p *antsPool) Go(key string, fn func(context.Context) error) {
	p.all.Add(1)
	err := p.workers.Submit(func() {
		defer p.all.Done()
		_ = processlock.WithLock(p.ctx, key, fn)
	})
	if err != nil { // closed, or out of workers, which it waits for
		panic(err)
	}
}

func (p *antsPool) Wait() {
	p.all.Wait()
	if err := p.workers.ReleaseTimeout(time.Minute); err != nil {
		panic(err)
	}
}
