package processlock_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// ltCopy returns a copy of c such as an assignment would make, which go vet
// rightly forbids.
func ltCopy(c *processlock.Coordinator) *processlock.Coordinator {
	v := reflect.New(reflect.TypeFor[processlock.Coordinator]())
	v.Elem().Set(reflect.ValueOf(c).Elem())
	return v.Interface().(*processlock.Coordinator)
}

// Rule 16.
func TestMisusePanics(t *testing.T) {
	const (
		nilContext     = "processlock: nil context"
		nilFn          = "processlock: nil fn"
		nilOption      = "processlock: nil Option"
		nilCoordinator = "processlock: nil *Coordinator"
		nilClient      = "processlock: nil *Client"
		copied         = "processlock: copy of a Coordinator that was used; pass a pointer"
	)
	var (
		none   context.Context // nil, by another name than the one that staticcheck knows
		c      = processlock.New(processlock.Options{})
		ctx    = processlock.WithCoordinator(context.Background(), c)
		noC    *processlock.Coordinator
		noCl   *processlock.Client
		noFn   func(context.Context) error
		noInt  func(context.Context) (int, error)
		intFn  = func(context.Context) (int, error) { return 0, nil }
		shared = processlock.Shared
	)
	assert.NoError(t, c.WithLock(ctx, "used", ltNop))
	twin := ltCopy(c)
	rows := []struct {
		name string
		want string
		do   func()
	}{
		{"WithLock, context", nilContext, func() { _ = processlock.WithLock(none, "k", ltNop) }},
		{"WithLock, fn", nilFn, func() { _ = processlock.WithLock(ctx, "k", noFn) }},
		{"WithLock, Option", nilOption, func() { _ = processlock.WithLock(ctx, "k", ltNop, nil) }},
		{"WithLock, second Option", nilOption, func() { _ = processlock.WithLock(ctx, "k", ltNop, shared, nil) }},
		{"WithLock, Option before another", nilOption, func() { _ = processlock.WithLock(ctx, "k", ltNop, nil, shared) }},
		{"WithLock of All, fn", nilFn, func() { _ = processlock.WithLock(ctx, processlock.All(), noFn) }},
		{"WithLockValue, context", nilContext, func() { _, _ = processlock.WithLockValue(none, "k", intFn) }},
		{"WithLockValue, fn", nilFn, func() { _, _ = processlock.WithLockValue(ctx, "k", noInt) }},
		{"WithLockValue, Option", nilOption, func() { _, _ = processlock.WithLockValue(ctx, "k", intFn, nil) }},
		{"method, context", nilContext, func() { _ = c.WithLock(none, "k", ltNop) }},
		{"method, fn", nilFn, func() { _ = c.WithLock(ctx, "k", nil) }},
		{"method, Option", nilOption, func() { _ = c.WithLock(ctx, "k", ltNop, nil) }},
		{"method, coordinator", nilCoordinator, func() { _ = noC.WithLock(ctx, "k", ltNop) }},
		{"method, copy", copied, func() { _ = twin.WithLock(ctx, "k", ltNop) }},
		{"Resolve, Option", nilOption, func() { _, _ = processlock.Resolve("k", nil) }},
		{"Resolve of a bad key, Option", nilOption, func() { _, _ = processlock.Resolve(func() {}, nil) }},
		{"Detach, context", nilContext, func() { processlock.Detach(none) }},
		{"WithCoordinator, context", nilContext, func() { processlock.WithCoordinator(none, c) }},
		{"WithCoordinator, coordinator", nilCoordinator, func() { processlock.WithCoordinator(ctx, nil) }},
		{"WithCoordinator, copy", copied, func() { processlock.WithCoordinator(ctx, twin) }},
		{"WithClient, context", nilContext, func() { processlock.WithClient(none, "w") }},
		{"WithClient method, context", nilContext, func() { c.WithClient(none, "w") }},
		{"WithClient method, coordinator", nilCoordinator, func() { noC.WithClient(ctx, "w") }},
		{"WithClient method, copy", copied, func() { twin.WithClient(ctx, "w") }},
		{"Close, client", nilClient, func() { noCl.Close() }},
		{"Name, client", nilClient, func() { noCl.Name() }},
		{"Worker, fn", nilFn, func() { processlock.Worker("w", nil) }},
		{"Worker, context", nilContext, func() { _ = processlock.Worker("w", ltNop)(none) }},
		{"Shutdown, context", nilContext, func() { _ = c.Shutdown(none) }},
		{"Shutdown, coordinator", nilCoordinator, func() { _ = noC.Shutdown(ctx) }},
		{"Shutdown, copy", copied, func() { _ = twin.Shutdown(ctx) }},
		{"Snapshot, coordinator", nilCoordinator, func() { noC.Snapshot() }},
		{"Snapshot, copy", copied, func() { twin.Snapshot() }},
		{"Stats, coordinator", nilCoordinator, func() { noC.Stats() }},
		{"Stats, copy", copied, func() { twin.Stats() }},
		{"AddHooks, coordinator", nilCoordinator, func() { noC.AddHooks(processlock.Hooks{}) }},
		{"AddHooks, copy", copied, func() { twin.AddHooks(processlock.Hooks{}) }},
		{"New, SlowWait", "processlock: SlowWait is -1s and SlowHold 0s; want 0 or more", func() {
			processlock.New(processlock.Options{SlowWait: -time.Second})
		}},
		{"New, SlowHold", "processlock: SlowWait is 1s and SlowHold -1ns; want 0 or more", func() {
			processlock.New(processlock.Options{SlowWait: time.Second, SlowHold: -1})
		}},
		{"Configure, SlowHold", "processlock: SlowWait is 0s and SlowHold -1ns; want 0 or more", func() {
			processlock.Configure(processlock.Options{SlowHold: -1})
		}},
		{"New, MaxWaiters", "processlock: MaxWaiters is -1; want 0 or more", func() {
			processlock.New(processlock.Options{MaxWaiters: -1})
		}},
		{"Configure, MaxWaiters", "processlock: MaxWaiters is -7; want 0 or more", func() {
			processlock.Configure(processlock.Options{MaxWaiters: -7})
		}},
		{"Configure, too late", "processlock: Configure after Default() has served a request; call it first in main", func() {
			_ = processlock.WithLock(context.Background(), "any", ltNop)
			processlock.Configure(processlock.Options{})
		}},
	}
	before := c.Stats()
	for _, row := range rows {
		assert.PanicsWithValue(t, row.want, row.do, row.name)
	}
	assert.Equal(t, before, c.Stats(), "a request was let through to the table")
	assert.NoError(t, c.WithLock(ctx, "k", ltNop), "the coordinator no longer works")
	ltIdle(t, c)
}

