package processlock_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// There is no method that needs another one before it.
//
// Rules 16 and 34.
func TestEveryMethodWorksFirstOnAZeroCoordinator(t *testing.T) {
	for _, row := range []struct {
		name string
		use  func(c *processlock.Coordinator) error
	}{
		{"WithLock", func(c *processlock.Coordinator) error { return c.WithLock(t.Context(), "k", ctNop) }},
		{"All", func(c *processlock.Coordinator) error { return c.WithLock(t.Context(), processlock.All(1, 2), ctNop) }},
		{"WithClient", func(c *processlock.Coordinator) error {
			ctx, client := c.WithClient(t.Context(), "w")
			defer client.Close()
			return c.WithLock(ctx, "k", ctNop)
		}},
		{"Close of an unused client", func(c *processlock.Coordinator) error {
			_, client := c.WithClient(t.Context(), "w")
			client.Close()
			return nil
		}},
		{"WithCoordinator", func(c *processlock.Coordinator) error {
			return processlock.WithLock(processlock.WithCoordinator(t.Context(), c), "k", ctNop)
		}},
		{"Snapshot", func(c *processlock.Coordinator) error {
			if s := c.Snapshot(); s.Locks == nil || len(s.Locks) > 0 || s.Taken.IsZero() {
				return errors.New("not an empty snapshot")
			}
			return nil
		}},
		{"Stats", func(c *processlock.Coordinator) error {
			if c.Stats() != (processlock.Stats{}) {
				return errors.New("not zero")
			}
			return nil
		}},
		{"Shutdown", func(c *processlock.Coordinator) error { return c.Shutdown(t.Context()) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			var zero processlock.Coordinator
			require.NoError(t, row.use(&zero))
			ctRequireIdle(t, &zero)
			require.NoError(t, row.use(processlock.New(processlock.Options{})))
		})
	}
}

// The first requests of a coordinator may come at once.
//
// Rule 16.
func TestFirstRequestsMayComeAtOnce(t *testing.T) {
	for range 50 {
		var c processlock.Coordinator
		var all sync.WaitGroup
		n := 0
		for range 8 {
			all.Go(func() {
				_ = c.WithLock(context.Background(), "k", func(context.Context) error { n++; return nil })
				_, _ = c.Stats(), c.Snapshot()
			})
		}
		all.Wait()
		require.Equal(t, 8, n)
	}
}

// ctCopyOf copies what vet would not let be copied.
func ctCopyOf(c *processlock.Coordinator) *processlock.Coordinator {
	v := reflect.New(reflect.TypeFor[processlock.Coordinator]())
	v.Elem().Set(reflect.ValueOf(c).Elem())
	return v.Interface().(*processlock.Coordinator)
}

// Rule 16.
func TestMisuseOfACoordinatorPanics(t *testing.T) {
	used := processlock.New(processlock.Options{})
	require.NoError(t, used.WithLock(t.Context(), "k", ctNop))
	for _, row := range []struct {
		name string
		c    *processlock.Coordinator
		want string
	}{
		{"nil", nil, "processlock: nil *Coordinator"},
		{"copy of a used one", ctCopyOf(used), "processlock: copy of a Coordinator that was used; pass a pointer"},
	} {
		for _, use := range []struct {
			name string
			do   func(c *processlock.Coordinator)
		}{
			{"WithLock", func(c *processlock.Coordinator) { _ = c.WithLock(t.Context(), "k", ctNever(t)) }},
			{"WithClient", func(c *processlock.Coordinator) { c.WithClient(t.Context(), "w") }},
			{"WithCoordinator", func(c *processlock.Coordinator) { processlock.WithCoordinator(t.Context(), c) }},
			{"Shutdown", func(c *processlock.Coordinator) { _ = c.Shutdown(t.Context()) }},
			{"Snapshot", func(c *processlock.Coordinator) { c.Snapshot() }},
			{"Stats", func(c *processlock.Coordinator) { c.Stats() }},
			{"AddHooks", func(c *processlock.Coordinator) { c.AddHooks(processlock.Hooks{}) }},
		} {
			t.Run(row.name+", "+use.name, func(t *testing.T) {
				require.PanicsWithValue(t, row.want, func() { use.do(row.c) })
			})
		}
	}
	require.NoError(t, used.WithLock(t.Context(), "k", ctNop), "the original is as it was")

	var nowhere context.Context
	var nobody *processlock.Client
	require.PanicsWithValue(t, "processlock: nil *Client", func() { nobody.Close() })
	require.PanicsWithValue(t, "processlock: nil *Client", func() { _ = nobody.Name() })
	require.PanicsWithValue(t, "processlock: MaxWaiters is -1; want 0 or more", func() {
		processlock.New(processlock.Options{MaxWaiters: -1})
	})
	require.PanicsWithValue(t, "processlock: nil context", func() { _ = used.Shutdown(nowhere) })
	require.PanicsWithValue(t, "processlock: nil context", func() { used.WithClient(nowhere, "w") })
	require.PanicsWithValue(t, "processlock: nil context", func() { processlock.WithClient(nowhere, "w") })
	require.PanicsWithValue(t, "processlock: nil context", func() { processlock.WithCoordinator(nowhere, used) })
	require.PanicsWithValue(t, "processlock: nil context", func() { processlock.Detach(nowhere) })
}

