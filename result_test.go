package processlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// ltFnError is told from its equals by its address.
type ltFnError struct{ text string }

func (e *ltFnError) Error() string { return e.text }

// Rule 13.
func TestFnErrorComesBackAsItIs(t *testing.T) {
	want := &ltFnError{"fn's own"}
	fn := func(context.Context) error { return want }
	ways := map[string]func(ctx context.Context, c *processlock.Coordinator) error{
		"method": func(ctx context.Context, c *processlock.Coordinator) error {
			return c.WithLock(ctx, "k", fn)
		},
		"function": func(ctx context.Context, c *processlock.Coordinator) error {
			return processlock.WithLock(processlock.WithCoordinator(ctx, c), "k", fn)
		},
		"value": func(ctx context.Context, c *processlock.Coordinator) error {
			_, err := processlock.WithLockValue(processlock.WithCoordinator(ctx, c), "k",
				func(ctx context.Context) (int, error) { return 1, fn(ctx) })
			return err
		},
		"all": func(ctx context.Context, c *processlock.Coordinator) error {
			return c.WithLock(ctx, processlock.All("a", "b"), fn)
		},
		"all of none": func(ctx context.Context, c *processlock.Coordinator) error {
			return c.WithLock(ctx, processlock.All(), fn)
		},
		"shared": func(ctx context.Context, c *processlock.Coordinator) error {
			return c.WithLock(ctx, "k", fn, processlock.Shared)
		},
		"reentrant": func(ctx context.Context, c *processlock.Coordinator) error {
			return c.WithLock(ctx, "k", func(ctx context.Context) error {
				return c.WithLock(ctx, "k", fn, processlock.Reentrant)
			})
		},
		"client": func(ctx context.Context, c *processlock.Coordinator) error {
			ctx, cl := c.WithClient(ctx, "w")
			defer cl.Close()
			return c.WithLock(ctx, "k", fn)
		},
		"waited": func(ctx context.Context, c *processlock.Coordinator) error {
			holder := ltGo(ctx, c, "k")
			time.AfterFunc(time.Second, func() { close(holder.gate) }) // once the call waits
			return c.WithLock(ctx, "k", fn)
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				assert.Same(t, want, way(t.Context(), c))
			})
		})
	}
}

// Rule 13.
func TestRefusalNamesTheKeyAndTheReason(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx := t.Context()
		dead, cancel := context.WithCancel(ctx)
		cancel()
		holder := ltGo(ctx, c, []any{"b", 2})
		b := processlock.MustKey("b", 2)
		rows := []struct {
			name string
			ctx  context.Context
			key  any
			want processlock.Key
			is   error
		}{
			{"held", ctx, []any{"b", 2}, b, processlock.ErrUnavailable},
			{"done context, string", dead, "a", processlock.MustKey("a"), context.Canceled},
			{"done context, int", dead, 7, processlock.MustKey(7), context.Canceled},
			{"done context, list", dead, []any{"b", 2}, b, context.Canceled},
			{"done context, Key", dead, b, b, context.Canceled},
			{"done context, bad key", dead, func() {}, processlock.Key{}, context.Canceled},
			{"done context, zero Key", dead, processlock.Key{}, processlock.Key{}, context.Canceled},
			{"bad key", ctx, func() {}, processlock.Key{}, processlock.ErrKey},
			{"all, the first not got", ctx, processlock.All("z", []any{"b", 2}, "a"), b, processlock.ErrUnavailable},
			{"all, done context", dead, processlock.All("b", "a"), processlock.MustKey("a"), context.Canceled},
			{"all, done context, bad key", dead, processlock.All("a", func() {}), processlock.Key{}, context.Canceled},
			{"all, bad key", ctx, processlock.All("a", func() {}), processlock.Key{}, processlock.ErrKey},
			{"all of none, done context", dead, processlock.All(), processlock.Key{}, context.Canceled},
		}
		for _, row := range rows {
			ran := false
			err := c.WithLock(row.ctx, row.key, func(context.Context) error {
				ran = true
				return nil
			}, processlock.IfAvailable)
			assert.False(t, ran, row.name)
			assert.IsType(t, (*processlock.AcquireError)(nil), err, "%s: it is one itself, not only around one", row.name)
			var refusal *processlock.AcquireError
			if assert.ErrorAs(t, err, &refusal, row.name) {
				assert.Equal(t, row.want, refusal.Key, row.name)
				assert.ErrorIs(t, refusal.Err, row.is, row.name)
			}
		}
		holder.open()
	})
}

