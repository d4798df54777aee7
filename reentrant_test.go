package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// Held in one mode, asked for in another, by the same lineage: with Reentrant,
// without, and when nothing may be waited for. With an exclusive in the queue
// only Reentrant can let a shared request in.
//
// Rules 19, 22 and 30.
func TestAskingForOnesOwnKey(t *testing.T) {
	deadlock, unavailable := processlock.ErrDeadlock, processlock.ErrUnavailable
	rows := []struct {
		outer, inner byte
		queued       bool
		plain        error
		reentrant    error
		try          error
		reentrantTry error
	}{
		{'X', 'X', false, deadlock, nil, unavailable, nil},
		{'X', 'S', false, deadlock, nil, unavailable, nil},
		{'X', 'X', true, deadlock, nil, unavailable, nil},
		{'X', 'S', true, deadlock, nil, unavailable, nil},
		{'S', 'S', false, nil, nil, nil, nil},
		{'S', 'S', true, deadlock, nil, unavailable, nil},
		{'S', 'X', false, deadlock, deadlock, unavailable, unavailable},
		{'S', 'X', true, deadlock, deadlock, unavailable, unavailable},
	}
	for _, row := range rows {
		name := string([]byte{row.outer, row.inner})
		if row.queued {
			name += " queued"
		}
		t.Run(name, func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				outer := ltGo(t.Context(), c, "k", ltMode(row.outer)...)
				var queued *ltCall
				if row.queued {
					queued = ltGo(t.Context(), c, "k")
				}
				for _, ask := range []struct {
					name string
					opts []processlock.Option
					want error
				}{
					{"plain", nil, row.plain},
					{"MaxWait", []processlock.Option{processlock.MaxWait(time.Hour)}, row.plain},
					{"Reentrant", []processlock.Option{processlock.Reentrant}, row.reentrant},
					{"Reentrant, MaxWait", []processlock.Option{processlock.Reentrant, processlock.MaxWait(time.Hour)}, row.reentrant},
					{"IfAvailable", []processlock.Option{processlock.IfAvailable}, row.try},
					{"Reentrant, IfAvailable", []processlock.Option{processlock.Reentrant, processlock.IfAvailable}, row.reentrantTry},
				} {
					for _, key := range []any{"k", processlock.All("j", "k")} {
						ran := false
						err := c.WithLock(outer.ctx, key, func(context.Context) error {
							ran = true
							return nil
						}, append(ltMode(row.inner), ask.opts...)...)
						assert.Equal(t, ask.want == nil, ran, "%s, %T: fn ran", ask.name, key)
						assert.ErrorIs(t, err, ask.want, "%s, %T", ask.name, key)
						assert.Equal(t, "runs", outer.state())
						if queued != nil {
							assert.Equal(t, "waits", queued.state(), "%s, %T: the inner call released the key", ask.name, key)
						}
					}
				}
				assert.True(t, ltFree(c, "j"))
				outer.open()
				ltServed(t, outer)
				if queued != nil {
					queued.open()
					ltServed(t, queued)
				}
			})
		})
	}
}

// Rules 22 and 41.
func TestReentrantRunsUnderTheHoldThatIsThere(t *testing.T) {
	for _, mode := range []byte("XS") {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			outer := ltGo(t.Context(), c, "k", ltMode(mode)...)
			inner := ltGo(outer.ctx, c, "k", append(ltMode(mode), processlock.Reentrant)...)
			innermost := ltGo(inner.ctx, c, "k", append(ltMode(mode), processlock.Reentrant)...)
			assert.Equal(t, "runs", innermost.state())
			assert.Len(t, c.Snapshot().Locks[0].Holders, 1)
			assert.Equal(t, int64(1), c.Stats().Held)
			assert.Equal(t, int64(3), c.Stats().Acquired)
			innermost.open()
			inner.open()
			assert.False(t, ltFree(c, "k"))
			outer.open()
			assert.True(t, ltFree(c, "k"))
		})
	}
}

// Two goroutines of one fn, both inside by Reentrant, run together; whoever
// waits outside sees neither in.
//
// Rule 22.
func TestReentrantCallsUnderOneHoldRunTogether(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		outer := ltGo(t.Context(), c, "k")
		outside := ltGo(t.Context(), c, "k")
		one := ltGo(outer.ctx, c, "k", processlock.Reentrant)
		two := ltGo(outer.ctx, c, "k", processlock.Reentrant)
		assert.Equal(t, []string{"runs", "runs", "waits"}, ltStates(one, two, outside))
		one.open()
		two.open()
		assert.Equal(t, "waits", outside.state())
		outer.open()
		outside.open()
		ltServed(t, outside)
	})
}

