package processlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dbx-tools/processlock"
)

// ctActions are what the stress does, each named after what it is there for.
var ctActions []struct {
	name string
	run  func(a *ctActor)
}

func init() {
	add := func(name string, run func(a *ctActor)) {
		ctActions = append(ctActions, struct {
			name string
			run  func(a *ctActor)
		}{name, run})
	}
	add("WithLock", func(a *ctActor) {
		h := a.house()
		a.lock(h, processlock.WithCoordinator(a.worker.ctx, h.c), ctByPackage, 0)
	})
	add("WithLockValue", func(a *ctActor) {
		h := a.house()
		a.lock(h, processlock.WithCoordinator(a.worker.ctx, h.c), ctByValue, 0)
	})
	add("Coordinator.WithLock", func(a *ctActor) { a.lock(a.house(), a.worker.ctx, ctByMethod, 0) })
	add("Default", func(a *ctActor) { a.lock(a.houses[len(a.houses)-1], a.worker.ctx, ctByPackage, 0) })
	add("WithCoordinator", func(a *ctActor) {
		h := a.victim.Load()
		a.lock(h, processlock.WithCoordinator(a.worker.ctx, h.c), ctByPackage, 0)
	})
	add("New", func(a *ctActor) {
		h := ctNewHouse(processlock.New(processlock.Options{MaxWaiters: a.rnd.IntN(3), TrackHolds: true}))
		a.lock(h, a.worker.ctx, ctByMethod, 0)
	})
	add("Configure", func(a *ctActor) {
		_ = processlock.WithLock(context.Background(), "ct configure", ctNop)
		a.houses[len(a.houses)-1].entered.Add(1)
		defer func() {
			if recover() == nil {
				a.t.Error("Configure after use did not panic")
			}
		}()
		processlock.Configure(processlock.Options{})
	})
	add("Coordinator.Shutdown", func(a *ctActor) {
		if a.rnd.IntN(20) > 0 {
			return
		}
		old := a.victim.Swap(ctNewHouse(&processlock.Coordinator{}))
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(a.rnd.IntN(500))*time.Microsecond)
		defer cancel()
		_ = old.c.Shutdown(ctx)
		if err := old.c.Shutdown(context.Background()); err != nil {
			a.t.Errorf("Shutdown: %v", err)
		}
		if s := old.c.Stats(); s.Held != 0 || s.Waiting != 0 {
			a.t.Errorf("left after Shutdown: %+v", s)
		}
	})
	add("Coordinator.Snapshot", func(a *ctActor) {
		for _, l := range a.house().c.Snapshot().Locks {
			if len(l.Holders) == 0 || l.Waiters == nil {
				a.t.Errorf("a row without holders: %+v", l)
			}
			exclusive := 0
			for _, h := range l.Holders {
				if h.Mode == processlock.ModeExclusive {
					exclusive++
				}
			}
			if exclusive > 0 && len(l.Holders) > 1 {
				a.t.Errorf("an exclusive holder beside others: %+v", l)
			}
		}
	})
	add("Coordinator.Stats", func(a *ctActor) {
		if s := a.house().c.Stats(); s.Held < 0 || s.Waiting < 0 || s.WaitDuration < 0 {
			a.t.Errorf("%+v", s)
		}
	})
	add("Coordinator.AddHooks", func(a *ctActor) {
		h := a.house()
		check := func(e processlock.Event) {
			if e.Key == (processlock.Key{}) || e.Func == "" || e.Waited < 0 || e.Held < 0 {
				a.t.Errorf("%+v", e)
			}
		}
		defer h.c.AddHooks(processlock.Hooks{Waiting: check, Acquired: check, Released: check, Failed: check})()
		a.lock(h, a.worker.ctx, ctByMethod, 0)
	})
	add("Coordinator.WithClient", func(a *ctActor) {
		a.worker.kill()
		a.worker = ctNewWorker(a.house().c, context.Background())
	})
	add("WithClient", func(a *ctActor) {
		h := a.house()
		ctx, client := processlock.WithClient(processlock.WithCoordinator(a.worker.ctx, h.c), "inner")
		defer client.Close()
		entered := false
		err := h.c.WithLock(ctx, "ct elsewhere", func(context.Context) error { entered = true; return nil },
			processlock.IfAvailable, processlock.Shared)
		h.count(err, entered, false)
	})
	add("Client.Name", func(a *ctActor) {
		if n := a.worker.client.Name(); n != "w" {
			a.t.Errorf("name %q", n)
		}
	})
	add("Client.Close", func(a *ctActor) {
		// While a call of the worker's is on its way.
		w, over := a.worker, make(chan struct{})
		b := *a
		b.rnd, b.calm = ctFork(a.rnd), true
		go func() {
			defer close(over)
			b.lock(b.house(), w.ctx, ctByMethod, 0)
		}()
		ctYield(a.rnd.IntN(10))
		w.kill()
		<-over
		a.worker = nil
	})
	add("Worker", func(a *ctActor) {
		c := processlock.New(processlock.Options{})
		err := processlock.Worker("inner", func(ctx context.Context) error {
			return processlock.WithLock(ctx, "k", ctNop)
		})(processlock.WithCoordinator(context.Background(), c))
		if err != nil {
			a.t.Error(err)
		}
	})
	add("Detach", func(a *ctActor) {
		h := a.house()
		_ = a.visit(h, a.worker.ctx, ctByMethod, a.rnd.IntN(len(h.floors)), nil, func(ctx context.Context) {
			// Not its own lineage's, so it waits, and must not for long.
			key := a.rnd.IntN(len(h.floors))
			_ = a.visit(h, processlock.Detach(ctx), ctByMethod, key,
				[]processlock.Option{processlock.MaxWait(50 * time.Microsecond)}, nil)
		})
	})
	add("MaxWait", func(a *ctActor) {
		h, d := a.house(), time.Duration(a.rnd.IntN(200)-20)*time.Microsecond
		_ = a.visit(h, a.worker.ctx, ctByMethod, a.rnd.IntN(len(h.floors)), []processlock.Option{processlock.MaxWait(d)}, nil)
	})
	add("All", func(a *ctActor) {
		c := processlock.New(processlock.Options{})
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = c.WithLock(context.Background(), processlock.All(1, 2, 3), ctNop)
		}()
		_ = c.WithLock(a.worker.ctx, processlock.All(3, 2, 5), ctNop)
		<-over
		if s := c.Stats(); s.Held != 0 || s.Waiting != 0 {
			a.t.Errorf("All left %+v", s)
		}
	})
	add("Resolve", func(a *ctActor) {
		r, err := processlock.Resolve(processlock.All("b", "a"), processlock.Shared, processlock.MaxWait(1))
		if err != nil || len(r.Keys) != 2 || r.Mode != processlock.ModeShared {
			a.t.Errorf("%+v, %v", r, err)
		}
	})
	add("KeyOf", func(a *ctActor) {
		k, err := processlock.KeyOf("k", a.rnd.IntN(3))
		if err != nil || k == (processlock.Key{}) {
			a.t.Error(err)
		}
	})
	add("MustKey", func(a *ctActor) {
		h, i := a.house(), a.rnd.IntN(len(a.houses[0].floors))
		_ = a.visit(h, a.worker.ctx, ctByKey, i, nil, nil)
	})
	add("Key.Canonical", func(a *ctActor) { ctSame(a, processlock.MustKey("k", 7).Canonical()) })
	add("Key.String", func(a *ctActor) { ctSame(a, processlock.MustKey("k", 7).String()) })
	add("Key.ID", func(a *ctActor) {
		if processlock.MustKey(7).ID() != processlock.MustKey(7.0).ID() {
			a.t.Error("one key, two ids")
		}
	})
	add("Key.LogValue", func(a *ctActor) { ctSame(a, processlock.MustKey("k", 7).LogValue().String()) })
	add("Stats.String", func(a *ctActor) {
		if text := a.house().c.Stats().String(); !json.Valid([]byte(text)) {
			a.t.Error(text)
		}
	})
	add("Mode.String", func(a *ctActor) { ctSame(a, processlock.ModeShared.String()) })
	add("Mode.MarshalText", func(a *ctActor) {
		b, err := processlock.ModeExclusive.MarshalText()
		ctSame(a, string(b))
		if err != nil {
			a.t.Error(err)
		}
	})
	add("AcquireError.Error", func(a *ctActor) { ctSame(a, ctRefused(a).Error()) })
	add("AcquireError.Unwrap", func(a *ctActor) {
		if ctRefused(a).Unwrap() == nil {
			a.t.Error("no reason")
		}
	})
	add("AcquireError.Timeout", func(a *ctActor) {
		if ctRefused(a).Timeout() {
			a.t.Error("no time ran out")
		}
	})
	add("AcquireError.LogValue", func(a *ctActor) { ctSame(a, ctRefused(a).LogValue().String()) })
	add("DeadlockError.LogValue", func(a *ctActor) { ctSame(a, ctDeadlock(a).LogValue().String()) })
	add("DeadlockError.Error", func(a *ctActor) { ctSame(a, ctDeadlock(a).Error()) })
	add("DeadlockError.Unwrap", func(a *ctActor) {
		if ctDeadlock(a).Unwrap() != processlock.ErrDeadlock {
			a.t.Error("not ErrDeadlock")
		}
	})
}

func ctSame(a *ctActor, text string) {
	if text == "" {
		a.t.Error("no text")
	}
}

func ctRefused(a *ctActor) *processlock.AcquireError {
	var c processlock.Coordinator
	ae := &processlock.AcquireError{}
	err := c.WithLock(context.Background(), "k", func(ctx context.Context) error {
		return c.WithLock(ctx, "k", ctNop, processlock.IfAvailable)
	})
	if !errors.As(err, &ae) {
		a.t.Errorf("not refused: %v", err)
	}
	return ae
}

func ctDeadlock(a *ctActor) *processlock.DeadlockError {
	var c processlock.Coordinator
	de := &processlock.DeadlockError{}
	err := c.WithLock(context.Background(), "k", func(ctx context.Context) error {
		return c.WithLock(ctx, "k", ctNop)
	})
	if !errors.As(err, &de) {
		a.t.Errorf("no deadlock: %v", err)
	}
	return de
}
