package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A try with a done context is the context's failure, on a free key and on a
// busy one: "not available" would invite the caller to try again.
//
// Rules 8, 18 and 19.
func TestPeer_W6_TryWithADoneContextIsNotUnavailable(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		holder := ltGo(t.Context(), c, "busy")
		for _, key := range []any{"free", "busy", processlock.All("busy", "free")} {
			for _, try := range []processlock.Option{processlock.IfAvailable, processlock.MaxWait(0)} {
				err := c.WithLock(ctx, key, ctNever(t), try)
				assert.ErrorIs(t, err, context.Canceled)
				assert.ErrorIs(t, err, why)
				assert.NotErrorIs(t, err, processlock.ErrUnavailable)
			}
		}
		holder.open()
	})
}

// fn ends, then the call returns, and by then the key is free and no longer
// listed: nothing of the release is left for later.
//
// Rules 11, 15, 34 and 39.
func TestPeer_W8_FnEndsThenTheCallReturnsWithTheKeyFree(t *testing.T) {
	for _, mode := range []byte("XS") {
		for _, waits := range []bool{false, true} {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				holder := ltGo(t.Context(), c, "k")
				if !waits {
					holder.open()
				}
				var log []string
				go func() {
					err := c.WithLock(t.Context(), "k", func(context.Context) error {
						log = append(log, "fn ends")
						return nil
					}, ltMode(mode)...)
					log = append(log, "returned")
					assert.NoError(t, err)
					assert.Empty(t, c.Snapshot().Locks)
					assert.True(t, ltFree(c, "k"))
				}()
				synctest.Wait()
				if waits {
					assert.Empty(t, log)
					holder.open()
				}
				assert.Equal(t, []string{"fn ends", "returned"}, log)
			})
		}
	}
}

// pfWatchedError counts how often somebody looks into it.
type pfWatchedError struct{ looks atomic.Int64 }

func (e *pfWatchedError) Error() string   { e.looks.Add(1); return "watched" }
func (e *pfWatchedError) Unwrap() error   { e.looks.Add(1); return nil }
func (e *pfWatchedError) Is(error) bool   { e.looks.Add(1); return false }
func (e *pfWatchedError) As(any) bool     { e.looks.Add(1); return false }
func (e *pfWatchedError) Timeout() bool   { e.looks.Add(1); return false }
func (e *pfWatchedError) Temporary() bool { e.looks.Add(1); return false }

// fn's error passes through unread: its methods are the caller's code and may
// block, panic or count.
//
// Rules 13 and 36.
func TestPeer_W11_FnErrorPassesThroughUnread(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx, cl := c.WithClient(processlock.WithCoordinator(t.Context(), c), "w")
		defer cl.Close()
		want := &pfWatchedError{}
		fn := func(context.Context) error { return want }
		holder := ltGo(ctx, c, "busy")
		waited := ltGoLast(ctx, c, "busy", fn)
		holder.open()
		waited.open()
		_, valueErr := processlock.WithLockValue(ctx, "k", func(context.Context) (int, error) { return 1, want })
		for name, got := range map[string]error{
			"free":   c.WithLock(ctx, "k", fn),
			"shared": c.WithLock(ctx, "k", fn, processlock.Shared),
			"All":    c.WithLock(ctx, processlock.All("k", "l"), fn),
			"value":  valueErr,
			"waited": waited.err,
			"nested, Reentrant": c.WithLock(ctx, "k", func(ctx context.Context) error {
				return c.WithLock(ctx, "k", fn, processlock.Reentrant)
			}),
			"Worker": processlock.Worker("w", func(ctx context.Context) error { return processlock.WithLock(ctx, "k", fn) })(ctx),
		} {
			if got != error(want) {
				t.Errorf("%s: another error came back", name)
			}
		}
		assert.Zero(t, want.looks.Load(), "somebody looked into fn's error")
	})
}

// What one goroutine has had and given back another gets without a wait, as an
// exclusive lock of that name.
//
// Rules 1, 34 and 39.
func TestPeer_N1_KeyOfAnEndedHolderIsFreeForAnother(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		first := ltGo(t.Context(), c, "k")
		first.open()
		ltServed(t, first)
		second := ltGo(t.Context(), c, "k")
		assert.Equal(t, "runs", second.state())
		assert.Equal(t, "X/", pfShape(c, "k"))
		assert.Zero(t, c.Stats().Waited)
		second.open()
		ltServed(t, second)
	})
}

// After Shutdown the coordinator can still be looked at: while a holder goes on
// it is listed, later nothing is. Shutdown starts one life and ends none but
// its own: another coordinator has the same keys.
//
// Rules 29 and 39.
func TestPeer_W39_SnapshotAfterShutdownShowsWhatStillRuns(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k")
		done, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, c.Shutdown(done), context.Canceled)
		assert.Equal(t, "X/", pfShape(c, "k"))
		holder.open()
		assert.NotNil(t, c.Snapshot().Locks)
		assert.Empty(t, c.Snapshot().Locks)
	})
}

// Rules 2 and 29.
func TestPeer_W41_ShutdownOfOneCoordinatorLeavesAnother(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		before := processlock.New(processlock.Options{})
		held := ltGo(t.Context(), before, "k")
		assert.NoError(t, c.Shutdown(t.Context()))
		after := processlock.New(processlock.Options{})
		assert.NoError(t, after.WithLock(t.Context(), "k", ltNop))
		assert.Equal(t, "runs", held.state())
		held.open()
		assert.NoError(t, before.WithLock(t.Context(), "k", ltNop))
		ctRequireClosed(t, c.WithLock(t.Context(), "k", ctNever(t)))
	})
}

// In a process of its own, a program that has used locks in every way ends
// with the goroutines that it began with, and with status 0.
//
// Rule 35.
func TestPeer_DBX_P6_ProcessEndsByItself(t *testing.T) {
	ctInChild(t, func(t *testing.T) {
		base := runtime.NumGoroutine()
		ctx, cl := processlock.WithClient(context.Background(), "w")
		n := 0
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				assert.NoError(t, processlock.WithLock(ctx, "k", func(ctx context.Context) error {
					n++
					return processlock.WithLock(ctx, processlock.All("a", "b"), ltNop, processlock.MaxWait(ctBound(t)))
				}))
			})
		}
		wg.Wait()
		require.Equal(t, 20, n)
		cl.Close()
		require.NoError(t, processlock.Default().Shutdown(context.Background()))
		over := make(chan struct{})
		go func() { // what Wait has seen end may still be on its way out
			for runtime.NumGoroutine() > base+1 {
				runtime.Gosched()
			}
			close(over)
		}()
		ctWithin(t, over, "no goroutine is left")
	})
}