// Rule 22.
func TestReentrantWithoutAHoldQueuesLikeAnyOther(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		assert.NoError(t, c.WithLock(t.Context(), "k", ltNop, processlock.Reentrant))
		holder, mine := ltGo(t.Context(), c, "k"), ltGo(t.Context(), c, "mine")
		waiters := []*ltCall{
			ltGo(t.Context(), c, "k", processlock.Reentrant),
			ltGo(mine.ctx, c, "k", processlock.Reentrant), // holds another key
		}
		assert.Equal(t, []string{"waits", "waits"}, ltStates(waiters...))
		assert.ErrorIs(t, c.WithLock(mine.ctx, "k", ltNop, processlock.Reentrant, processlock.IfAvailable), processlock.ErrUnavailable)
		holder.open()
		assert.Equal(t, []string{"runs", "waits"}, ltStates(waiters...))
		assert.False(t, ltFree(c, "k"), "Reentrant took no lock")
		for _, call := range append(waiters, mine) {
			call.open()
			ltServed(t, call)
		}
	})
}

// The same key in another coordinator is another lock.
//
// Rule 22.
func TestReentrantAsksItsOwnCoordinator(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		other := processlock.New(processlock.Options{})
		holder := ltGo(t.Context(), other, "k")
		mine := ltGo(t.Context(), c, "k")
		waiter := ltGo(mine.ctx, other, "k", processlock.Reentrant)
		assert.Equal(t, "waits", waiter.state())
		holder.open()
		assert.Equal(t, "runs", waiter.state())
		// And from the inside of both, each is found.
		for _, l := range []*processlock.Coordinator{c, other} {
			assert.NoError(t, l.WithLock(waiter.ctx, "k", ltNop, processlock.Reentrant))
		}
		waiter.open()
		mine.open()
		ltIdle(t, other)
	})
}

// Whatever a program puts between the two calls, the hold is found, unless it
// is Detach.
//
// Rule 22.
func TestReentrantFindsTheHoldThroughAnyContext(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		other := processlock.New(processlock.Options{})
		outer := ltGo(t.Context(), c, "k")
		between := map[string]func(ctx context.Context) context.Context{
			"value":         func(ctx context.Context) context.Context { return context.WithValue(ctx, ltContextKey{}, 1) },
			"WithoutCancel": context.WithoutCancel,
			"custom":        func(ctx context.Context) context.Context { return &ltHooked{Context: ctx} },
			"client": func(ctx context.Context) context.Context {
				ctx, cl := c.WithClient(ctx, "w")
				t.Cleanup(cl.Close)
				return ctx
			},
			"coordinator": func(ctx context.Context) context.Context { return processlock.WithCoordinator(ctx, other) },
		}
		for name, wrap := range between {
			ctx := wrap(outer.ctx)
			assert.NoError(t, c.WithLock(ctx, "k", ltNop, processlock.Reentrant), name)
			// With a hold of another key, of another coordinator, in between.
			assert.NoError(t, other.WithLock(ctx, "between", func(ctx context.Context) error {
				return c.WithLock(wrap(ctx), "k", ltNop, processlock.Reentrant)
			}), name)
		}
		detached := ltGo(processlock.Detach(outer.ctx), c, "k", processlock.Reentrant)
		assert.Equal(t, "waits", detached.state())
		outer.open()
		detached.open()
		ltServed(t, detached)
	})
}

// The key goes on to the next while the inner fn runs, so its result says that
// it was not alone.
//
// Rules 22 and 27.
func TestInnerCallThatOutlivesItsHoldIsLost(t *testing.T) {
	fnErr := &ltFnError{"fn's own"}
	for _, want := range []error{nil, fnErr} {
		for _, key := range []any{"k", processlock.All("j", "k")} {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				outer := ltGo(t.Context(), c, "k")
				inner := ltGoLast(outer.ctx, c, key, func(context.Context) error { return want }, processlock.Reentrant)
				outside := ltGo(t.Context(), c, "k")
				outer.open()
				assert.Equal(t, []string{"over", "runs", "runs"}, ltStates(outer, inner, outside))
				inner.open()
				assert.Equal(t, "runs", outside.state(), "the late return released the next holder's key")
				assert.False(t, ltFree(c, "k"))
				assert.ErrorIs(t, inner.err, processlock.ErrLost)
				if want == nil {
					assert.Equal(t, processlock.ErrLost, inner.err)
				} else {
					assert.ErrorIs(t, inner.err, want)
				}
				ltServed(t, outer)
				outside.open()
			})
		}
	}
}

