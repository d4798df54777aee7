package processlock_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// However a call ends, and whatever others do on the key meanwhile, nothing of
// it is left: no entry, no claim, no edge of the wait-for graph.
//
// Rules 8, 15, 19 and 34.
func TestField_D1_NoPathLeavesAnythingOfAKey(t *testing.T) {
	type scene struct {
		t    *testing.T
		c    *processlock.Coordinator
		ctx  context.Context
		key  any
		opts []processlock.Option
	}
	do := func(s scene, fn func(context.Context) error) error {
		return s.c.WithLock(s.ctx, s.key, fn, s.opts...)
	}
	aside := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			f()
		}()
		<-done
	}
	// busy runs f while every key that a scene may use is held.
	busy := func(s scene, mode []processlock.Option, f func()) {
		all := ctHold(s.t, s.c, s.t.Context(), processlock.All("k", "l", "m"), mode...)
		f()
		require.NoError(s.t, all.finish())
	}
	paths := []struct {
		name string
		run  func(s scene)
	}{
		{"return", func(s scene) { require.NoError(s.t, do(s, ctNop)) }},
		{"error", func(s scene) { require.Error(s.t, do(s, func(context.Context) error { return errors.New("why") })) }},
		{"panic", func(s scene) { aside(func() { _ = do(s, func(context.Context) error { panic("boom") }) }) }},
		{"panic(nil)", func(s scene) { aside(func() { _ = do(s, func(context.Context) error { panic(nil) }) }) }},
		{"Goexit", func(s scene) {
			aside(func() { _ = do(s, func(context.Context) error { runtime.Goexit(); return nil }) })
		}},
		{"done context", func(s scene) {
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			s.ctx = ctx
			require.Error(s.t, do(s, ctNever(s.t)))
			busy(s, nil, func() { require.Error(s.t, do(s, ctNever(s.t))) })
		}},
		{"canceled wait", func(s scene) {
			ctx, cancel := context.WithCancel(s.ctx)
			s.ctx = ctx
			busy(s, nil, func() {
				w := ctStart(s.t, s.c, s.ctx, s.key, s.opts...)
				synctest.Wait()
				cancel()
				require.Error(s.t, w.finish())
			})
		}},
		{"canceled with its grant", func(s scene) {
			ctx, cancel := context.WithCancel(s.ctx)
			s.ctx = ctx
			var w *ctCall
			busy(s, nil, func() {
				w = ctStart(s.t, s.c, s.ctx, s.key, s.opts...)
				synctest.Wait()
				cancel()
			})
			_ = w.finish()
		}},
		{"MaxWait", func(s scene) {
			s.opts = append(s.opts, processlock.MaxWait(time.Minute))
			busy(s, nil, func() { require.ErrorIs(s.t, do(s, ctNever(s.t)), processlock.ErrWaitTimeout) })
		}},
		{"failed try", func(s scene) {
			s.opts = append(s.opts, processlock.IfAvailable)
			busy(s, nil, func() { require.ErrorIs(s.t, do(s, ctNever(s.t)), processlock.ErrUnavailable) })
		}},
		{"queue full", func(s scene) {
			busy(s, nil, func() {
				first := ctStart(s.t, s.c, s.t.Context(), "k")
				synctest.Wait()
				second := ctStart(s.t, s.c, s.t.Context(), "k")
				synctest.Wait()
				require.ErrorIs(s.t, second.finish(), processlock.ErrQueueFull)
				go func() { _ = first.finish() }()
			})
			synctest.Wait()
		}},
		{"granted wait", func(s scene) {
			var w *ctCall
			busy(s, nil, func() {
				w = ctStart(s.t, s.c, s.ctx, s.key, s.opts...)
				synctest.Wait()
			})
			require.NoError(s.t, w.finish())
		}},
		{"own deadlock", func(s scene) {
			require.NoError(s.t, do(s, func(ctx context.Context) error {
				s.ctx = ctx
				require.ErrorIs(s.t, s.c.WithLock(ctx, s.key, ctNever(s.t)), processlock.ErrDeadlock)
				return nil
			}))
		}},
		{"cycle", func(s scene) {
			x := ctHold(s.t, s.c, s.ctx, s.key, s.opts...)
			y := ctHold(s.t, s.c, s.ctx, "y")
			w := ctStart(s.t, s.c, x.fnCtx, "y")
			synctest.Wait()
			require.ErrorIs(s.t, s.c.WithLock(y.fnCtx, s.key, ctNever(s.t)), processlock.ErrDeadlock)
			require.NoError(s.t, y.finish())
			require.NoError(s.t, w.finish())
			require.NoError(s.t, x.finish())
		}},
		{"Reentrant", func(s scene) {
			require.NoError(s.t, do(s, func(ctx context.Context) error {
				return s.c.WithLock(ctx, s.key, ctNop, append(s.opts, processlock.Reentrant)...)
			}))
		}},
		{"client closed while it waits", func(s scene) {
			ctx, client := s.c.WithClient(s.ctx, "w")
			busy(s, nil, func() {
				w := ctStart(s.t, s.c, ctx, s.key, s.opts...)
				synctest.Wait()
				client.Close()
				ctRequireClosed(s.t, w.finish())
			})
		}},
		{"client closed while it runs", func(s scene) {
			ctx, client := s.c.WithClient(s.ctx, "w")
			h := ctHold(s.t, s.c, ctx, s.key, s.opts...)
			client.Close()
			require.NoError(s.t, processlock.CTLeft(s.c), "gone before fn has noticed")
			require.ErrorIs(s.t, h.finish(), processlock.ErrLost)
		}},
		{"bad key", func(s scene) {
			for _, key := range []any{math.NaN(), func() {}, []any{"k", processlock.Key{}}, processlock.All("k", make(chan int))} {
				require.ErrorIs(s.t, s.c.WithLock(s.ctx, key, ctNever(s.t), s.opts...), processlock.ErrKey)
			}
		}},
		{"a context that panics in the wait", func(s scene) {
			busy(s, nil, func() {
				aside(func() { _ = s.c.WithLock(ctPanicCtx{s.ctx, s.c}, s.key, ctNever(s.t), s.opts...) })
			})
		}},
		{"beside shared holders", func(s scene) {
			busy(s, []processlock.Option{processlock.Shared}, func() {
				r := ctHold(s.t, s.c, s.ctx, s.key, processlock.Shared)
				require.Error(s.t, s.c.WithLock(s.ctx, s.key, ctNever(s.t), processlock.MaxWait(time.Minute)))
				require.NoError(s.t, r.finish())
			})
		}},
		{"shutdown while it waits", func(s scene) {
			busy(s, nil, func() {
				w := ctStart(s.t, s.c, s.ctx, s.key, s.opts...)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
				defer cancel()
				require.Error(s.t, s.c.Shutdown(ctx))
				ctRequireClosed(s.t, w.finish())
			})
			require.Error(s.t, do(s, ctNever(s.t)))
		}},
	}
	for _, path := range paths {
		for _, row := range []struct {
			name    string
			options processlock.Options
			key     any
			opts    []processlock.Option
		}{
			{"one key", processlock.Options{MaxWaiters: 1}, "k", nil},
			{"shared, TrackHolds", processlock.Options{MaxWaiters: 1, TrackHolds: true}, "k", []processlock.Option{processlock.Shared}},
			{"All", processlock.Options{MaxWaiters: 1}, processlock.All("l", "k", "m", "a"), nil},
		} {
			t.Run(path.name+", "+row.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for _, lineage := range []bool{false, true} {
						c := processlock.New(row.options)
						s := scene{t, c, t.Context(), row.key, row.opts}
						if !lineage {
							path.run(s)
							ctRequireIdle(t, c)
							continue
						}
						var other processlock.Coordinator
						require.NoError(t, other.WithLock(t.Context(), "outer", func(ctx context.Context) error {
							s.ctx = ctx
							path.run(s)
							require.NoError(t, processlock.CTLeft(c))
							return nil
						}))
						ctRequireIdle(t, &other)
					}
				})
			})
		}
	}
}

// ctPanicCtx lets a call begin and panics in its wait.
type ctPanicCtx struct {
	context.Context
	c *processlock.Coordinator
}

func (c ctPanicCtx) Done() <-chan struct{} {
	if c.c.Stats().Waiting > 0 {
		panic("ctPanicCtx")
	}
	return nil
}
