package processlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// ctCallback calls into c in ways that take every mutex that it has: a shard's
// or the graph's, held around a call of user code, would stop it for ever.
func ctCallback(c *processlock.Coordinator, keys ...any) {
	ctx := context.Background()
	_, _ = c.Stats(), c.Snapshot()
	for _, key := range keys {
		_ = c.WithLock(ctx, key, ctNop, processlock.IfAvailable)
		_ = c.WithLock(ctx, key, ctNop, processlock.MaxWait(time.Microsecond), processlock.Shared)
		var other processlock.Coordinator
		_ = other.WithLock(ctx, "outer", func(ctx context.Context) error { // enters the wait-for graph
			return c.WithLock(ctx, processlock.All("ct other", key), ctNop, processlock.MaxWait(time.Microsecond))
		})
	}
	ctx, client := c.WithClient(ctx, "callback")
	_ = c.WithLock(ctx, "ct third", func(context.Context) error { client.Close(); return nil })
}

// ctCallingCtx calls back from every method of a context.
type ctCallingCtx struct {
	context.Context
	call  func()
	busy  atomic.Bool // not from within the call
	calls *[4]atomic.Int64
}

func (c *ctCallingCtx) back(method int) {
	if c.busy.CompareAndSwap(false, true) {
		c.calls[method].Add(1)
		c.call()
		c.busy.Store(false)
	}
}

func (c *ctCallingCtx) Deadline() (time.Time, bool) { c.back(0); return c.Context.Deadline() }
func (c *ctCallingCtx) Done() <-chan struct{}       { c.back(1); return c.Context.Done() }
func (c *ctCallingCtx) Err() error                  { c.back(2); return c.Context.Err() }
func (c *ctCallingCtx) Value(key any) any           { c.back(3); return c.Context.Value(key) }

// Whatever the library asks a context, and whenever, the context may call the
// library on the same key and on others.
//
// Rule 36.
func TestField_B10_ContextMethodsMayCallBack(t *testing.T) {
	var calls [4]atomic.Int64
	type scene struct {
		c    *processlock.Coordinator
		wrap func(ctx context.Context) context.Context
	}
	for _, row := range []struct {
		name string
		run  func(s scene)
	}{
		{"free key", func(s scene) { _ = s.c.WithLock(s.wrap(t.Context()), "k", ctNop) }},
		{"All", func(s scene) { _ = s.c.WithLock(s.wrap(t.Context()), processlock.All("k", "l"), ctNop) }},
		{"nested", func(s scene) {
			_ = s.c.WithLock(s.wrap(t.Context()), "k", func(ctx context.Context) error {
				_ = s.c.WithLock(s.wrap(ctx), "l", ctNop)
				_ = s.c.WithLock(s.wrap(ctx), "k", ctNop, processlock.Reentrant)
				return s.c.WithLock(s.wrap(ctx), "k", ctNever(t))
			})
		}},
		{"waits", func(s scene) {
			busy := ctHold(t, s.c, t.Context(), "k")
			w := ctStart(t, s.c, s.wrap(t.Context()), "k")
			ctAwaitQueued(t, s.c)
			_ = busy.finish()
			_ = w.finish()
		}},
		{"waits, nested, MaxWait", func(s scene) {
			busy := ctHold(t, s.c, t.Context(), "k")
			_ = s.c.WithLock(s.wrap(t.Context()), "l", func(ctx context.Context) error {
				return s.c.WithLock(s.wrap(ctx), "k", ctNever(t), processlock.MaxWait(time.Millisecond))
			})
			_ = busy.finish()
		}},
		{"canceled", func(s scene) {
			busy := ctHold(t, s.c, t.Context(), "k")
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_ = s.c.WithLock(s.wrap(ctx), "k", ctNever(t))
			_ = busy.finish()
		}},
		{"cycle", func(s scene) {
			x, y := ctHold(t, s.c, s.wrap(t.Context()), "k"), ctHold(t, s.c, s.wrap(t.Context()), "l")
			w, v := ctStart(t, s.c, s.wrap(x.fnCtx), "l"), ctStart(t, s.c, s.wrap(y.fnCtx), "k")
			select { // the later of the two
			case <-w.over:
			case <-v.over:
			}
			for _, call := range []*ctCall{x, y, w, v} {
				call.letGo()
			}
			for _, call := range []*ctCall{x, y, w, v} {
				<-call.over
			}
		}},
		{"client", func(s scene) {
			ctx, client := s.c.WithClient(s.wrap(t.Context()), "w")
			h := ctHold(t, s.c, s.wrap(processlock.Detach(ctx)), "k")
			w := ctStart(t, s.c, s.wrap(ctx), "k")
			ctAwaitQueued(t, s.c)
			client.Close()
			_ = w.finish()
			_ = h.finish()
		}},
		{"WithCoordinator, Worker", func(s scene) {
			ctx := processlock.WithCoordinator(s.wrap(t.Context()), s.c)
			_ = processlock.Worker("w", func(ctx context.Context) error {
				return processlock.WithLock(s.wrap(ctx), "k", ctNop)
			})(s.wrap(ctx))
		}},
		{"Shutdown", func(s scene) {
			h := ctHold(t, s.c, s.wrap(t.Context()), "k")
			w := ctStart(t, s.c, s.wrap(h.fnCtx), "l")
			ctx, cancel := context.WithTimeout(h.fnCtx, time.Millisecond)
			defer cancel()
			_ = s.c.Shutdown(s.wrap(ctx))
			_ = s.c.Shutdown(s.wrap(processlock.Detach(ctx)))
			_ = w.finish()
			_ = h.finish()
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var c processlock.Coordinator
			wrap := func(ctx context.Context) context.Context {
				return &ctCallingCtx{Context: ctx, calls: &calls, call: func() { ctCallback(&c, "k", "l") }}
			}
			over := make(chan struct{})
			go func() {
				defer close(over)
				row.run(scene{&c, wrap})
			}()
			ctWithin(t, over, "calls back from a context's methods")
			// Package context watches a parent of a type of its own in a goroutine,
			// which may ask for Done late.
			for end := time.Now().Add(5 * time.Second); processlock.CTLeft(&c) != nil && time.Now().Before(end); {
				ctYield(1)
			}
			ctRequireIdle(t, &c)
		})
	}
	require.NotZero(t, calls[1].Load(), "Done was never asked")
	require.NotZero(t, calls[2].Load(), "Err was never asked")
	require.NotZero(t, calls[3].Load(), "Value was never asked")
}

