package processlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// dtCrowd is many nested waiters: waiter i holds one key and waits for another.
type dtCrowd struct {
	c    *Coordinator
	free chan struct{} // ends the holds that wait for nothing
	all  sync.WaitGroup
}

func dtNop(context.Context) error { return nil }

// dtShapes lay out n waiters around a request that comes from an fn holding the
// key "mine" and wants the key that is returned. reach is how many waits it
// needs; if it is in a cycle, that is as long as reach and itself.
var dtShapes = []struct {
	name   string
	layOut func(tb testing.TB, d *dtCrowd, n int) (want any)
	reach  func(n int) int
	cycle  bool
}{
	// All wait for a key that the request has nothing to do with.
	{"none", func(tb testing.TB, d *dtCrowd, n int) any {
		d.hold(tb, "hot", "other")
		d.wait(tb, n, false, func(i int) (any, any) { return i, "hot" })
		return "other"
	}, func(int) int { return 0 }, false},

	// All wait for the key that the request waits for.
	{"queue", func(tb testing.TB, d *dtCrowd, n int) any {
		d.hold(tb, "hot")
		d.wait(tb, n, false, func(i int) (any, any) { return i, "hot" })
		return "hot"
	}, func(int) int { return 0 }, false},

	// All wait for the key that the request holds.
	{"behind", func(tb testing.TB, d *dtCrowd, n int) any {
		d.hold(tb, "other")
		d.wait(tb, n, false, func(i int) (any, any) { return i, "mine" })
		return "other"
	}, func(int) int { return 0 }, false},

	// All wait under the one hold that the request waits for.
	{"under", func(tb testing.TB, d *dtCrowd, n int) any {
		d.hold(tb, "hot")
		d.waitUnder(tb, "other", n, "hot")
		return "other"
	}, func(n int) int { return n }, false},

	// Each waits for the next.
	{"chain", func(tb testing.TB, d *dtCrowd, n int) any {
		d.hold(tb, n)
		d.wait(tb, n, true, func(i int) (any, any) { return i, i + 1 })
		return 0
	}, func(n int) int { return n }, false},

	// Each waits for the next, and the last for the request.
	{"cycle", func(tb testing.TB, d *dtCrowd, n int) any {
		d.wait(tb, n, true, func(i int) (any, any) {
			if i == n-1 {
				return i, "mine"
			}
			return i, i + 1
		})
		return 0
	}, func(n int) int { return n }, true},
}

// hold has each key held by an fn of its own that waits for nothing.
func (d *dtCrowd) hold(tb testing.TB, keys ...any) {
	for _, k := range keys {
		held := make(chan struct{})
		d.all.Go(func() {
			_ = d.c.WithLock(context.Background(), k, func(context.Context) error {
				close(held)
				<-d.free
				return nil
			})
		})
		<-held
	}
}

// wait starts the waiters: all hold before the first waits. In turn each waits
// before the next does, so that a chain is built from its far end and no search
// on the way has far to go.
func (d *dtCrowd) wait(tb testing.TB, n int, inTurn bool, keys func(i int) (holds, wants any)) {
	tb.Helper()
	var held sync.WaitGroup
	held.Add(n)
	turns := make([]chan struct{}, n)
	for i := range turns {
		turns[i] = make(chan struct{})
		d.all.Go(func() {
			holds, wants := keys(i)
			_ = d.c.WithLock(context.Background(), holds, func(ctx context.Context) error {
				held.Done()
				<-turns[i]
				return d.c.WithLock(ctx, wants, dtNop)
			})
		})
	}
	held.Wait()
	for i, turn := range turns {
		close(turn)
		if inTurn {
			dtAwaitGraph(tb, i+1, i+1)
		}
	}
	dtAwaitGraph(tb, n, n)
}

// waitUnder starts n waits for a key in one fn that holds another.
func (d *dtCrowd) waitUnder(tb testing.TB, holds any, n int, wants any) {
	tb.Helper()
	d.all.Go(func() {
		_ = d.c.WithLock(context.Background(), holds, func(ctx context.Context) error {
			for range n {
				d.all.Go(func() { _ = d.c.WithLock(ctx, wants, dtNop) })
			}
			<-d.free
			return nil
		})
	})
	dtAwaitGraph(tb, 1, n)
}

// dtAwaitGraph waits until the graph has so many holds and waits.
func dtAwaitGraph(tb testing.TB, holds, total int) {
	tb.Helper()
	for end := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		if dtGraphSize() == holds && (holds == total || len(dtWaits()) == total) {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("%d holds are in the graph, want %d", dtGraphSize(), holds)
		}
	}
}

