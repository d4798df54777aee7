package processlock_test

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// An execution trace has the names of the regions and the keys in it; package
// internal/proof reads them back as regions and logs. Nobody else need look: a
// coordinator without hooks shows as well.
func TestTraceShowsWaitsAndHolds(t *testing.T) {
	if trace.IsEnabled() {
		t.Fatal("a trace is being taken already")
	}
	var c processlock.Coordinator
	take := func(prefix string) string {
		var b bytes.Buffer
		require.NoError(t, trace.Start(&b))
		busy := ctHold(t, &c, t.Context(), prefix+" free")
		waits := ctStart(t, &c, t.Context(), prefix+" free")
		ctAwaitWaiters(t, &c, 1)
		assert.NoError(t, busy.finish())
		assert.NoError(t, waits.finish())
		require.NoError(t, c.WithLock(t.Context(), prefix+" alone", ctNop))
		all := ctHold(t, &c, t.Context(), processlock.All(prefix+" one", prefix+" two"))
		assert.NoError(t, all.finish())
		trace.Stop()
		return b.String()
	}
	first, second := take("first"), take("second")
	for _, text := range []string{"processlock.wait", "processlock.hold", `["first free"]`, `["first alone"]`, `["first one"]`, `["first two"]`} {
		assert.True(t, strings.Contains(first, text), text)
	}
	assert.True(t, strings.Contains(second, `["second one"]`))
	assert.False(t, strings.Contains(second, `["first`))
	ctRequireIdle(t, &c)
}

// While a trace is taken, nothing else about a call changes.
//
// Rules 15 and 22.
func TestTraceChangesNoResult(t *testing.T) {
	var c processlock.Coordinator
	require.NoError(t, trace.Start(&bytes.Buffer{}))
	defer trace.Stop()
	ltFails := func(context.Context) error { return os.ErrExist }
	assert.Equal(t, os.ErrExist, c.WithLock(t.Context(), "k", ltFails))
	assert.PanicsWithValue(t, "fn's", func() {
		_ = c.WithLock(t.Context(), processlock.All("k", "l"), func(context.Context) error { panic("fn's") })
	})
	assert.NoError(t, c.WithLock(t.Context(), "k", func(ctx context.Context) error {
		assert.ErrorIs(t, c.WithLock(ctx, "k", ltNop), processlock.ErrDeadlock)
		trace.Stop() // in the middle of a hold
		return c.WithLock(ctx, processlock.All("k", "l"), ltNop, processlock.Reentrant)
	}))
	ctRequireIdle(t, &c)
}

// The block profile shows where calls waited, with WithLock and its caller on
// the stack.
func TestBlockProfileShowsWaits(t *testing.T) {
	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)
	var c processlock.Coordinator
	ctx, cancel := context.WithCancel(processlock.WithCoordinator(t.Context(), &c))
	defer cancel()
	for _, row := range []struct {
		caller, lock string
		wait         func() error
	}{
		{"htBlockedHere", "processlock.WithLock[", func() error { return htBlockedHere(ctx) }},
		{"htBlockedHereToo", "processlock.(*Coordinator).WithLock", func() error { return htBlockedHereToo(context.WithoutCancel(ctx), &c) }},
	} {
		// One that is in the queue need not be asleep yet, and may get its key
		// before it is.
		for end := time.Now().Add(ctBound(t)); !htBlocked(t, row.caller, row.lock); {
			if time.Now().After(end) {
				t.Fatalf("%s, called by %s, is not in the profile", row.lock, row.caller)
			}
			busy := ctHold(t, &c, t.Context(), "k")
			over := make(chan error)
			go func() { over <- row.wait() }()
			ctAwaitWaiters(t, &c, 1)
			require.NoError(t, busy.finish())
			require.NoError(t, <-over)
		}
	}
}

// htBlocked reports whether the block profile has a stack with caller's call of
// lock.
func htBlocked(t *testing.T, caller, lock string) bool {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, pprof.Lookup("block").WriteTo(&b, 1))
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if inner, _, ok := strings.Cut(stack, "processlock_test."+caller+"+"); ok && strings.Contains(inner, lock) {
			return true
		}
	}
	return false
}

//go:noinline
func htBlockedHere(ctx context.Context) error { return processlock.WithLock(ctx, "k", ltNop) }

//go:noinline
func htBlockedHereToo(ctx context.Context, c *processlock.Coordinator) error {
	return c.WithLock(ctx, "k", ltNop)
}
