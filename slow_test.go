package processlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

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
		several := ltGo(context.WithoutCancel(ctx), s.c, processlock.All("k1", "k2")) // it is Close that ends the wait
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
			htSlowWait+htKey("k2")+`by.client=all waited=4s holder.client=b queue=1 error="client or coordinator closed"`,
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
		several = ltGo(context.WithoutCancel(ctx), s.c, processlock.All("k1", "k2")) // it is Close that ends the wait
		htLater(1)
		d = s.start("d", "k1")
		warned(htStillHeld + htKey("k1") + "by.client=all held=1s queue=1")
		client.Close()
		synctest.Wait()
		assert.ErrorIs(t, several.err, processlock.ErrClosed)
		warned(htSlowWait + htKey("k2") + `by.client=all waited=1s holder.client=b queue=1 error="client or coordinator closed"`)
		d.open()
		b.open()
		warned(htSlowHold + htKey("k2") + "by.client=b held=1s queue=0")
	})
}

// Who has marked a hold as warned of warns of it, though a hook of its own panics
// before.
func TestSlowHoldIsWarnedOfThoughTheWaitingHookPanics(t *testing.T) {
	htSlow(t, func(s *htScene, warned func(...string)) {
		defer s.c.AddHooks(htEnding("Waiting", "b", "hook's", false))()
		a := s.start("a", "k")
		htLater(1)
		ctx, _ := s.as("b")
		assert.PanicsWithValue(t, "hook's", func() { _ = s.c.WithLock(ctx, "k", ltNop) })
		warned(htStillHeld + htKey("k") + "by.client=a held=1s queue=1")
		a.open()
		warned()
	})
}