// dtWaits returns what is in the graph, and whether the last search came by.
func dtWaits() map[*wait]bool {
	waits.mu.Lock()
	defer waits.mu.Unlock()
	reached := make(map[*wait]bool)
	for _, l := range waits.under {
		for ; l != nil; l = l.next {
			reached[l.wait] = l.wait.round == waits.round
		}
	}
	return reached
}

// dtWithCrowd lays out a shape and runs body in the fn that holds "mine".
func dtWithCrowd(tb testing.TB, shape int, n int, body func(ctx context.Context, c *Coordinator, want any)) {
	tb.Helper()
	d := &dtCrowd{c: New(Options{}), free: make(chan struct{})}
	defer dtAssertNothingLeft(tb, d.c)
	defer d.all.Wait()
	defer close(d.free)
	_ = d.c.WithLock(context.Background(), "mine", func(ctx context.Context) error {
		body(ctx, d.c, dtShapes[shape].layOut(tb, d, n))
		return nil
	})
}

// Among many other nested waiters a search comes by those that the
// request needs, by each once, and by no other.
//
// Rules 31 and 32.
func TestDeadlockSearchVisitsWhatIsNeeded(t *testing.T) {
	for shape, s := range dtShapes {
		n := 2_000
		switch s.name {
		case "none", "queue", "chain": // what is promised of ten thousand
			n = 10_000
		}
		t.Run(s.name, func(t *testing.T) {
			dtWithCrowd(t, shape, n, func(ctx context.Context, c *Coordinator, want any) {
				before := dtSearches()
				start := time.Now()
				err := c.WithLock(ctx, want, dtNop, MaxWait(1))
				took := time.Since(start)

				if rounds := dtSearches() - before; rounds != 1 {
					t.Errorf("%d searches, want 1", rounds)
				}
				reached := 0
				waiting := dtWaits()
				for _, r := range waiting {
					if r {
						reached++
					}
				}
				if len(waiting) != n || reached != s.reach(n) {
					t.Errorf("came by %d of %d waits, want %d of %d", reached, len(waiting), s.reach(n), n)
				}
				var deadlock *DeadlockError
				switch found := errors.As(err, &deadlock); {
				case found != s.cycle:
					t.Errorf("got %v", err)
				case found && len(deadlock.Cycle) != n+1:
					t.Errorf("the cycle has %d steps, want %d", len(deadlock.Cycle), n+1)
				case !found && !errors.Is(err, ErrWaitTimeout):
					t.Errorf("got %v, want ErrWaitTimeout", err)
				}
				// A hundred times what it takes, for slow machines; twice more, in
				// case the machine was away.
				most := 50*time.Millisecond + time.Duration(s.reach(n))*50*time.Microsecond
				for try := 0; took > most && try < 2; try++ {
					start := time.Now()
					_ = c.WithLock(ctx, want, dtNop, MaxWait(1))
					took = min(took, time.Since(start))
				}
				if took > most {
					t.Errorf("took %v, want %v at most", took, most)
				}
			})
		})
	}
}

// Where each of two holders needs both holders of the next key, there are 2^40
// ways to the end, and 80 waits.
//
// Rules 31 and 32.
func TestDeadlockSearchTakesNoWayTwice(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		const layers = 40
		var readers [layers][2]*dtCall
		for i := range readers {
			readers[i] = [2]*dtCall{d.ask(i, Shared).mustRun(), d.ask(i, Shared).mustRun()}
		}
		last := d.ask(layers)
		for i := range readers {
			for _, r := range readers[i] {
				r.ask(i + 1).mustWait()
			}
		}
		mine := d.ask("mine")
		mine.ask(0).mustWait()
		reached := 0
		for _, r := range dtWaits() {
			if r {
				reached++
			}
		}
		if reached != 2*layers+1 { // itself too
			t.Errorf("came by %d waits, want %d", reached, 2*layers+1)
		}
		last.ask("mine").mustFail(ErrDeadlock)
	})
}

// BenchmarkDeadlockSearch is a nested request that has to wait, among others. It
// gives up at once, by MaxWait, unless it is told of a deadlock.
func BenchmarkDeadlockSearch(b *testing.B) {
	const n = 10_000
	for shape, s := range dtShapes {
		b.Run(fmt.Sprintf("waiters=%d/shape=%s", n, s.name), func(b *testing.B) {
			b.ReportAllocs()
			dtWithCrowd(b, shape, n, func(ctx context.Context, c *Coordinator, want any) {
				for b.Loop() {
					if c.WithLock(ctx, want, dtNop, MaxWait(1)) == nil {
						b.Fatal("the key was free")
					}
				}
				if links := s.reach(n); links > 0 {
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(links), "ns/link")
				}
			})
		})
	}
}
