package processlock

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stretchr/testify/assert"
)

// rtPayload is what a context carries, to see when it is forgotten.
type rtPayload [1 << 12]byte

// rtLoad returns ctx with a payload, and whether that is still alive.
func rtLoad(ctx context.Context) (context.Context, func() bool) {
	p := new(rtPayload)
	ref := weak.Make(p)
	return context.WithValue(ctx, (*rtPayload)(nil), p), func() bool {
		runtime.GC()
		return ref.Value() != nil
	}
}

// A request that was granted after a nested wait stays in use while its fn
// runs. It must not keep those alive that waited under the same hold beside it
// and after it: a leader's fn may serve requests for days.
//
// Rules 12 and 34.
func TestRunningFnKeepsNoOtherWaitAlive(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		leader := d.ask("leader")
		long, busy := d.ask("long"), d.ask("busy")
		first := leader.ask("long").mustWait()
		var alive []func() bool
		var last *dtCall
		for i := range 10 {
			ctx, is := rtLoad(leader.ctx)
			alive = append(alive, is)
			next := leader.askWith(d.c, ctx, "busy").mustWait()
			if i == 0 {
				long.let()
				first.mustRun()
			}
			if last != nil {
				last.cancel()
				synctest.Wait()
			}
			last = next
		}
		last.cancel()
		synctest.Wait()
		last = nil
		d.calls = nil // the scene knows them all
		for i, is := range alive {
			assert.False(d, is(), "request %d is over, and kept alive", i)
		}
		first.let()
		leader.let()
		busy.let()
	})
}

// A search leaves nothing behind in those that it has reached.
//
// Rules 12 and 34.
func TestLongWaitKeepsNoSearchAlive(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		y, x := d.ask("y"), d.ask("x")
		long := x.ask("y").mustWait()
		ctx, alive := rtLoad(context.Background())
		func() {
			z := d.askWith(ctx, "z")
			zx := z.ask("x").mustWait() // its search reaches the long wait
			zx.cancel()
			synctest.Wait()
			z.let()
		}()
		ctx = nil
		d.calls = nil
		assert.False(d, alive())
		y.let()
		long.let()
		x.let()
	})
}

// A context that fn's caller has kept leads to one entry, not to those that
// were dropped before and after it when a burst went down.
//
// Rule 34.
func TestKeptContextKeepsOneEntry(t *testing.T) {
	c := New(Options{})
	const n = 100 * shardCount
	kept := make([]context.Context, n)
	var nest func(i int)
	nest = func(i int) {
		if i == n {
			return
		}
		err := c.WithLock(context.Background(), i, func(ctx context.Context) error {
			kept[i] = ctx
			nest(i + 1)
			return nil
		})
		assert.NoError(t, err)
	}
	nest(0)
	longest := 0
	for _, ctx := range kept {
		chain := 0
		for e := ctx.(*hold).entry; e != nil; e = e.next {
			chain++
		}
		longest = max(longest, chain)
	}
	assert.LessOrEqual(t, longest, 9, "the shard keeps 8 for reuse")
}
