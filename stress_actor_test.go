package processlock_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/dbx-tools/processlock"
)

func ctFork(rnd *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64())) }

// ctBy is the way in which a key is asked for.
type ctBy func(h *ctHouse, ctx context.Context, key int, fn func(context.Context) error, opts ...processlock.Option) error

func ctByMethod(h *ctHouse, ctx context.Context, key int, fn func(context.Context) error, opts ...processlock.Option) error {
	return h.c.WithLock(ctx, key, fn, opts...)
}

func ctByKey(h *ctHouse, ctx context.Context, key int, fn func(context.Context) error, opts ...processlock.Option) error {
	return h.c.WithLock(ctx, processlock.MustKey(key), fn, opts...)
}

// ctByPackage expects h's coordinator in ctx, or to be Default's.
func ctByPackage(_ *ctHouse, ctx context.Context, key int, fn func(context.Context) error, opts ...processlock.Option) error {
	return processlock.WithLock(ctx, key, fn, opts...)
}

func ctByValue(_ *ctHouse, ctx context.Context, key int, fn func(context.Context) error, opts ...processlock.Option) error {
	_, err := processlock.WithLockValue(ctx, key, func(ctx context.Context) (int, error) { return 1, fn(ctx) }, opts...)
	return err
}

func (a *ctActor) house() *ctHouse {
	if i := a.rnd.IntN(len(a.houses) + 1); i < len(a.houses) {
		return a.houses[i]
	}
	return a.victim.Load()
}

// lock asks for a random key in a random manner, and for more while it runs.
func (a *ctActor) lock(h *ctHouse, ctx context.Context, by ctBy, depth int) {
	var opts []processlock.Option
	if a.rnd.IntN(3) == 0 {
		opts = append(opts, processlock.Shared)
	}
	if a.rnd.IntN(4) == 0 {
		opts = append(opts, processlock.Reentrant)
	}
	switch a.rnd.IntN(10) {
	case 0:
		opts = append(opts, processlock.IfAvailable)
	case 1:
		opts = append(opts, processlock.MaxWait(time.Duration(a.rnd.IntN(100))*time.Microsecond))
	case 2:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(a.rnd.IntN(100))*time.Microsecond)
		defer cancel()
	case 3:
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		n := a.rnd.IntN(10)
		go func() { ctYield(n); cancel() }()
	case 4:
		ctx = context.WithoutCancel(ctx)
	}
	_ = a.visit(h, ctx, by, a.rnd.IntN(len(h.floors)), opts, func(ctx context.Context) {
		if depth < 3 && a.rnd.IntN(3) == 0 {
			a.lock(a.house(), ctx, ctByMethod, depth+1)
		}
	})
}

// visit asks for a key, and files what became of it.
func (a *ctActor) visit(h *ctHouse, ctx context.Context, by ctBy, key int, opts []processlock.Option, inner func(ctx context.Context)) (err error) {
	mode := processlock.ModeExclusive
	for _, o := range opts {
		if o == processlock.Shared {
			mode = processlock.ModeShared
		}
	}
	entered, reentrant := false, false
	defer func() {
		if r := recover(); r != nil && r != any(a) {
			panic(r)
		}
		h.count(err, entered, reentrant)
	}()
	return by(h, ctx, key, func(fnCtx context.Context) error {
		entered = true
		// Under a hold that is there already, fn is given its caller's context.
		if reentrant = fnCtx == ctx; !reentrant {
			v := a.worker.enter(&h.floors[key], mode)
			defer a.worker.leave(v)
		}
		ctYield(a.rnd.IntN(3))
		if inner != nil {
			inner(fnCtx)
		}
		if !a.calm && a.rnd.IntN(50) == 0 {
			panic(a)
		}
		return nil
	}, opts...)
}
