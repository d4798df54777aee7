package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

type ctKey struct{ name string }

// Rule 24.
func TestClientContextKeepsValuesAndDeadlineAndEndsWithErrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		parent := context.WithValue(t.Context(), ctKey{"v"}, 7)
		parent, cancel := context.WithTimeout(parent, time.Hour)
		defer cancel()

		ctx, client := c.WithClient(parent, "w1")
		require.Equal(t, "w1", client.Name())
		require.Equal(t, 7, ctx.Value(ctKey{"v"}))
		want, _ := parent.Deadline()
		got, ok := ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, want, got)
		require.NoError(t, ctx.Err())

		client.Close()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.Equal(t, processlock.ErrClosed, context.Cause(ctx))
		require.NoError(t, parent.Err(), "closing a client ends nobody else's context")
		require.Equal(t, "w1", client.Name(), "a closed client still has its name")
	})
}

// Rule 24.
func TestClientContextEndsWithItsParent(t *testing.T) {
	why := errors.New("why")
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, client := processlock.WithClient(parent, "w")
	defer client.Close()
	cancel(why)
	require.Equal(t, why, context.Cause(ctx))
}

// The package-level WithClient makes a client of the coordinator that ctx
// names; the method makes one of its own coordinator and reroutes nothing.
//
// Rule 24.
func TestInnermostClientOfTheAskedCoordinatorCounts(t *testing.T) {
	var a, b processlock.Coordinator
	ctx := processlock.WithCoordinator(t.Context(), &a)
	ctx, a1 := processlock.WithClient(ctx, "a1")
	defer a1.Close()
	ctx, b1 := b.WithClient(ctx, "b1")
	defer b1.Close()
	inner, a2 := a.WithClient(ctx, "a2")
	defer a2.Close()
	inner, b2 := b.WithClient(inner, "b2")
	defer b2.Close()

	for _, row := range []struct {
		name string
		c    *processlock.Coordinator
		ctx  context.Context
		want string
	}{
		{"none", &a, t.Context(), ""},
		{"below another coordinator's", &a, ctx, "a1"},
		{"own", &b, ctx, "b1"},
		{"innermost, below another's", &a, inner, "a2"},
		{"innermost", &b, inner, "b2"},
		{"WithoutCancel", &a, context.WithoutCancel(inner), "a2"},
		{"Detach", &b, processlock.Detach(inner), "b2"},
		{"a value added", &a, context.WithValue(ctx, ctKey{"x"}, 1), "a1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.c.WithLock(row.ctx, "k", func(ctx context.Context) error {
				require.Equal(t, row.want, row.c.Snapshot().Locks[0].Holders[0].Client)
				// The client reaches what is called with fn's context, with or
				// without the lineage.
				for _, ctx := range []context.Context{ctx, processlock.Detach(ctx), context.WithoutCancel(ctx)} {
					err := row.c.WithLock(ctx, "nested", func(context.Context) error {
						for _, l := range row.c.Snapshot().Locks {
							require.Equal(t, row.want, l.Holders[0].Client)
						}
						return nil
					})
					require.NoError(t, err)
				}
				return nil
			})
			require.NoError(t, err)
		})
	}

	err := processlock.WithLock(inner, "k", func(context.Context) error {
		require.Len(t, a.Snapshot().Locks, 1, "b's clients moved a lock")
		return nil
	})
	require.NoError(t, err)
}