// Rules 14, 22 and 27.
func TestInnerCallThatIsLostKeepsItsValue(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		outer := ltGo(processlock.WithCoordinator(t.Context(), c), c, "k")
		gate := make(chan struct{})
		var value string
		var err error
		go func() {
			value, err = processlock.WithLockValue(outer.ctx, "k", func(context.Context) (string, error) {
				<-gate
				return "v", nil
			}, processlock.Reentrant)
		}()
		synctest.Wait()
		outer.open()
		close(gate)
		synctest.Wait()
		assert.Equal(t, "v", value)
		assert.Equal(t, processlock.ErrLost, err)
	})
}

// Rules 22 and 27.
func TestInnerCallIsLostWithTheClientOfTheHold(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx, cl := c.WithClient(t.Context(), "w")
		outer := ltGo(ctx, c, "k")
		inner := ltGo(outer.ctx, c, "k", processlock.Reentrant)
		cl.Close()
		for _, call := range []*ltCall{inner, outer} {
			call.open()
			assert.Equal(t, processlock.ErrLost, call.err)
		}
	})
}

// An inner client that closes takes nothing away: the hold is not its own.
//
// Rule 22.
func TestInnerClientThatClosesLosesNothing(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		outer := ltGo(t.Context(), c, "k")
		ctx, cl := c.WithClient(outer.ctx, "inner")
		inner := ltGo(ctx, c, "k", processlock.Reentrant)
		cl.Close()
		inner.open()
		ltServed(t, inner)
		outer.open()
		ltServed(t, outer)
	})
}

// After a hold has been lost its lineage is like any other outside.
//
// Rules 22 and 27.
func TestReentrantQueuesOnceTheHoldIsLost(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx, cl := c.WithClient(t.Context(), "w")
		outer := ltGo(ctx, c, "k")
		next := ltGo(t.Context(), c, "k")
		again, cl2 := c.WithClient(context.WithoutCancel(outer.ctx), "w again")
		defer cl2.Close()
		cl.Close()
		synctest.Wait()
		waiter := ltGo(again, c, "k", processlock.Reentrant)
		assert.Equal(t, []string{"runs", "runs", "waits"}, ltStates(outer, next, waiter))
		next.open()
		waiter.open()
		ltServed(t, waiter)
		outer.open()
	})
}

// The hold ends, and the key goes to the next, at any moment at which the inner
// call asks the context above it: it must not run under what is not there any
// more.
//
// Rules 1 and 22.
func TestReentrantDoesNotRunUnderAHoldThatHasJustEnded(t *testing.T) {
	ltEachTrap(t, "Value", false, func(t *testing.T, c *processlock.Coordinator, trap *ltTrap, _ *ltCall) {
		armed := &ltTrap{Context: trap.Context} // harmless until the inner call
		outer := ltGo(armed, c, "k")
		entered, gate := make(chan struct{}), make(chan struct{})
		next := &ltCall{gate: gate, last: ltNop}
		go next.run(func() error {
			return c.WithLock(t.Context(), "k", func(ctx context.Context) error {
				close(entered)
				return next.fn(ctx)
			})
		})
		synctest.Wait()
		armed.method = "Value"
		armed.left.Store(trap.left.Load())
		armed.spring = func() {
			trap.sprung.Store(true)
			close(outer.gate)
			<-entered
		}
		inner := ltGo(outer.ctx, c, "k", processlock.Reentrant)
		if trap.sprung.Load() {
			assert.Equal(t, []string{"over", "runs", "waits"}, ltStates(outer, next, inner))
			next.open()
			inner.open()
			ltServed(t, inner)
			return
		}
		assert.Equal(t, []string{"runs", "waits", "runs"}, ltStates(outer, next, inner))
		inner.open()
		outer.open()
		next.open()
	})
}