// A copy that is made before the first use is a coordinator of its own.
//
// Rule 16.
func TestCopyOfAnUnusedCoordinatorWorks(t *testing.T) {
	c := processlock.New(processlock.Options{})
	twin := ltCopy(c)
	assert.NoError(t, c.WithLock(context.Background(), "k", func(ctx context.Context) error {
		return twin.WithLock(ctx, "k", ltNop, processlock.IfAvailable)
	}))
}

// go vet's copylocks looks for a method pair Lock and Unlock in a field.
//
// Rule 16.
func TestVetSeesThatACoordinatorMustNotBeCopied(t *testing.T) {
	locker := reflect.TypeFor[interface {
		Lock()
		Unlock()
	}]()
	typ := reflect.TypeFor[processlock.Coordinator]()
	found := false
	for i := range typ.NumField() {
		found = found || reflect.PointerTo(typ.Field(i).Type).Implements(locker)
	}
	assert.True(t, found)
}

// Rule 16.
func TestZeroCoordinatorIsReady(t *testing.T) {
	var c processlock.Coordinator
	assert.Empty(t, c.Snapshot().Locks)
	assert.Equal(t, processlock.Stats{}, c.Stats())
	assert.NoError(t, c.WithLock(context.Background(), "k", ltNop))
	ltIdle(t, &c)
}
