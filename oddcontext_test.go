package processlock

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// rtContext is a context of somebody's own: its methods do what they are told.
type rtContext struct {
	context.Context
	value atomic.Pointer[func()]
	done  chan struct{}
}

func (c *rtContext) Value(key any) any {
	if f := c.value.Load(); f != nil {
		(*f)()
	}
	return c.Context.Value(key)
}

func (c *rtContext) Done() <-chan struct{} {
	if c.done != nil {
		return c.done
	}
	return c.Context.Done()
}

// Cancelling a client's context calls into a hand-written parent. Whatever that
// does, the client's rows leave the table.
//
// Rules 25 and 36.
func TestCloseHandsOnThoughItsContextPanics(t *testing.T) {
	c := New(Options{})
	base, cancel := context.WithCancel(context.Background())
	defer cancel()
	parent := &rtContext{Context: base}
	ctx, client := c.WithClient(parent, "worker")
	err := c.WithLock(ctx, "k", func(context.Context) error {
		boom := func() { panic("Value") }
		parent.value.Store(&boom)
		assert.PanicsWithValue(t, "Value", client.Close)
		parent.value.Store(nil)
		assert.NoError(t, c.WithLock(context.Background(), "k", func(context.Context) error { return nil }, IfAvailable))
		return nil
	})
	assert.ErrorIs(t, err, ErrLost)
}

// While a client is being closed what it holds and waits for is about to go, so
// nobody is accused over it.
//
// Rule 32.
func TestDeadlockNotOverClientThatIsBeingClosed(t *testing.T) {
	for _, row := range []struct {
		name   string
		closes int // which of the two on the cycle
	}{{"its wait", 0}, {"its hold only", 1}} {
		t.Run(row.name, func(t *testing.T) {
			dtBubble(t, Options{}, func(d *dtScene) {
				base, cancel := context.WithCancel(context.Background())
				defer cancel()
				parent := &rtContext{Context: base}
				ctx, client := d.c.WithClient(parent, "closing")
				ctx = context.WithoutCancel(ctx)

				a := d.ask("a")
				b := d.askWith(ctx, "b")
				inner := b.ctx
				if row.closes == 1 {
					var other *Client
					inner, other = d.c.WithClient(context.WithoutCancel(b.ctx), "other")
					defer other.Close()
				}
				ba := d.askWith(inner, "a").mustWait()

				closing, goOn := make(chan struct{}), make(chan struct{})
				pause := func() {
					parent.value.Store(nil)
					close(closing)
					<-goOn
				}
				parent.value.Store(&pause)
				go client.Close()
				<-closing
				ab := a.ask("b").mustWait()
				close(goOn)
				synctest.Wait()
				ab.mustRun()
				ab.let()
				a.let()
				if row.closes == 1 {
					ba.mustRun()
				} else {
					ba.mustFail(ErrClosed)
				}
			})
		})
	}
}

// Once a call has returned, its context may be anybody's: frameworks reuse
// theirs. So nobody asks it any more, and a call returns only when nobody does.
//
// Rule 12.
func TestSearchAsksNoContextOfACallThatHasReturned(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		ctx, cancel := context.WithCancel(b.ctx)
		probe := &dtProbe{Context: ctx}
		ba := b.askRaw(probe, "a").mustWait()
		answer := dtPause(d, probe, 0)
		ab := a.ask("b").mustWait() // asks probe meanwhile
		cancel()
		synctest.Wait()
		ba.mustWait()
		answer()
		ba.mustFail(context.Canceled)
		ab.mustWait()

		// The other order: gone before it would be asked.
		c := d.ask("c")
		bc := b.ask("c").mustWait()
		own := &dtProbe{Context: c.ctx}
		answer = dtPause(d, own, 1)
		cb := c.askRaw(own, "b")
		cb.mustWait()
		bc.cancel()
		synctest.Wait()
		bc.mustFail(context.Canceled)
		answer()
		cb.mustWait()
	})
}

// Rule 41.
func TestCallWhoseContextPanicsIsCanceled(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		k := d.ask("k")
		ctx := &rtContext{Context: context.Background()}
		z := d.begin(nil, d.c, ctx, true, "z")
		synctest.Wait()
		before := d.c.Stats()
		calls := 0
		boom := func() {
			if calls++; calls == 2 { // 1: place, 2: the lineage, with the key seen held
				panic("Value")
			}
		}
		ctx.value.Store(&boom)
		zk := z.askRaw(z.ctx, "k")
		ctx.value.Store(nil)
		assert.Equal(d, "Value", zk.panicked)
		assert.Equal(d, before.Canceled+1, d.c.Stats().Canceled)
		k.let()
		z.let()
	})
}

// A Done that sends instead of closing ends the wait too, whatever it means by
// that.
//
// Rules 9 and 12.
func TestDoneThatSends(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		k := d.ask("k")
		ctx := &rtContext{Context: context.Background(), done: make(chan struct{})}
		x := d.begin(nil, d.c, ctx, true, "k")
		synctest.Wait()
		x.mustWait()
		ctx.done <- struct{}{}
		synctest.Wait()
		x.mustFail(context.Canceled)
		assert.NotErrorIs(d, x.err, ErrClosed)
		assert.EqualValues(d, 1, d.c.Stats().Canceled)
		k.let()
	})
}

// A nested wait takes time in proportion to its depth, not to its square.
//
// Rule 33.
func TestDeepLineageIsReadOnce(t *testing.T) {
	c := New(Options{})
	var seen atomic.Int64
	const depth = 200
	var nest func(ctx context.Context, i int) error
	count := func() { seen.Add(1) }
	nest = func(ctx context.Context, i int) error {
		if i < depth {
			next := &rtContext{Context: ctx}
			next.value.Store(&count)
			return c.WithLock(next, i, func(ctx context.Context) error { return nest(ctx, i+1) })
		}
		seen.Store(0)
		return c.WithLock(ctx, "busy", func(context.Context) error { return nil }, MaxWait(time.Millisecond))
	}
	err := c.WithLock(context.Background(), "busy", func(context.Context) error {
		return nest(context.Background(), 0)
	})
	assert.ErrorIs(t, err, ErrWaitTimeout)
	assert.LessOrEqual(t, seen.Load(), int64(4*depth))
}
