package processlock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// ltBlowUp is the frame that a panic's stack must still show.
//
//go:noinline
func ltBlowUp(v any) { panic(v) }

var errLtBoom = errors.New("boom")

// ltEndings are the ways in which an fn can end.
var ltEndings = []struct {
	name  string
	ended string
	value any // of the panic; nil: not compared
	last  func(context.Context) error
}{
	{"return", "return", nil, ltNop},
	{"error", "return", nil, func(context.Context) error { return errLtBoom }},
	{"panic with an error", "panic", errLtBoom, func(context.Context) error { ltBlowUp(errLtBoom); return nil }},
	{"panic with a string", "panic", "boom", func(context.Context) error { ltBlowUp("boom"); return nil }},
	{"panic with nil", "panic", nil, func(context.Context) error { ltBlowUp(nil); return nil }},
	{"runtime error", "panic", nil, func(context.Context) error {
		var none []error
		return none[len(none)]
	}},
	{"panic while panicking", "panic", "second", func(context.Context) error {
		defer ltBlowUp("second")
		panic("first")
	}},
	{"exit", "exit", nil, func(context.Context) error { runtime.Goexit(); return nil }},
	{"exit while panicking", "exit", nil, func(context.Context) error {
		defer runtime.Goexit()
		panic("first")
	}},
	{"FailNow", "exit", nil, func(context.Context) error { new(testing.T).FailNow(); return nil }},
	{"SkipNow", "exit", nil, func(context.Context) error { new(testing.T).SkipNow(); return nil }},
}

// ltPlaces are the ways to hold key k, for a call whose fn ends with last.
var ltPlaces = []struct {
	name string
	hold func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall
}{
	{"free", func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall {
		return ltGoLast(ctx, c, "k", last)
	}},
	{"waited for", func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall {
		before := ltGo(ctx, c, "k")
		call := ltGoLast(ctx, c, "k", last)
		before.open()
		return call
	}},
	{"shared", func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall {
		return ltGoLast(ctx, c, "k", last, processlock.Shared)
	}},
	{"all", func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall {
		return ltGoLast(ctx, c, processlock.All("j", "k", "l"), last)
	}},
	{"value", func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall {
		return ltGoLast(processlock.WithCoordinator(ctx, c), ltValueLocker{}, "k", last)
	}},
	{"reentrant inside", func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall {
		return ltGoLast(ctx, c, "k", func(ctx context.Context) error {
			return c.WithLock(ctx, "k", last, processlock.Reentrant)
		})
	}},
	{"nested inside", func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall {
		return ltGoLast(ctx, c, "k", func(ctx context.Context) error {
			return c.WithLock(ctx, "other", last)
		})
	}},
	{"client", func(ctx context.Context, c *processlock.Coordinator, last func(context.Context) error) *ltCall {
		ctx, cl := c.WithClient(ctx, "w")
		context.AfterFunc(ctx, cl.Close)
		return ltGoLast(ctx, c, "k", last)
	}},
}

// ltValueLocker is WithLockValue as a Locker.
type ltValueLocker struct{}

func (ltValueLocker) WithLock(ctx context.Context, key any, fn func(context.Context) error, opts ...processlock.Option) error {
	_, err := processlock.WithLockValue(ctx, key, func(ctx context.Context) (int, error) { return 0, fn(ctx) }, opts...)
	return err
}

// Two wait behind the call: a key that was released twice would let in both, and
// one that was not would let in none.
//
// Rule 15.
func TestEveryEndOfFnReleasesOnce(t *testing.T) {
	for _, place := range ltPlaces {
		for i, ending := range ltEndings {
			t.Run(place.name+"/"+ending.name, func(t *testing.T) {
				opts := processlock.Options{TrackHolds: i%2 == 1}
				ltBubbleWith(t, opts, func(t *testing.T, c *processlock.Coordinator) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					call := place.hold(ctx, c, ending.last)
					first, second := ltGo(ctx, c, "k"), ltGo(ctx, c, "k")
					assert.Equal(t, []string{"runs", "waits", "waits"}, ltStates(call, first, second))
					call.open()
					assert.Equal(t, []string{"over", "runs", "waits"}, ltStates(call, first, second))
					assert.Equal(t, ending.ended, call.ended())
					first.open()
					second.open()
					ltServed(t, first)
					ltServed(t, second)
				})
			})
		}
	}
}

// Rule 15.
func TestPanicKeepsItsValueAndItsStack(t *testing.T) {
	for _, place := range ltPlaces {
		for _, ending := range ltEndings {
			if ending.ended != "panic" {
				continue
			}
			t.Run(place.name+"/"+ending.name, func(t *testing.T) {
				ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					call := place.hold(ctx, c, ending.last)
					call.open()
					switch ending.name {
					case "panic with nil":
						assert.IsType(t, (*runtime.PanicNilError)(nil), call.value)
					case "runtime error":
						assert.Implements(t, (*runtime.Error)(nil), call.value)
						return
					default:
						assert.Equal(t, ending.value, call.value)
					}
					assert.Contains(t, call.stack, "ltBlowUp")
					if ending.name != "panic while panicking" {
						// A second one would be a panic of ours on top of fn's.
						assert.Equal(t, 1, strings.Count(call.stack, "\npanic("), call.stack)
					}
				})
			})
		}
	}
}

// Three in a queue of five end badly, and the line moves on in order.
//
// Rule 15.
func TestQueueOutlivesThoseWhoPanic(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k")
		var order []int // guarded by the lock under test
		calls := make([]*ltCall, 100)
		for i := range calls {
			calls[i] = ltGoLast(t.Context(), c, "k", func(context.Context) error {
				order = append(order, i)
				switch i % 3 {
				case 0:
					panic(i)
				case 1:
					runtime.Goexit()
				}
				return nil
			})
			close(calls[i].gate)
		}
		holder.open()
		assert.Len(t, order, len(calls))
		assert.IsIncreasing(t, order)
		for i, call := range calls {
			assert.Equal(t, []string{"panic", "exit", "return"}[i%3], call.ended())
		}
	})
}