// A copy made before the first request is a coordinator of its own.
//
// Rule 16.
func TestCopyOfAnUnusedCoordinatorIsOneOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := processlock.New(processlock.Options{MaxWaiters: 1})
		d := ctCopyOf(c)
		held := ctHold(t, c, t.Context(), "k")
		require.NoError(t, d.WithLock(t.Context(), "k", ctNop, processlock.IfAvailable))
		require.NoError(t, held.finish())
	})
}

// go vet reports a copy of what has, by value and at any depth, a Lock and an
// Unlock on its pointer.
//
// Rule 16.
func TestVetComplainsAboutCopies(t *testing.T) {
	require.True(t, ctVetted(reflect.TypeFor[processlock.Coordinator]()), "Coordinator")
	require.True(t, ctVetted(reflect.TypeFor[processlock.Client]()), "Client")
	require.False(t, ctVetted(reflect.TypeFor[processlock.Options]()), "Options are values")
	require.False(t, ctVetted(reflect.TypeFor[processlock.Key]()), "keys are values")
}

func ctVetted(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	_, locks := p.MethodByName("Lock")
	_, unlocks := p.MethodByName("Unlock")
	switch {
	case locks && unlocks:
		return true
	case t.PkgPath() == "sync/atomic" && t.Kind() == reflect.Struct:
		return t.NumField() > 0 && t.Field(0).Name == "_" // its noCopy, whose methods are not exported by reflection
	case t.Kind() == reflect.Array:
		return ctVetted(t.Elem())
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if ctVetted(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// Rules 16 and 21.
func TestConfigureWorksUntilDefaultHasServed(t *testing.T) {
	ctInChild(t, func(t *testing.T) {
		require.PanicsWithValue(t, "processlock: MaxWaiters is -1; want 0 or more", func() {
			processlock.Configure(processlock.Options{MaxWaiters: -1})
		})
		processlock.Configure(processlock.Options{MaxWaiters: 7})
		processlock.Configure(processlock.Options{MaxWaiters: 1, TrackHolds: true})
		// Looking is no request, nor is using another coordinator.
		_, _ = processlock.Default().Stats(), processlock.Default().Snapshot()
		_, client := processlock.WithClient(t.Context(), "w")
		client.Close()
		require.NoError(t, processlock.WithLock(
			processlock.WithCoordinator(t.Context(), processlock.New(processlock.Options{})), "k", ctNop))
		processlock.Configure(processlock.Options{MaxWaiters: 1, TrackHolds: true})

		busy := ctHold(t, processlock.Default(), t.Context(), "k")
		require.False(t, processlock.Default().Snapshot().Locks[0].Holders[0].Since.IsZero(), "TrackHolds is in force")
		first := ctStart(t, processlock.Default(), t.Context(), "k")
		ctAwaitWaiters(t, processlock.Default(), 1)
		err := processlock.WithLock(t.Context(), "k", ctNever(t))
		require.ErrorIs(t, err, processlock.ErrQueueFull, "MaxWaiters is in force")
		require.NoError(t, busy.finish())
		require.NoError(t, first.finish())
		require.PanicsWithValue(t,
			"processlock: Configure after Default() has served a request; call it first in main",
			func() { processlock.Configure(processlock.Options{}) })
		require.NoError(t, processlock.WithLock(t.Context(), "k", ctNop))
	})
}

// Rules 16 and 24.
func TestWithCoordinatorIsolatesWhatIsBelow(t *testing.T) {
	var a, b processlock.Coordinator
	key := t.Name()
	in := func(c *processlock.Coordinator) bool { return len(c.Snapshot().Locks) > 0 }
	at := func(ctx context.Context) (where string) {
		require.NoError(t, processlock.WithLock(ctx, key, func(context.Context) error {
			for _, c := range []struct {
				name string
				c    *processlock.Coordinator
			}{{"default", processlock.Default()}, {"a", &a}, {"b", &b}} {
				if in(c.c) {
					where += c.name
				}
			}
			return nil
		}))
		v, err := processlock.WithLockValue(ctx, key, func(context.Context) (string, error) { return "v", nil })
		require.NoError(t, err)
		require.Equal(t, "v", v)
		return where
	}
	inA := processlock.WithCoordinator(t.Context(), &a)
	inB := processlock.WithCoordinator(inA, &b)
	clientOfB, b1 := b.WithClient(inA, "b1")
	defer b1.Close()
	clientOfDefault, d1 := processlock.Default().WithClient(inB, "d1")
	defer d1.Close()
	own, a1 := processlock.WithClient(inA, "a1")
	defer a1.Close()
	for _, row := range []struct {
		name string
		ctx  context.Context
		want string
	}{
		{"none", t.Context(), "default"},
		{"a", inA, "a"},
		{"the innermost", inB, "b"},
		{"back to Default", processlock.WithCoordinator(inB, processlock.Default()), "default"},
		{"a client of another coordinator", clientOfB, "a"},
		{"a client of Default", clientOfDefault, "b"},
		{"a client of its own", own, "a"},
		{"WithoutCancel", context.WithoutCancel(inA), "a"},
		{"Detach", processlock.Detach(inA), "a"},
		{"fn's context", ctFnContext(t, inA), "a"},
		{"fn's context, detached", processlock.Detach(ctFnContext(t, inA)), "a"},
	} {
		require.Equal(t, row.want, at(row.ctx), row.name)
	}
}

func ctFnContext(t *testing.T, ctx context.Context) (fnCtx context.Context) {
	require.NoError(t, processlock.WithLock(ctx, "other", func(ctx context.Context) error {
		fnCtx = ctx
		return nil
	}))
	return fnCtx
}

// Coordinators that have been used in every way are dropped without closing:
// nothing runs for them, and the collector takes them.
//
// Rules 34 and 35.
func TestField_N5_CoordinatorsCanBeDroppedWithoutClosing(t *testing.T) {
	before := runtime.NumGoroutine()
	var dropped []weak.Pointer[processlock.Coordinator]
	for i := range 10_000 {
		c := &processlock.Coordinator{}
		ctx, client := c.WithClient(context.Background(), "w")
		require.NoError(t, c.WithLock(ctx, i, ctNop, processlock.MaxWait(time.Hour)))
		if i%100 == 0 {
			require.NoError(t, c.WithLock(ctx, "k", func(context.Context) error {
				go func() { _ = c.WithLock(ctx, "k", ctNop, processlock.MaxWait(time.Hour)) }()
				ctAwaitWaiters(t, c, 1)
				return nil
			}))
			dropped = append(dropped, weak.Make(c))
		}
		if i%2 == 0 {
			client.Close()
		}
	}
	for end := time.Now().Add(ctBound(t)); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	kept := len(dropped)
	for range 5 {
		runtime.GC()
		kept = 0
		for _, p := range dropped {
			if p.Value() != nil {
				kept++
			}
		}
		if kept == 0 {
			break
		}
	}
	require.Zero(t, kept, "coordinators that the collector can't take")
}
