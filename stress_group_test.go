package processlock_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/dbx-tools/processlock"
)

// What the stress does with groups. On the houses, whose sums are exact, no task
// is dropped: one that was granted its key by then is counted though its fn does
// not run. What drops tasks has a coordinator of its own.
func init() {
	add := func(name string, run func(a *ctActor)) {
		ctActions = append(ctActions, struct {
			name string
			run  func(a *ctActor)
		}{name, run})
	}
	add("Group.GoLocked", func(a *ctActor) {
		h := a.houses[a.rnd.IntN(len(a.houses))]
		g, _ := processlock.NewGroup(processlock.WithCoordinator(context.Background(), h.c), "g")
		g.SetLimit(a.rnd.IntN(4))
		for range 1 + a.rnd.IntN(6) {
			var opts []processlock.Option
			switch a.rnd.IntN(6) {
			case 0:
				opts = append(opts, processlock.IfAvailable)
			case 1:
				opts = append(opts, processlock.MaxWait(1000))
			}
			mode := processlock.ModeExclusive
			if a.rnd.IntN(3) == 0 {
				mode = processlock.ModeShared
				opts = append(opts, processlock.Shared)
			}
			key, b := a.rnd.IntN(len(h.floors)), a.task()
			g.GoLocked(key, func(ctx context.Context) error {
				h.entered.Add(1)
				defer b.worker.leave(b.worker.enter(&h.floors[key], mode))
				ctYield(b.rnd.IntN(3))
				if b.rnd.IntN(3) == 0 {
					b.lock(b.house(), ctx, ctByMethod, 2)
				}
				return nil
			}, opts...)
		}
		a.waits(g, nil)
		h.unavailable.Add(int64(g.Skipped()))
	})
	add("Group.Go", func(a *ctActor) {
		g, _ := processlock.NewGroup(context.Background(), "g")
		g.SetLimit(1 + a.rnd.IntN(2))
		for range 1 + a.rnd.IntN(4) {
			b := a.task()
			g.Go(func(ctx context.Context) error {
				b.lock(b.house(), ctx, ctByMethod, 0)
				return nil
			})
		}
		a.waits(g, nil)
	})
	add("Group.SetLimit", func(a *ctActor) {
		limit := 1 + a.rnd.IntN(3)
		g, _ := processlock.NewGroup(context.Background(), "g")
		g.SetLimit(limit)
		var running atomic.Int64
		for range 8 {
			n := a.rnd.IntN(3)
			g.Go(func(context.Context) error {
				defer running.Add(-1)
				if r := running.Add(1); r > int64(limit) {
					a.t.Errorf("%d tasks run, limit %d", r, limit)
				}
				ctYield(n)
				return nil
			})
		}
		a.waits(g, nil)
	})
	add("Group.Skipped", func(a *ctActor) {
		c := processlock.New(processlock.Options{})
		_ = c.WithLock(context.Background(), "k", func(ctx context.Context) error {
			g, _ := processlock.NewGroup(processlock.WithCoordinator(context.Background(), c), "g")
			for range 3 {
				g.GoLocked("k", ctNop, processlock.IfAvailable)
			}
			if a.waits(g, nil); g.Skipped() != 3 {
				a.t.Errorf("skipped %d", g.Skipped())
			}
			return nil
		})
	})
	add("Group.Wait", func(a *ctActor) {
		// One fails, and the others are dropped or not.
		c := processlock.New(processlock.Options{})
		g, _ := processlock.NewGroup(processlock.WithCoordinator(context.Background(), c), "g")
		g.SetLimit(a.rnd.IntN(3))
		bad := a.rnd.IntN(10)
		for i := range 10 {
			key := any(i % 3)
			if i%4 == 0 {
				key = processlock.All(i%3, "k", i%2)
			}
			g.GoLocked(key, func(context.Context) error {
				if i == bad {
					return errCtTask
				}
				return nil
			})
		}
		a.waits(g, errCtTask)
		if s := c.Stats(); s.Held != 0 || s.Waiting != 0 {
			a.t.Errorf("the group left %+v", s)
		}
	})
	add("NewGroup", func(a *ctActor) {
		// Inside fn, under a client that is closed at some time.
		c := processlock.New(processlock.Options{})
		ctx, client := c.WithClient(processlock.WithCoordinator(context.Background(), c), "outer")
		n, over := a.rnd.IntN(20), make(chan struct{})
		go func() {
			defer close(over)
			ctYield(n)
			client.Close()
		}()
		_ = c.WithLock(ctx, "outer", func(ctx context.Context) error {
			g, _ := processlock.NewGroup(ctx, "g")
			g.SetLimit(1)
			for i := range 6 {
				g.GoLocked(i%2, func(ctx context.Context) error {
					return processlock.WithLock(ctx, 2, ctNop)
				})
			}
			a.waits(g, nil, processlock.ErrClosed)
			return nil
		})
		<-over
		if s := c.Stats(); s.Held != 0 || s.Waiting != 0 {
			a.t.Errorf("the group left %+v", s)
		}
	})
}

var errCtTask = errors.New("ct: task failed")

// task returns an actor for a task of a's, which runs beside a.
func (a *ctActor) task() *ctActor {
	b := *a
	b.rnd, b.calm, b.worker = ctFork(a.rnd), true, &ctWorker{on: make(map[*ctVisit]bool)}
	return &b
}

// waits waits for g, whose error is to be one of want.
func (a *ctActor) waits(g *processlock.Group, want ...error) {
	err := g.Wait()
	if !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		a.t.Errorf("Wait: %v, want %v", err, want)
	}
}