// ctAwaitQueued returns once somebody waits in c.
func ctAwaitQueued(t *testing.T, c *processlock.Coordinator) {
	for end := time.Now().Add(5 * time.Second); c.Stats().Waiting == 0; ctYield(1) {
		if time.Now().After(end) {
			t.Error("nobody waits")
			return
		}
	}
}

// ctText is a key whose text is made by calling back.
type ctText struct{ call func() }

func (k ctText) MarshalText() ([]byte, error) { k.call(); return []byte("k"), nil }

// Rule 36.
func TestMarshalTextMayCallBack(t *testing.T) {
	var c processlock.Coordinator
	ctx := processlock.WithCoordinator(t.Context(), &c)
	calls := 0
	key := ctText{func() { calls++; ctCallback(&c, "k", "l") }}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = c.WithLock(ctx, key, func(ctx context.Context) error {
			if len(c.Snapshot().Locks) != 1 {
				t.Error("the key is not held")
			}
			_ = c.WithLock(ctx, key, ctNever(t))
			_ = c.WithLock(ctx, key, ctNever(t), processlock.MaxWait(time.Microsecond))
			return processlock.WithLock(ctx, key, ctNop, processlock.Reentrant)
		})
		_ = processlock.WithLock(ctx, processlock.All(key, "l", []any{key, 1}), ctNop)
		done, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.WithLock(done, key, ctNever(t)) // read for the error's sake
	}()
	ctWithin(t, over, "calls back from MarshalText")
	require.GreaterOrEqual(t, calls, 7)
	ctRequireIdle(t, &c)
}

// ctThrowCtx panics from a method once armed.
type ctThrowCtx struct {
	context.Context
	method string
	armed  atomic.Bool
}

var errCTThrown = errors.New("thrown")

func (c *ctThrowCtx) throw(method string) {
	if c.method == method && c.armed.CompareAndSwap(true, false) {
		panic(errCTThrown)
	}
}

func (c *ctThrowCtx) Done() <-chan struct{} { c.throw("Done"); return c.Context.Done() }
func (c *ctThrowCtx) Err() error            { c.throw("Err"); return c.Context.Err() }
func (c *ctThrowCtx) Value(key any) any     { c.throw("Value"); return c.Context.Value(key) }

// A context method that panics goes through the call unchanged, and whoever is
// behind in the queue goes on as if the call had been canceled.
//
// Rules 15 and 36.
func TestContextMethodThatPanicsLeavesTheQueueFirst(t *testing.T) {
	for _, row := range []struct {
		name, method string
		nested       bool
		arm          string // "before" the call, or once it "waits"
	}{
		{"Done, before", "Done", false, "before"},
		{"Err, before", "Err", false, "before"},
		{"Value, before", "Value", false, "before"},
		{"Err, after its grant", "Err", false, "waits"},
		{"Done, after its grant", "Done", false, "waits"},
		{"Err, after its grant, nested", "Err", true, "waits"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c, other processlock.Coordinator
				ctx := t.Context()
				outer := ctHold(t, &other, ctx, "outer")
				if row.nested {
					ctx = outer.fnCtx
				}
				busy := ctHold(t, &c, t.Context(), "k")
				throwing := &ctThrowCtx{Context: ctx, method: row.method}
				throwing.armed.Store(row.arm == "before")
				var caught any
				var all sync.WaitGroup
				all.Go(func() {
					defer func() { caught = recover() }()
					_ = c.WithLock(throwing, "k", ctNever(t))
				})
				synctest.Wait()
				next := ctStart(t, &c, t.Context(), "k")
				synctest.Wait()
				throwing.armed.Store(row.arm == "waits")
				require.NoError(t, busy.finish())
				all.Wait()
				synctest.Wait()
				require.Equal(t, errCTThrown, caught)
				require.True(t, next.running())
				require.NoError(t, next.finish())
				require.NoError(t, outer.finish())
				ctRequireIdle(t, &c)
			})
		})
	}
}

// The deadlock search asks the contexts of other waits: one that panics there
// panics in the searching call, which leaves its queue.
//
// Rule 36.
func TestContextThatPanicsInTheDeadlockSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		x, y := ctHold(t, &c, t.Context(), "x"), ctHold(t, &c, t.Context(), "y")
		throwing := &ctThrowCtx{Context: x.fnCtx, method: "Err"}
		w := ctStart(t, &c, throwing, "y")
		synctest.Wait()
		throwing.armed.Store(true)
		require.PanicsWithValue(t, errCTThrown, func() { _ = c.WithLock(y.fnCtx, "x", ctNever(t)) })
		require.EqualValues(t, 1, c.Stats().Waiting)
		require.NoError(t, y.finish())
		require.NoError(t, w.finish())
		require.NoError(t, x.finish())
		ctRequireIdle(t, &c)
	})
}
