package processlock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
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

// htLines collects what a logger writes.
type htLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *htLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// take returns the lines since the last take, without their time and without
// where functions are declared.
func (l *htLines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := []string{}
	for line := range bytes.Lines(l.buf.Bytes()) {
		line = regexp.MustCompile(`^time=\S+ level=WARN msg=`).ReplaceAll(bytes.TrimSpace(line), nil)
		line = regexp.MustCompile(` \w+\.(func|source)=\S+`).ReplaceAll(line, nil)
		lines = append(lines, string(line))
	}
	l.buf.Reset()
	return lines
}

// htSlow runs fn in a bubble with a coordinator that warns of what takes a
// second.
func htSlow(t *testing.T, fn func(s *htScene, warned func(want ...string))) {
	lines := &htLines{}
	logger := slog.New(slog.NewTextHandler(lines, nil))
	htBubble(t, processlock.Options{SlowWait: time.Second, SlowHold: time.Second, Logger: logger}, func(s *htScene) {
		fn(s, func(want ...string) {
			t.Helper()
			// In no order: who hands a key on warns beside who gets it.
			assert.ElementsMatch(t, want, lines.take())
		})
	})
}

const (
	htSlowWait  = `"processlock: slow wait for a lock" `
	htSlowHold  = `"processlock: slow hold of a lock" `
	htStillHeld = `"processlock: slow hold of a lock, still held" `
)

func htKey(name string) string { return fmt.Sprintf(`key="[\"%s\"]" `, name) }

// A wait is judged when it ends, in whatever way, and once.
func TestSlowWaitIsWarnedOfWhenItEnds(t *testing.T) {
	htSlow(t, func(s *htScene, warned func(...string)) {
		k := htKey("k")
		a, b := s.start("a", "k"), s.start("b", "k")
		htLater(0.999)
		a.open()
		warned() // too short, both
		c := s.start("c", "k", processlock.MaxWait(10*time.Second))
		ctx, cancel := context.WithCancelCause(s.ctx)
		d := ltGo(ctx, s.c, "k")
		e := s.start("e", "k")
		htLater(1)
		warned()
		b.open()
		warned( // b's hold, and c's wait: there was one in the queue when it had come
			htSlowHold+k+"by.client=b held=1s queue=3",
			htSlowWait+k+"by.client=c waited=1s holder.client=b queue=1")
		htLater(1)
		cancel(errors.New("enough"))
		synctest.Wait()
		ltRefused(t, d, context.Canceled)
		warned(
			htStillHeld+k+"by.client=c held=1s queue=2",
			htSlowWait+k+`waited=2s holder.client=c queue=2 error="context canceled: enough"`)
		c.open()
		warned(htSlowWait + k + "by.client=e waited=2s holder.client=b queue=3")
		f := s.start("f", "k", processlock.MaxWait(999*time.Millisecond))
		htLater(0.9995)
		ltRefused(t, f, processlock.ErrWaitTimeout)
		e.open()
		warned()
		assert.Equal(t, "over", c.state())
	})
}

// A hold is judged when it ends, if nobody was kept from its key.
func TestSlowHoldIsWarnedOfWhenItEnds(t *testing.T) {
	htSlow(t, func(s *htScene, warned func(...string)) {
		a := s.start("a", "k")
		htLater(0.999)
		a.open()
		warned()
		b := s.start("b", "k")
		htLater(3600)
		warned()
		b.open()
		warned(htSlowHold + htKey("k") + "by.client=b held=1h0m0s queue=0")
		shared := []*ltCall{s.start("c", "k", processlock.Shared), s.start("d", "k", processlock.Shared)}
		htLater(1)
		shared[1].open()
		shared[0].open()
		warned(
			htSlowHold+htKey("k")+"by.client=d held=1s queue=0",
			htSlowHold+htKey("k")+"by.client=c held=1s queue=0")
		ctx, _ := s.as("e")
		e := ltGoLast(ctx, s.c, "k", func(context.Context) error { panic("fn's") })
		htLater(2)
		e.open()
		warned(htSlowHold + htKey("k") + "by.client=e held=2s queue=0")
	})
}

// Others judge a hold when they come to wait and when they give up, once for
// each hold, whoever of them it is.
func TestSlowHoldIsWarnedOfByThoseKeptWaiting(t *testing.T) {
	htSlow(t, func(s *htScene, warned func(...string)) {
		k := htKey("k")
		a := s.start("a", "k", processlock.Shared)
		htLater(0.5)
		b := s.start("b", "k", processlock.Shared)
		c := s.start("c", "k", processlock.MaxWait(900*time.Millisecond)) // finds none slow
		htLater(0.6)
		warned()
		ltRefused(t, s.start("i", "k", processlock.IfAvailable), processlock.ErrUnavailable)
		warned() // nobody kept waiting
		d := s.start("d", "k", processlock.MaxWait(900*time.Millisecond))
		warned(htStillHeld + k + "by.client=a held=1.1s queue=2")
		htLater(0.3) // c gives up when b has held for 0.9 s
		warned()
		ltRefused(t, c, processlock.ErrWaitTimeout)
		htLater(0.6)
		ltRefused(t, d, processlock.ErrWaitTimeout)
		warned(htStillHeld + k + "by.client=b held=1.5s queue=1")
		e := s.start("e", "k")
		b.open()
		a.open()
		warned() // of neither, once more
		assert.Equal(t, "runs", e.state())
		htLater(1) // in what may be the same place in the table
		e.open()
		warned(htSlowHold + k + "by.client=e held=1s queue=0")
	})
}

