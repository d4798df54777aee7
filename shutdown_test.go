package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// ctShutdown calls Shutdown on a goroutine of its own.
type ctShutdown struct {
	over chan struct{}
	err  error
}

func ctShut(c *processlock.Coordinator, ctx context.Context) *ctShutdown {
	s := &ctShutdown{over: make(chan struct{})}
	go func() {
		defer close(s.over)
		s.err = c.Shutdown(ctx)
	}()
	return s
}

// Rule 29.
func TestField_N2_ShutdownEndsWaitsRefusesCallsAndLetsHoldersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		busy := ctHold(t, &c, t.Context(), "k")
		reader := ctHold(t, &c, t.Context(), "r", processlock.Shared)
		waits := []*ctCall{
			ctStart(t, &c, t.Context(), "k"),
			ctStart(t, &c, context.Background(), "k", processlock.Shared),
			ctStart(t, &c, t.Context(), "r", processlock.MaxWait(time.Hour)),
		}
		synctest.Wait()

		shutdown := ctShut(&c, t.Context())
		synctest.Wait()
		for _, w := range waits {
			require.True(t, w.ended())
			require.False(t, w.ran())
			ctRequireClosed(t, w.err)
		}
		for _, opts := range [][]processlock.Option{
			nil, {processlock.Shared}, {processlock.IfAvailable}, {processlock.Reentrant}, {processlock.MaxWait(1)},
		} {
			for _, key := range []any{"k", "r", "free", processlock.All(1, 2)} {
				ctRequireClosed(t, c.WithLock(t.Context(), key, ctNever(t), opts...))
			}
		}

		require.True(t, busy.running() && reader.running())
		require.NoError(t, busy.fnCtx.Err(), "a running fn is not disturbed")
		require.NoError(t, busy.finish())
		synctest.Wait()
		require.False(t, ctClosed(shutdown.over), "a key is held")
		require.NoError(t, reader.finish())
		<-shutdown.over
		require.NoError(t, shutdown.err)

		s := c.Stats()
		require.EqualValues(t, 3, s.Closed, "refused calls are counted nowhere")
		require.EqualValues(t, 2, s.Acquired)
		ctRequireIdle(t, &c)
	})
}

// Shutdown looks at what is held before it looks at its context.
//
// Rule 29.
func TestShutdownWithNothingHeldIsNilUnderADoneContext(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name   string
		before func(c *processlock.Coordinator)
	}{
		{"never used", func(*processlock.Coordinator) {}},
		{"used", func(c *processlock.Coordinator) { _ = c.WithLock(t.Context(), "k", ctNop) }},
		{"shut down before", func(c *processlock.Coordinator) { _ = c.Shutdown(t.Context()) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			var c processlock.Coordinator
			row.before(&c)
			require.NoError(t, c.Shutdown(done))
			require.NoError(t, c.Shutdown(done))
			ctRequireClosed(t, c.WithLock(t.Context(), "k", ctNever(t)))
		})
	}
}

// Rules 9 and 29.
func TestShutdownThatIsCutShortTellsTheContextsErrorAndCause(t *testing.T) {
	why := errors.New("why")
	for _, row := range []struct {
		name string
		ctx  func(t *testing.T, ctx context.Context) context.Context
		want []error
	}{
		{"canceled before", func(t *testing.T, ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(why)
			return ctx
		}, []error{context.Canceled, why}},
		{"canceled meanwhile", func(t *testing.T, ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Minute, func() { cancel(why) })
			return ctx
		}, []error{context.Canceled, why}},
		{"deadline", func(t *testing.T, ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			t.Cleanup(cancel)
			return ctx
		}, []error{context.DeadlineExceeded}},
		{"deadline with a cause", func(t *testing.T, ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, why)
			t.Cleanup(cancel)
			return ctx
		}, []error{context.DeadlineExceeded, why}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c processlock.Coordinator
				busy := ctHold(t, &c, t.Context(), "k")
				waits := ctStart(t, &c, t.Context(), "k")
				synctest.Wait()
				err := c.Shutdown(row.ctx(t, t.Context()))
				for _, want := range row.want {
					require.ErrorIs(t, err, want)
				}
				require.False(t, errors.As(err, new(*processlock.AcquireError)), "no lock was asked for")
				require.Contains(t, err.Error(), "processlock: ")
				ctRequireClosed(t, waits.finish())
				ctRequireClosed(t, c.WithLock(t.Context(), "free", ctNever(t)))

				again := ctShut(&c, t.Context())
				synctest.Wait()
				require.False(t, ctClosed(again.over))
				require.NoError(t, busy.finish())
				<-again.over
				require.NoError(t, again.err)
			})
		})
	}
}

