package processlock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// The warning says where the functions begin, and is given with the request's
// context.
func TestSlowWarningSaysWhoAndWhere(t *testing.T) {
	lines := &htLines{}
	handler := &htContexts{Handler: slog.NewJSONHandler(lines, nil)}
	opts := processlock.Options{SlowWait: time.Second, SlowHold: time.Second, Logger: slog.New(handler)}
	ltBubbleWith(t, opts, func(t *testing.T, c *processlock.Coordinator) {
		type tag struct{}
		holder := make(chan struct{})
		go func() {
			_ = c.WithLock(context.WithValue(t.Context(), tag{}, "holder"), []any{"invoice", 7}, func(context.Context) error { <-holder; return nil })
		}()
		htLater(2)
		waiter, client := c.WithClient(context.WithValue(t.Context(), tag{}, "waiter"), "nosy <one>\n")
		defer client.Close()
		assert.ErrorIs(t, c.WithLock(waiter, []any{"invoice", 7}, ltNop, processlock.MaxWait(time.Second)), processlock.ErrWaitTimeout)
		close(holder)
		synctest.Wait()
		got := []map[string]any{}
		for _, line := range lines.take() {
			m := map[string]any{}
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			delete(m, "time")
			got = append(got, m)
		}
		const fn = "github.com/dbx-tools/processlock_test.TestSlowWarningSaysWhoAndWhere.func1"
		require.Len(t, got, 2)
		by := got[0]["by"].(map[string]any)
		assert.Contains(t, by["func"], fn)
		assert.Regexp(t, `^slow_logger_test.go:\d+$`, by["source"])
		assert.Equal(t, map[string]any{
			"level": "WARN", "msg": "processlock: slow hold of a lock, still held", "key": `["invoice",7]`,
			"by": map[string]any{"func": by["func"], "source": by["source"]}, "held": 2e9, "queue": 1.0,
		}, got[0])
		me := got[1]["by"].(map[string]any)
		assert.Regexp(t, `^lt_test.go:\d+$`, me["source"])
		assert.Equal(t, map[string]any{
			"level": "WARN", "msg": "processlock: slow wait for a lock", "key": `["invoice",7]`,
			"by":     map[string]any{"client": "nosy <one>\n", "func": "github.com/dbx-tools/processlock_test.ltNop", "source": me["source"]},
			"holder": by, "waited": 1e9, "queue": 1.0, "error": "not available within MaxWait",
		}, got[1])
		require.Len(t, handler.seen, 2)
		for _, ctx := range handler.seen {
			assert.Equal(t, "waiter", ctx.Value(tag{}))
		}
	})
}

// htContexts keeps the contexts of records.
type htContexts struct {
	slog.Handler
	seen []context.Context
}

func (h *htContexts) Handle(ctx context.Context, r slog.Record) error {
	h.seen = append(h.seen, ctx)
	return h.Handler.Handle(ctx, r)
}

// Without a Logger slog's default gets the warnings, whichever that is then.
func TestSlowWarningsGoToTheDefaultLogger(t *testing.T) {
	ctInChild(t, func(t *testing.T) {
		c := processlock.New(processlock.Options{SlowHold: time.Millisecond})
		lines := &htLines{}
		slog.SetDefault(slog.New(slog.NewTextHandler(lines, nil)))
		require.NoError(t, c.WithLock(t.Context(), "k", func(context.Context) error { time.Sleep(time.Millisecond); return nil }))
		got := lines.take()
		require.Len(t, got, 1)
		assert.Regexp(t, `^"processlock: slow hold of a lock" `, got[0])
	})
}

// There is no timer and no goroutine: nobody is there to say anything before
// somebody comes or goes.
//
// Rule 35.
func TestSlowNeedsNoTimerAndNoGoroutine(t *testing.T) {
	lines := &htLines{}
	opts := processlock.Options{SlowWait: 1, SlowHold: 1, Logger: slog.New(slog.NewTextHandler(lines, nil))}
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		c := processlock.New(opts)
		a := ltGo(t.Context(), c, "k")
		b := ltGo(t.Context(), c, "k")
		assert.LessOrEqual(t, runtime.NumGoroutine(), before+2)
		htLater(3600)
		assert.Empty(t, lines.take())
		a.open()
		b.open()
		assert.Len(t, lines.take(), 2)
	})
}

// A logger that calls back or panics is as a hook that does.
//
// Rules 36 and 42.
func TestSlowLoggerMayCallBackAndPanic(t *testing.T) {
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprintf("panics=%t", panics), func(t *testing.T) {
			log, h := &htLog{}, &htCaller{panics: panics}
			ltBubbleWith(t, processlock.Options{
				SlowWait: time.Second, SlowHold: time.Second, Logger: slog.New(h), Hooks: log.hooks(),
			}, func(t *testing.T, c *processlock.Coordinator) {
				h.c = c
				as := func(name string) context.Context { ctx, _ := c.WithClient(t.Context(), name); return ctx }
				how := "return"
				if panics {
					how = "panic"
				}
				calls := []*ltCall{ltGo(as("a"), c, "k")}
				htLater(0.5)
				calls = append(calls, ltGo(as("b"), c, "k"), ltGo(as("c"), c, "k", processlock.MaxWait(time.Second)))
				htLater(0.75)
				calls = append(calls, ltGo(as("d"), c, "k")) // warns of a
				htLater(1)                                   // c warns
				calls[0].open()                              // b warns of its wait
				htLater(2)
				for _, call := range calls[1:] { // and of their holds
					if call.ended() == "" {
						call.open()
					}
				}
				htLater(2)
				for i, call := range calls {
					want := how
					if i == 0 {
						want = "return" // d has warned of it
					}
					assert.Equal(t, want, call.ended(), "call %d", i)
				}
				assert.NotZero(t, h.called.Load())
				for name, want := range map[string][]string{"a": {"Acquired", "Released"}, "b": {"Waiting", "Acquired", "Released"}, "c": {"Waiting", "Failed"}} {
					assert.Equal(t, want, htKinds(log.of(name)), name)
				}
				assert.NoError(t, processlock.CTLeft(c))
			})
		})
	}
}

// htCaller is a handler that calls back, or panics.
type htCaller struct {
	slog.Handler
	c      *processlock.Coordinator
	panics bool
	called atomic.Int64
	busy   sync.Map // the goroutines that are calling back
}

func (h *htCaller) Enabled(context.Context, slog.Level) bool { return true }

func (h *htCaller) Handle(context.Context, slog.Record) error {
	me := htGoroutine()
	if _, busy := h.busy.LoadOrStore(me, true); busy {
		return nil
	}
	defer h.busy.Delete(me)
	h.called.Add(1)
	if h.panics {
		panic("logger's")
	}
	ctCallback(h.c, "k", "l")
	return nil
}
