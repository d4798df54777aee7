package processlock

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dtSearches counts the searches of the process so far.
func dtSearches() uint64 {
	waits.mu.Lock()
	defer waits.mu.Unlock()
	return waits.round
}

// Requests without lineage queue, are granted, canceled, timed out and closed
// while somebody else has the graph's mutex: they never ask for it.
//
// Rule 33.
func TestDeadlockGraphIsUntouchedWithoutLineage(t *testing.T) {
	c := New(Options{})
	waits.mu.Lock()
	defer waits.mu.Unlock()

	fn := func(context.Context) error { return nil }
	gate, held := make(chan struct{}), make(chan struct{})
	errs := make(chan error)
	go func() {
		errs <- c.WithLock(context.Background(), "a", func(context.Context) error {
			close(held)
			<-gate
			return nil
		})
	}()
	dtReceive(t, held)
	ctx, cancel := context.WithCancel(context.Background())
	closing, client := c.WithClient(context.Background(), "worker")
	for _, ask := range []func() error{
		func() error { return c.WithLock(context.Background(), "a", fn) },
		func() error { return c.WithLock(context.Background(), All("a"), fn, Shared) },
		func() error { return c.WithLock(ctx, "a", fn) },
		func() error { return c.WithLock(closing, "a", fn) },
		func() error { return c.WithLock(context.Background(), "a", fn, MaxWait(time.Millisecond)) },
		func() error { return c.WithLock(context.Background(), "a", fn, IfAvailable) },
	} {
		go func() { errs <- ask() }()
	}
	deadline := time.Now().Add(10 * time.Second)
	for c.Stats().Waited < 5 {
		require.True(t, time.Now().Before(deadline), "the requests don't queue")
		runtime.Gosched()
	}
	cancel()
	client.Close()
	got := make(map[string]int)
	for i := range 7 {
		if i == 4 { // canceled, closed, timed out and refused are in
			close(gate)
		}
		switch err := dtReceive(t, errs); {
		case err == nil:
			got["ok"]++
		default:
			got["failed"]++
		}
	}
	assert.Equal(t, map[string]int{"ok": 3, "failed": 4}, got)
}

// dtReceive receives from ch, in real time but not for ever.
func dtReceive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("blocked for 10 s")
		panic("unreachable")
	}
}

// What waits with a lineage is in the graph while it waits, under each of its
// holds, and searches once; whoever has none, or need not wait, isn't and
// doesn't.
//
// Rules 32 and 33.
func TestDeadlockGraphHoldsWhoWaits(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		start := dtSearches()
		expect := func(holds int, searches uint64) {
			d.Helper()
			require.Equal(d, holds, dtGraphSize())
			require.Equal(d, searches, dtSearches()-start)
		}
		a, z := d.ask("a"), d.ask("z")
		d.ask("a").mustWait()
		d.askWith(Detach(a.ctx), "a").mustWait()
		expect(0, 0)

		b := a.ask("b").mustRun()
		b.ask("z", IfAvailable).mustFail(ErrUnavailable)
		b.ask("a", Reentrant).mustRun()
		b.ask("a").mustBeVictim("a")
		expect(0, 0)

		granted := b.ask("z").mustWait()
		expect(2, 1)
		canceled := a.ask("z").mustWait()
		timed := a.ask("z", MaxWait(time.Second)).mustWait()
		all := d.ask(All("c", "d", "z"), Shared).mustWait()
		expect(4, 4)

		canceled.cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		canceled.mustFail(context.Canceled)
		timed.mustFail(ErrWaitTimeout)
		expect(4, 4)

		z.let()
		granted.mustRun()
		all.mustWait()
		expect(2, 4)
		granted.let()
		all.mustRun()
		expect(0, 4)
	})
}

// Whatever ends a wait with a lineage takes it out of the graph.
//
// Rules 32 and 33.
func TestDeadlockGraphForgets(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(d *dtScene, a, z, x *dtCall)
	}{
		{"grant", func(_ *dtScene, _, z, _ *dtCall) { z.let() }},
		{"cancel", func(_ *dtScene, _, _, x *dtCall) { x.cancel() }},
		{"outer cancel", func(_ *dtScene, a, _, _ *dtCall) { a.cancel() }},
		{"MaxWait", func(*dtScene, *dtCall, *dtCall, *dtCall) { time.Sleep(time.Minute) }},
		{"verdict", func(_ *dtScene, _, z, x *dtCall) {
			z.ask("a").mustBeVictim("a", "z")
			x.cancel()
		}},
		{"grant and cancel", func(_ *dtScene, _, z, x *dtCall) { z.tell(); x.cancel() }},
		{"grant and MaxWait", func(_ *dtScene, _, z, _ *dtCall) {
			time.Sleep(time.Minute - time.Nanosecond)
			z.tell()
			time.Sleep(time.Nanosecond)
		}},
		{"Shutdown of the holder's coordinator", func(d *dtScene, a, _, x *dtCall) {
			done, cancel := context.WithCancel(context.Background())
			cancel()
			_ = d.c.Shutdown(done)
			x.mustWait() // it belongs to a running fn
			x.cancel()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dtBubble(t, Options{}, func(d *dtScene) {
				a, z := d.ask("a"), d.ask("z")
				x := a.ask("z", MaxWait(time.Minute)).mustWait()
				require.Equal(t, 1, dtGraphSize())
				tt.end(d, a, z, x)
				synctest.Wait()
				assert.Zero(t, dtGraphSize())
				waits.mu.Lock()
				assert.Nil(t, waits.under, "a map never shrinks")
				waits.mu.Unlock()
			})
		})
	}
	t.Run("Client.Close", func(t *testing.T) {
		dtBubble(t, Options{}, func(d *dtScene) {
			ctx, client := d.c.WithClient(context.Background(), "worker")
			a := d.ask("a")
			d.ask("z")
			b := d.askWith(ctx, "b")
			x := b.ask("a").mustWait()
			require.Equal(t, 1, dtGraphSize())
			client.Close()
			synctest.Wait()
			x.mustFail(ErrClosed)
			assert.Zero(t, dtGraphSize())
			a.ask("b").mustRun()
		})
	})
}