// Rule 29.
func TestConcurrentShutdownsEachWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		busy := ctHold(t, &c, t.Context(), "k")
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var shutdowns []*ctShutdown
		for i := range 10 {
			ctx := t.Context()
			if i%2 == 1 {
				ctx = short
			}
			shutdowns = append(shutdowns, ctShut(&c, ctx))
		}
		time.Sleep(time.Hour)
		for i, s := range shutdowns {
			require.Equal(t, i%2 == 1, ctClosed(s.over))
		}
		require.NoError(t, busy.finish())
		for i, s := range shutdowns {
			<-s.over
			if i%2 == 1 {
				require.ErrorIs(t, s.err, context.DeadlineExceeded)
			} else {
				require.NoError(t, s.err)
			}
		}
	})
}

// However the last hold ends, Shutdown returns.
//
// Rules 15, 25 and 29.
func TestShutdownReturnsHoweverTheLastHoldEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(client *processlock.Client, later <-chan struct{})
	}{
		{"return", func(*processlock.Client, <-chan struct{}) {}},
		{"panic", func(*processlock.Client, <-chan struct{}) { panic("boom") }},
		{"Goexit", func(*processlock.Client, <-chan struct{}) { runtime.Goexit() }},
		{"lost", func(client *processlock.Client, later <-chan struct{}) { client.Close(); <-later }},
	} {
		for _, queued := range []bool{false, true} {
			t.Run(row.name+map[bool]string{true: " after a wait"}[queued], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c processlock.Coordinator
					ctx, client := c.WithClient(t.Context(), "w")
					defer client.Close()
					busy := ctHold(t, &c, t.Context(), "k")
					if !queued {
						require.NoError(t, busy.finish())
					}
					started, gate := make(chan struct{}), make(chan struct{})
					later, over := make(chan struct{}), make(chan struct{})
					go func() {
						defer close(over)
						defer func() { _ = recover() }()
						_ = c.WithLock(ctx, "k", func(context.Context) error {
							close(started)
							<-gate
							row.end(client, later)
							return nil
						})
					}()
					synctest.Wait()
					_ = busy.finish()
					<-started
					shutdown := ctShut(&c, t.Context())
					synctest.Wait()
					require.False(t, ctClosed(shutdown.over))
					close(gate)
					<-shutdown.over
					require.NoError(t, shutdown.err)
					close(later)
					<-over
					ctRequireIdle(t, &c)
				})
			})
		}
	}
}

// Each call registers a channel to be told on; one that gives up must leave
// none behind, and the others must still be told.
//
// Rule 29.
func TestShutdownsThatGiveUpDisturbNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		busy := ctHold(t, &c, t.Context(), "k")
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Second)
				defer cancel()
				assert.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded)
			})
		}
		patient := ctShut(&c, t.Context())
		all.Wait()
		require.Zero(t, processlock.CTShutdowns(&c)-1, "those that wait for the end")
		require.NoError(t, busy.finish())
		<-patient.over
		require.NoError(t, patient.err)
		require.Zero(t, processlock.CTShutdowns(&c))
	})
}