// A refusal that fn hands on from a nested call is fn's error and not wrapped
// again.
//
// Rule 13.
func TestNestedRefusalIsNotWrappedAgain(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		var inner error
		outer := c.WithLock(t.Context(), "outer", func(ctx context.Context) error {
			inner = c.WithLock(ctx, "outer", ltNop)
			return inner
		})
		assert.ErrorIs(t, outer, processlock.ErrDeadlock)
		assert.Same(t, inner, outer)
	})
}

// Rule 14.
func TestWithLockValueReturnsWhatFnReturns(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx := processlock.WithCoordinator(t.Context(), c)
		fnErr := errors.New("beside a value")
		for _, want := range []error{nil, fnErr} {
			v, err := processlock.WithLockValue(ctx, "k", func(context.Context) (string, error) { return "v", want })
			assert.Equal(t, "v", v)
			assert.Equal(t, want, err)
		}
	})
}

// Rule 14.
func TestWithLockValueIsZeroWhenFnDidNotRun(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx := processlock.WithCoordinator(t.Context(), c)
		holder := ltGo(ctx, c, "k")
		dead, cancel := context.WithCancel(ctx)
		cancel()
		fn := func(context.Context) (*int, error) { return new(int), nil }
		for name, call := range map[string]func() (*int, error){
			"unavailable": func() (*int, error) {
				return processlock.WithLockValue(ctx, "k", fn, processlock.IfAvailable)
			},
			"max wait": func() (*int, error) {
				return processlock.WithLockValue(ctx, "k", fn, processlock.MaxWait(1))
			},
			"done context": func() (*int, error) { return processlock.WithLockValue(dead, "k", fn) },
			"bad key":      func() (*int, error) { return processlock.WithLockValue(ctx, func() {}, fn) },
		} {
			v, err := call()
			assert.Nil(t, v, name)
			assert.Error(t, err, name)
		}
		holder.open()
	})
}

// Rule 17.
func TestKeyWithoutIdentityIsRefused(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx := processlock.WithCoordinator(t.Context(), c)
		ran := false
		fn := func(context.Context) error {
			ran = true
			return nil
		}
		// Each kind of key that WithLock tells apart by its static type, too.
		calls := map[string]error{
			"func":             processlock.WithLock(ctx, func() {}, fn),
			"func in a list":   processlock.WithLock(ctx, []any{"a", func() {}}, fn),
			"chan":             processlock.WithLock(ctx, make(chan int), fn),
			"zero Key":         processlock.WithLock(ctx, processlock.Key{}, fn),
			"zero Key as any":  processlock.WithLock[any](ctx, processlock.Key{}, fn),
			"zero Key inside":  processlock.WithLock(ctx, []any{processlock.Key{}}, fn),
			"Keys inside":      processlock.WithLock(ctx, []any{processlock.All("a")}, fn),
			"zero Key in All":  processlock.WithLock(ctx, processlock.All("a", processlock.Key{}), fn),
			"func in All":      processlock.WithLock(ctx, processlock.All("a", func() {}), fn),
			"func, method":     c.WithLock(ctx, func() {}, fn),
			"zero Key, method": c.WithLock(ctx, processlock.Key{}, fn),
		}
		for name, err := range calls {
			var refusal *processlock.AcquireError
			if assert.ErrorAs(t, err, &refusal, name) {
				assert.ErrorIs(t, err, processlock.ErrKey, name)
				assert.Zero(t, refusal.Key, name)
			}
		}
		assert.False(t, ran, "fn ran")
		assert.Zero(t, ltEnds(c), "counted, though no request reached the table")

		// The empty list has an identity, unlike the zero Key.
		assert.NoError(t, processlock.WithLock(ctx, []any{}, ltNop))
		assert.NoError(t, processlock.WithLock(ctx, processlock.MustKey(), ltNop))
	})
}

// The client closes after the call has looked at its context and before it is
// in the queue: while the context's own Value is asked for the lineage.
//
// Rules 13 and 25.
func TestRefusalOfAClientThatHasJustClosedIsTheContextsErrorToo(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		parent := &ltHooked{Context: t.Context()}
		outer, busy := ltGo(parent, c, "outer"), ltGo(t.Context(), c, "k")
		ctx, cl := c.WithClient(outer.ctx, "w")
		parent.value = func(key any) any {
			cl.Close()
			return parent.Context.Value(key)
		}
		call := ltGo(ctx, c, "k")
		ltRefused(t, call, processlock.ErrClosed)
		assert.ErrorIs(t, call.err, ctx.Err())
		parent.value = nil
		busy.open()
		outer.open()
	})
}
