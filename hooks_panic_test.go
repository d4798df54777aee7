package processlock_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// A hook that panics or exits does so with the key released and nothing left in
// the queue, the panic's value kept. Other hooks are told all the same what
// becomes of the request.
//
// Rules 15, 34 and 42.
func TestHookThatPanicsLeavesNothing(t *testing.T) {
	const k, j = `processlock: lock ["k"]: `, `processlock: lock ["j"]: `
	for _, row := range []struct {
		name string
		kind string // of the hook that ends
		key  any    // asked for by "a", while "b" holds k
		opts []processlock.Option
		ran  bool
		told []string // of "a"
	}{
		{"Waiting", "Waiting", "k", nil, false,
			[]string{"Waiting k", "Failed k (" + k + "a hook or a context's method panicked or exited)"}},
		{"Waiting, All", "Waiting", processlock.All("j", "k"), nil, false,
			[]string{"Acquired j", "Waiting k", "Failed k (" + k + "a hook or a context's method panicked or exited)", "Released j"}},
		{"Waiting, nested", "Waiting", "nested", nil, false,
			[]string{"Acquired j", "Waiting k", "Failed k (" + k + "a hook or a context's method panicked or exited)", "Released j"}},
		{"Acquired", "Acquired", "j", nil, false, []string{"Acquired j", "Released j"}},
		{"Acquired after a wait", "Acquired", "k", nil, false, []string{"Waiting k", "Acquired k waited=1s", "Released k waited=1s"}},
		{"Acquired, All", "Acquired", processlock.All("j", "k"), nil, false, []string{"Acquired j", "Released j"}},
		{"Released", "Released", "j", nil, true, []string{"Acquired j", "Released j held=1s"}},
		{"Released, All", "Released", processlock.All("i", "j"), nil, true,
			[]string{"Acquired i", "Acquired j", "Released j held=1s", "Released i held=1s"}},
		{"Failed", "Failed", "k", []processlock.Option{processlock.IfAvailable}, false,
			[]string{"Failed k (" + k + "not available now)"}},
		{"Failed, All", "Failed", processlock.All("j", "k"), []processlock.Option{processlock.IfAvailable}, false,
			[]string{"Acquired j", "Failed k (" + k + "not available now)", "Released j"}},
	} {
		for _, exit := range []bool{false, true} {
			name := row.name
			if exit {
				name += ", Goexit"
			}
			t.Run(name, func(t *testing.T) {
				before, after := &htLog{}, &htLog{}
				ltBubbleWith(t, processlock.Options{Hooks: before.hooks()}, func(t *testing.T, c *processlock.Coordinator) {
					value := &struct{ int }{7}
					defer c.AddHooks(htEnding(row.kind, "a", value, exit))()
					defer c.AddHooks(after.hooks())()
					b := ltGo(t.Context(), c, "k")
					ctx, _ := c.WithClient(t.Context(), "a")
					key, last := row.key, ltNop
					if key == "nested" {
						key, last = "j", func(ctx context.Context) error { return c.WithLock(ctx, "k", ltNop) }
					}
					a := ltGoLast(ctx, c, key, last, row.opts...)
					if row.key == "nested" {
						close(a.gate)
						synctest.Wait()
					}
					next := ltGo(t.Context(), c, "k")
					htLater(1)
					b.open()
					if a.ended() == "" {
						a.open()
					}
					if exit {
						assert.Equal(t, "exit", a.ended())
					} else {
						assert.Equal(t, "panic", a.ended())
						assert.Same(t, value, a.value)
						assert.Contains(t, a.stack, "htEnding")
					}
					assert.Equal(t, row.ran || row.key == "nested", a.entered.Load())
					next.open()
					ltServed(t, next)
					before.told(t, "a", row.told...)
					after.told(t, "a", row.told...)
					assert.NoError(t, processlock.CTLeft(c))
				})
			})
		}
	}
}

// htEnding are hooks of which the one of a kind ends its goroutine when it is
// told of the client.
func htEnding(kind, client string, value any, exit bool) processlock.Hooks {
	of := func(k string) func(processlock.Event) {
		return func(e processlock.Event) {
			switch {
			case k != kind || e.Client != client:
			case exit:
				runtime.Goexit()
			default:
				panic(value)
			}
		}
	}
	return processlock.Hooks{Waiting: of("Waiting"), Acquired: of("Acquired"), Released: of("Released"), Failed: of("Failed")}
}

// A Failed that panics in Close does so once all that the client held has been
// handed on, and all of it has been told.
//
// Rules 25 and 42.
func TestHookThatPanicsInCloseLeavesNothing(t *testing.T) {
	htBubble(t, processlock.Options{}, func(s *htScene) {
		defer s.c.AddHooks(htEnding("Failed", "a", "hook's", false))()
		ctx, client := s.as("a")
		one, two := ltGo(ctx, s.c, "k1"), ltGo(ctx, s.c, processlock.All("k2", "k3"))
		var next []*ltCall
		for _, key := range []string{"k1", "k2", "k3"} {
			next = append(next, s.start("b", key))
		}
		assert.PanicsWithValue(s.t, "hook's", client.Close)
		synctest.Wait()
		for _, call := range next {
			assert.Equal(s.t, "runs", call.state())
			call.open()
		}
		one.open()
		two.open()
		assert.ErrorIs(s.t, one.err, processlock.ErrLost)
		assert.ErrorIs(s.t, two.err, processlock.ErrLost)
		lost := map[string]int{}
		for _, call := range s.of("a") {
			if call.Err != nil {
				lost[call.Key.String()]++
			}
		}
		assert.Equal(s.t, map[string]int{`["k1"]`: 1, `["k2"]`: 1, `["k3"]`: 1}, lost)
	})
}

// A context whose method panics while the call waits has not got its key.
//
// Rules 36 and 42.
func TestHooksAreToldOfAWaitThatAContextsPanicEnds(t *testing.T) {
	htBubble(t, processlock.Options{}, func(s *htScene) {
		b := s.start("b", "k")
		ctx, _ := s.as("a")
		ctx, cancel := context.WithCancel(ctx)
		a := ltGo(&htPanickyErr{ctx}, s.c, "k")
		htLater(1)
		cancel()
		synctest.Wait()
		assert.Equal(s.t, "Err's", a.value)
		b.open()
		calls := s.of("a")
		require.Len(s.t, calls, 2)
		assert.Equal(s.t, "Waiting k", calls[0].String())
		assert.Equal(s.t, `Failed k waited=1s (processlock: lock ["k"]: a hook or a context's method panicked or exited)`, calls[1].String())
		require.ErrorAs(s.t, calls[1].Err, new(*processlock.AcquireError))
	})
}

// htPanickyErr panics once its context is done.
type htPanickyErr struct{ context.Context }

func (c *htPanickyErr) Err() error {
	if c.Context.Err() != nil {
		panic("Err's")
	}
	return nil
}