// A request refused for a deadlock has come to wait, so it warns of what it
// found.
func TestSlowHoldIsWarnedOfByADeadlock(t *testing.T) {
	htSlow(t, func(s *htScene, warned func(...string)) {
		ctxA, _ := s.as("a")
		ctxB, _ := s.as("b")
		a := ltGoLast(ctxA, s.c, "k1", func(ctx context.Context) error { return s.c.WithLock(ctx, "k2", ltNop) })
		b := ltGoLast(ctxB, s.c, "k2", func(ctx context.Context) error { return s.c.WithLock(ctx, "k1", ltNop) })
		htLater(0.5)
		a.open()
		warned()
		htLater(0.75)
		b.open()
		assert.ErrorIs(t, b.err, processlock.ErrDeadlock)
		warned(
			htStillHeld+htKey("k1")+"by.client=a held=1.25s queue=1",
			htSlowHold+htKey("k2")+"by.client=b held=1.25s queue=1")
	})
}

// What All has while it waits for more is held, and may be slow.
func TestSlowHoldOfAll(t *testing.T) {
	htSlow(t, func(s *htScene, warned func(...string)) {
		a := s.start("a", "k2")
		all := s.start("all", processlock.All("k1", "k2"))
		htLater(1)
		b := s.start("b", "k1", processlock.MaxWait(time.Millisecond))
		warned(htStillHeld + htKey("k1") + "by.client=all held=1s queue=1")
		htLater(0.5)
		ltRefused(t, b, processlock.ErrWaitTimeout)
		a.open()
		warned(
			htSlowHold+htKey("k2")+"by.client=a held=1.5s queue=1",
			htSlowWait+htKey("k2")+"by.client=all waited=1.5s holder.client=a queue=1")
		htLater(1)
		all.open()
		warned(htSlowHold + htKey("k2") + "by.client=all held=1s queue=0")
	})
}

// A hold that is lost has ended, and Close says so; so has what All had.
func TestSlowHoldThatIsLost(t *testing.T) {
	const lost = ` error="lock was lost while fn ran"`
	htSlow(t, func(s *htScene, warned func(...string)) {
		ctx, client := s.as("a")
		a := ltGo(ctx, s.c, "k")
		b := s.start("b", "k2")
		ctx, all := s.as("all")
		several := ltGo(ctx, s.c, processlock.All("k1", "k2"))
		htLater(2)
		client.Close()
		warned(htSlowHold + htKey("k") + "by.client=a held=2s queue=0" + lost)
		htLater(2)
		a.open()
		warned()
		all.Close()
		synctest.Wait()
		assert.ErrorIs(t, several.err, processlock.ErrClosed)
		warned(
			htSlowWait+htKey("k2")+`by.client=all waited=4s holder.client=b queue=1 error="context canceled: client or coordinator closed"`,
			htSlowHold+htKey("k1")+"by.client=all held=4s queue=0")
		b.open()
		warned(htSlowHold + htKey("k2") + "by.client=b held=4s queue=0")

	})
}

// What a waiter has warned of is not warned of once more by Close, or by the
// call of All from which Close takes it.
func TestSlowHoldThatIsLostAfterAWarning(t *testing.T) {
	htSlow(t, func(s *htScene, warned func(...string)) {
		ctx, client := s.as("a")
		a := ltGo(ctx, s.c, "k1")
		htLater(1)
		d := s.start("d", "k1")
		warned(htStillHeld + htKey("k1") + "by.client=a held=1s queue=1")
		client.Close()
		a.open()
		d.open()
		warned()

		b := s.start("b", "k2")
		several := s.start("all", processlock.All("k1", "k2"))
		htLater(1)
		d = s.start("d", "k1")
		warned(htStillHeld + htKey("k1") + "by.client=all held=1s queue=1")
		b.open()
		warned(
			htSlowHold+htKey("k2")+"by.client=b held=1s queue=1",
			htSlowWait+htKey("k2")+"by.client=all waited=1s holder.client=b queue=1")
		several.open()
		d.open()
		warned()

		b = s.start("b", "k2")
		ctx, client = s.as("all")
		several = ltGo(ctx, s.c, processlock.All("k1", "k2"))
		htLater(1)
		d = s.start("d", "k1")
		warned(htStillHeld + htKey("k1") + "by.client=all held=1s queue=1")
		client.Close()
		synctest.Wait()
		assert.ErrorIs(t, several.err, processlock.ErrClosed)
		warned(htSlowWait + htKey("k2") + `by.client=all waited=1s holder.client=b queue=1 error="context canceled: client or coordinator closed"`)
		d.open()
		b.open()
		warned(htSlowHold + htKey("k2") + "by.client=b held=1s queue=0")
	})
}

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
		assert.Regexp(t, `^slow_test.go:\d+$`, by["source"])
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
		assert.Equal(t, before+2, runtime.NumGoroutine())
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