// Rule 24.
func TestClientOfAnotherCoordinatorActsThroughItsContextOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b processlock.Coordinator
		ctx, a1 := a.WithClient(t.Context(), "a1")
		defer a1.Close()
		ctx, b1 := b.WithClient(ctx, "b1")

		held := ctHold(t, &a, ctx, "held")
		busy := ctHold(t, &a, t.Context(), "busy")
		waiter := ctStart(t, &a, ctx, "busy")
		kept := ctStart(t, &a, context.WithoutCancel(ctx), "busy")
		synctest.Wait()

		b1.Close()
		synctest.Wait()
		require.True(t, waiter.ended(), "the wait ends with the context")
		require.ErrorIs(t, waiter.err, context.Canceled)
		require.ErrorIs(t, waiter.err, processlock.ErrClosed, "the context's cause")
		require.False(t, kept.ended(), "a request without that context goes on waiting")

		require.Error(t, held.fnCtx.Err())
		require.NoError(t, held.finish(), "a's hold is not lost")
		require.NoError(t, busy.finish())
		require.NoError(t, kept.finish())
		require.EqualValues(t, 1, a.Stats().Canceled)
		require.Zero(t, a.Stats().Closed)
		require.Zero(t, a.Stats().Lost)
		ctRequireIdle(t, &a)
	})
}

// Closing the outer of two clients of one coordinator ends the inner's context
// and nothing else: its holds are the inner client's.
//
// Rule 24.
func TestClosingAnOuterClientLeavesTheInnersHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		ctx, outer := c.WithClient(t.Context(), "outer")
		ctx, inner := c.WithClient(ctx, "inner")
		held := ctHold(t, &c, ctx, "k")
		next := ctStart(t, &c, t.Context(), "k")
		synctest.Wait()

		outer.Close()
		synctest.Wait()
		require.Equal(t, processlock.ErrClosed, context.Cause(ctx))
		require.False(t, next.ran(), "the inner client's hold was handed on")
		require.NoError(t, c.WithLock(context.WithoutCancel(ctx), "other", ctNop), "the inner client is open")

		inner.Close()
		synctest.Wait()
		require.True(t, next.running())
		require.Equal(t, processlock.ErrLost, held.finish())
		require.NoError(t, next.finish())
		ctRequireIdle(t, &c)
	})
}

// What a client registers on its parent goes with Close, so that a long-lived
// parent keeps nothing of its workers.
//
// Rule 24.
func TestClosedClientIsNotKeptByItsParent(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := func() weak.Pointer[processlock.Client] {
		ctx, client := processlock.WithClient(parent, "w")
		_ = processlock.WithLock(ctx, t.Name(), ctNop)
		client.Close()
		return weak.Make(client)
	}()
	for range 10 {
		if client.Value() == nil {
			break
		}
		runtime.GC()
	}
	require.Nil(t, client.Value())
	runtime.KeepAlive(parent)
}

// The context ends for the reason that came first, and a refused or ended call
// tells that reason, whatever closes later.
//
// Rule 25.
func TestContextThatEndedEarlierIsTheOnlyReason(t *testing.T) {
	why := errors.New("why")
	for _, row := range []struct {
		name string
		end  func(cancel context.CancelCauseFunc)
		want []error
	}{
		{"canceled", func(cancel context.CancelCauseFunc) { cancel(why) }, []error{context.Canceled, why}},
		{"deadline", func(context.CancelCauseFunc) { time.Sleep(time.Minute) }, []error{context.DeadlineExceeded}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c processlock.Coordinator
				parent, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				parent, stop := context.WithTimeout(parent, time.Minute)
				defer stop()
				ctx, client := c.WithClient(parent, "w")
				busy := ctHold(t, &c, t.Context(), "k")

				// A wait that is over but has not resumed when Close comes.
				slow := ctSlowly(ctx)
				waiter := ctStart(t, &c, slow, "k")
				synctest.Wait()
				slow.armed.Store(true)
				row.end(cancel)
				<-slow.asked
				client.Close()
				close(slow.gate)
				<-waiter.over
				refused := c.WithLock(ctx, "free", ctNever(t))

				for _, err := range []error{waiter.err, refused} {
					for _, want := range row.want {
						require.ErrorIs(t, err, want)
					}
					require.NotErrorIs(t, err, processlock.ErrClosed)
				}
				require.NoError(t, busy.finish())
				require.EqualValues(t, 1, c.Stats().Canceled)
				require.Zero(t, c.Stats().Closed)
				ctRequireIdle(t, &c)
			})
		})
	}
}
