package processlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// dtLingering is a call whose context is done, though its own goroutine hasn't
// found the time to leave the queue: that is what every cancelled wait is for
// an instant. Calling leave lets it.
func dtLingering(d *dtScene, ctx context.Context, key any, opts ...Option) (x *dtCall, leave func()) {
	d.Helper()
	ctx, cancel := context.WithCancel(ctx)
	probe := &dtProbe{Context: ctx}
	x = d.begin(nil, d.c, probe, true, key, opts...)
	synctest.Wait()
	x.mustWait()
	leave = dtPause(d, probe, 0)
	cancel()
	synctest.Wait()
	x.mustWait()
	return x, leave
}

// A partner whose context is done is about to leave. The search goes round it,
// and ends.
//
// Rules 31 and 32.
func TestDeadlockNotOverPartnerThatIsDone(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		partner, leave := dtLingering(d, a.ctx, "b")
		ba := b.ask("a").mustWait()
		leave()
		partner.mustFail(context.Canceled)
		ba.mustWait()
	})
	// There is another way round, further on or nearer.
	for _, first := range []bool{true, false} {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b, c := d.ask("a"), d.ask("b"), d.ask("c")
			if first {
				dtLingering(d, a.ctx, "b")
			}
			a.ask("c").mustWait()
			c.ask("b").mustWait()
			if !first {
				dtLingering(d, a.ctx, "b")
			}
			b.ask("a").mustBeVictim("a", "c", "b")
		})
	}
}

// A queued writer whose context is done is about to leave, so a reader behind
// it doesn't wait for the shared holders: neither for its own lineage's nor for
// one that waits for it.
//
// Rules 30 and 32.
func TestDeadlockNotOverWriterThatIsDone(t *testing.T) {
	t.Run("own shared hold", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a := d.ask("a", Shared)
			writer, leave := dtLingering(d, context.Background(), "a")
			aa := a.ask("a", Shared).mustWait()
			leave()
			writer.mustFail(context.Canceled)
			aa.mustRun()
		})
	})
	t.Run("cycle through a shared hold", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a", Shared), d.ask("b")
			a.ask("b").mustWait()
			writer, leave := dtLingering(d, context.Background(), "a")
			ba := b.ask("a", Shared).mustWait()
			leave()
			writer.mustFail(context.Canceled)
			ba.mustRun()
		})
	})
}

// As long as one writer ahead is not done, the reader waits for it, and it for
// the shared holders.
//
// Rules 30 and 31.
func TestDeadlockOverOneOfTwoWriters(t *testing.T) {
	for done := range 2 {
		dtBubble(t, Options{}, func(d *dtScene) {
			a, b := d.ask("a", Shared), d.ask("b")
			ab := a.ask("b").mustWait()
			if done == 0 {
				dtLingering(d, context.Background(), "a")
			}
			d.ask("a").mustWait()
			if done == 1 {
				dtLingering(d, context.Background(), "a")
			}
			a.ask("a", Shared).mustBeVictim("a")
			b.ask("a", Shared).mustBeVictim("a", "b")
			ab.mustWait()
		})
	}
}

// While a reader finds out that the writer ahead of it is done, another one may
// have come.
//
// Rule 30.
func TestDeadlockOverWriterThatCameMeanwhile(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a := d.ask("a", Shared)
		ctx, cancel := context.WithCancel(context.Background())
		probe := &dtProbe{Context: ctx}
		writer := d.begin(nil, d.c, probe, true, "a")
		synctest.Wait()
		answer := dtPause(d, probe, 0)
		aa := a.ask("a", Shared).mustWait() // asks the writer's context
		next := d.ask("a").mustWait()
		leave := dtPause(d, probe, 0)
		cancel() // the writer comes to its own pause
		synctest.Wait()
		answer()
		aa.mustBeVictim("a")
		leave()
		writer.mustFail(context.Canceled)
		a.let()
		next.mustRun()
	})
}

// A task that waits ahead may start while its context is asked.
//
// Rules 32 and 38: this is for the race detector.
func TestDeadlockNotOverATaskThatStartsMeanwhile(t *testing.T) {
	for _, key := range []any{"b", All("a", "b")} {
		dtBubble(t, Options{}, func(d *dtScene) {
			b := d.ask("b", Shared)
			ctx, cancel := context.WithCancel(context.Background())
			probe := &dtProbe{Context: ctx}
			d.begin(nil, d.c, probe, true, "b")
			synctest.Wait()
			g, _ := NewGroup(WithCoordinator(context.Background(), d.c), "g")
			g.GoLocked(key, func(context.Context) error { return nil })
			synctest.Wait()
			probe.arm(func() {
				cancel()
				b.tell()
				time.Sleep(time.Second) // until the task is over
			})
			again := b.ask("b", Shared) // asks the contexts ahead, the probe's first
			time.Sleep(2 * time.Second)
			again.mustFail(ErrDeadlock) // as it was when it asked
			require.NoError(t, g.Wait())
		})
	}
}
