package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// A request that is refused since it would close a cycle has never waited.
//
// Rules 31 and 42.
func TestHooksAreToldOfADeadlockAsOfNoWait(t *testing.T) {
	htBubble(t, processlock.Options{}, func(s *htScene) {
		ctxA, _ := s.as("a")
		ctxB, _ := s.as("b")
		// Its Err takes a second, so the search for the cycle does.
		slow := &htSlowErr{Context: ctxA}
		var errA error
		inner := ltGoLast(ctxA, s.c, "k1", func(ctx context.Context) error {
			slow.Context = ctx
			errA = s.c.WithLock(slow, "k2", ltNop)
			return nil
		})
		outer := ltGoLast(ctxB, s.c, "k2", func(ctx context.Context) error { return s.c.WithLock(ctx, "k1", ltNop) })
		outer.open()
		inner.open()
		htLater(60)
		require.ErrorIs(s.t, errA, processlock.ErrDeadlock)
		ltServed(s.t, outer)
		calls := s.of("a")
		require.Len(s.t, calls, 3)
		assert.Equal(s.t, "Failed", calls[1].kind)
		assert.Same(s.t, errA, calls[1].Err)
		assert.Zero(s.t, calls[1].Waited, "it has not waited")
		assert.Equal(s.t, []string{"Acquired", "Waiting", "Acquired", "Released", "Released"}, htKinds(s.of("b")))
	})
}

// Who is told can tell a wait of no time from none, however it ends.
//
// Rule 42.
func TestHooksAreToldOfAWaitThatTookNoTime(t *testing.T) {
	htBubble(t, processlock.Options{}, func(s *htScene) {
		ctxB, clientB := s.as("b")
		ctxC, clientC := s.as("c")
		a, b := s.start("a", "k"), ltGo(ctxB, s.c, "k")
		c := ltGo(context.WithoutCancel(ctxC), s.c, "k")
		clientC.Close()
		synctest.Wait()
		a.open()
		clientB.Close()
		b.open()
		ltRefused(s.t, c, processlock.ErrClosed)
		for name, want := range map[string][]time.Duration{"a": {0, 0}, "b": {0, 1, 1}, "c": {0, 1}} {
			got := []time.Duration{}
			for _, call := range s.of(name) {
				got = append(got, call.Waited)
			}
			assert.Equal(s.t, want, got, "%s: %v", name, htKinds(s.of(name)))
		}
		assert.Zero(s.t, s.c.Stats().WaitDuration)
	})
}

// htSlowErr is a context whose Err takes a second once it has been asked before.
type htSlowErr struct {
	context.Context
	asked bool
}

func (c *htSlowErr) Err() error {
	if c.asked {
		htSleep(1)
	}
	c.asked = true
	return c.Context.Err()
}

func htKinds(calls []htCall) []string {
	kinds := []string{}
	for _, c := range calls {
		kinds = append(kinds, c.kind)
	}
	return kinds
}

// Failed is told the very error that the call returns.
//
// Rule 42.
func TestHooksAreToldTheErrorThatTheCallReturns(t *testing.T) {
	htBubble(t, processlock.Options{}, func(s *htScene) {
		a := s.start("a", "k")
		b := s.start("b", processlock.All("j", "k"), processlock.IfAvailable)
		c := s.start("c", "k", processlock.MaxWait(1))
		htLater(1)
		a.open()
		assert.Same(s.t, b.err, s.of("b")[1].Err)
		assert.Same(s.t, c.err, s.of("c")[1].Err)
		require.ErrorAs(s.t, c.err, new(*processlock.AcquireError))
	})
}

// An event says whose request it is.
//
// Rule 42.
func TestHooksAreToldWhoseRequestItIs(t *testing.T) {
	htBubble(t, processlock.Options{}, func(s *htScene) {
		key := processlock.MustKey("invoice", 7)
		ctx, client := s.as("worker")
		require.NoError(s.t, s.c.WithLock(ctx, key, ltNop, processlock.Shared))
		require.NoError(s.t, s.c.WithLock(s.ctx, key, s.method))
		ltRefused(s.t, ltGo(context.WithoutCancel(htClosed(ctx, client)), s.c, key), processlock.ErrClosed)
		var events []processlock.Event
		for _, c := range append(s.of("worker"), s.of("")...) {
			events = append(events, c.Event)
		}
		require.Len(s.t, events, 5)
		for i, e := range events {
			assert.Equal(s.t, key, e.Key)
			switch i {
			case 0, 1: // ltNop
				assert.Equal(s.t, "worker", e.Client)
				assert.Equal(s.t, processlock.ModeShared, e.Mode)
				assert.Equal(s.t, "github.com/dbx-tools/processlock_test.ltNop", e.Func)
				assert.Contains(s.t, e.File, "lt_test.go")
				assert.NotZero(s.t, e.Line)
				assert.NoError(s.t, e.Err)
			case 2: // refused
				assert.Equal(s.t, "Failed", s.of("worker")[2].kind)
				assert.ErrorIs(s.t, e.Err, processlock.ErrClosed)
			default: // a method value
				assert.Equal(s.t, "", e.Client)
				assert.Equal(s.t, processlock.ModeExclusive, e.Mode)
				assert.Equal(s.t, "github.com/dbx-tools/processlock_test.(*htScene).method", e.Func)
				assert.Empty(s.t, e.File)
				assert.Zero(s.t, e.Line)
			}
		}
		// WithLockValue's wrapper is not its caller's function.
		_, err := processlock.WithLockValue(processlock.WithCoordinator(s.ctx, s.c), "v", htValue)
		require.NoError(s.t, err)
		assert.Contains(s.t, s.of("")[2].Func, "htValue")
	})
}

func (s *htScene) method(context.Context) error { return nil }

func htValue(context.Context) (int, error) { return 1, nil }

func htClosed(ctx context.Context, client *processlock.Client) context.Context {
	client.Close()
	return ctx
}
