package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// ltTrap is a context one of whose methods does something on its n'th call.
type ltTrap struct {
	context.Context
	method string
	left   atomic.Int64
	spring func()
	sprung atomic.Bool
}

func (tr *ltTrap) step(method string) {
	if method == tr.method && tr.left.Add(-1) == 0 {
		tr.sprung.Store(true)
		tr.spring()
	}
}

func (tr *ltTrap) Done() <-chan struct{} {
	tr.step("Done")
	return tr.Context.Done()
}

func (tr *ltTrap) Err() error {
	tr.step("Err")
	return tr.Context.Err()
}

func (tr *ltTrap) Value(key any) any {
	tr.step("Value")
	return tr.Context.Value(key)
}

func (tr *ltTrap) Deadline() (time.Time, bool) {
	tr.step("Deadline")
	return tr.Context.Deadline()
}

// ltTrapScenes are calls with a context of user code, in all the states in which
// a call asks its context. Each waits for key k if that is held.
var ltTrapScenes = []struct {
	name string
	call func(ctx context.Context, c *processlock.Coordinator, trap func(context.Context) context.Context) *ltCall
}{
	{"plain", func(ctx context.Context, c *processlock.Coordinator, trap func(context.Context) context.Context) *ltCall {
		return ltGo(trap(ctx), c, "k")
	}},
	{"list key", func(ctx context.Context, c *processlock.Coordinator, trap func(context.Context) context.Context) *ltCall {
		return ltGo(trap(ctx), c, []any{"k"}, processlock.MaxWait(time.Hour))
	}},
	{"all", func(ctx context.Context, c *processlock.Coordinator, trap func(context.Context) context.Context) *ltCall {
		return ltGo(trap(ctx), c, processlock.All("j", "k", "l"))
	}},
	{"nested", func(ctx context.Context, c *processlock.Coordinator, trap func(context.Context) context.Context) *ltCall {
		outer := &ltCall{gate: make(chan struct{}), last: ltNop}
		go outer.run(func() error {
			return c.WithLock(ctx, "outer", func(ctx context.Context) error {
				return c.WithLock(trap(ctx), "k", outer.fn)
			})
		})
		synctest.Wait()
		return outer
	}},
	{"client", func(ctx context.Context, c *processlock.Coordinator, trap func(context.Context) context.Context) *ltCall {
		ctx, cl := c.WithClient(ctx, "w")
		call := ltGo(trap(ctx), c, "k")
		context.AfterFunc(ctx, cl.Close)
		return call
	}},
}

var ltTrapMethods = []string{"Done", "Err", "Value", "Deadline"}

// ltEachTrap runs scene again and again, with the trap at the first call of the
// method, the second, and so on until it is not reached any more, and returns
// how often it was. With a holder the call waits for k.
func ltEachTrap(t *testing.T, method string, held bool, once func(t *testing.T, c *processlock.Coordinator, trap *ltTrap, holder *ltCall)) int {
	t.Helper()
	for n := 1; ; n++ {
		sprung := false
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			trap := &ltTrap{Context: ctx, method: method}
			trap.left.Store(int64(n))
			holder := ltGo(t.Context(), c, "k")
			if !held {
				holder.open()
			}
			once(t, c, trap, holder)
			sprung = trap.sprung.Load()
		})
		if !sprung {
			return n - 1
		}
		if n == 100 {
			t.Fatal("the method is called without end")
		}
	}
}

// Every single call of a context's method may panic or exit. It must find the
// request out of every queue, and the key with whoever is next.
//
// Rules 15 and 36.
func TestContextMethodThatPanicsLeavesNothing(t *testing.T) {
	springs := map[string]func(){
		"panic": func() { panic(errLtBoom) },
		"exit":  runtime.Goexit,
	}
	for _, scene := range ltTrapScenes {
		for _, method := range ltTrapMethods {
			for how, spring := range springs {
				for _, held := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/held=%t", scene.name, method, how, held), func(t *testing.T) {
						ltEachTrap(t, method, held, func(t *testing.T, c *processlock.Coordinator, trap *ltTrap, holder *ltCall) {
							trap.spring = spring
							parent := trap.Context
							call := scene.call(parent, c, func(ctx context.Context) context.Context {
								trap.Context = ctx
								return trap
							})
							behind := ltGo(t.Context(), c, "k")
							if held {
								holder.open()
							}
							if call.state() == "runs" {
								assert.False(t, trap.sprung.Load(), "fn runs after a panic")
								call.open()
							} else {
								assert.Equal(t, how, call.ended())
								if how == "panic" {
									assert.Equal(t, errLtBoom, call.value)
								}
							}
							assert.Equal(t, "runs", behind.state())
							behind.open()
							ltServed(t, behind)
						})
					})
				}
			}
		}
	}
}

// While a method blocks nobody else is kept from any key, nor from looking on.
// One that blocks after the grant has its key, which is the only exception.
//
// Rule 36.
func TestContextMethodThatBlocksStopsNobody(t *testing.T) {
	for _, scene := range ltTrapScenes {
		for _, method := range ltTrapMethods {
			for _, held := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/held=%t", scene.name, method, held), func(t *testing.T) {
					ltEachTrap(t, method, held, func(t *testing.T, c *processlock.Coordinator, trap *ltTrap, holder *ltCall) {
						unblock := make(chan struct{})
						trap.spring = func() { <-unblock }
						call := scene.call(trap.Context, c, func(ctx context.Context) context.Context {
							trap.Context = ctx
							return trap
						})
						if held {
							holder.open()
						}
						for i := range 300 {
							assert.True(t, ltFree(c, i))
						}
						_, _ = c.Snapshot(), c.Stats()
						// A request with a lineage, for which the graph is needed.
						busy := ltGo(t.Context(), c, "busy")
						nested := ltGoLast(t.Context(), c, "mine", func(ctx context.Context) error {
							return c.WithLock(ctx, "busy", ltNop)
						})
						nested.open()
						busy.open()
						ltServed(t, nested)

						close(unblock)
						synctest.Wait()
						assert.Equal(t, "runs", call.state())
						call.open()
						ltServed(t, call)
					})
				})
			}
		}
	}
}

// A method may use the very coordinator that asks it, on any key.
//
// Rule 36.
func TestContextMethodMayCallBack(t *testing.T) {
	for _, scene := range ltTrapScenes {
		for _, method := range ltTrapMethods {
			for _, held := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/held=%t", scene.name, method, held), func(t *testing.T) {
					ltEachTrap(t, method, held, func(t *testing.T, c *processlock.Coordinator, trap *ltTrap, holder *ltCall) {
						trap.spring = func() {
							ctx := context.Background()
							for i := range 100 {
								assert.NoError(t, c.WithLock(ctx, i, ltNop))
							}
							_ = c.WithLock(ctx, "k", ltNop, processlock.IfAvailable)
							_ = c.WithLock(ctx, "k", ltNop, processlock.Shared, processlock.MaxWait(time.Second))
							_, _ = c.Snapshot(), c.Stats()
							_, cl := c.WithClient(ctx, "inside")
							cl.Close()
						}
						call := scene.call(trap.Context, c, func(ctx context.Context) context.Context {
							trap.Context = ctx
							return trap
						})
						time.Sleep(time.Minute) // for MaxWait inside the trap
						synctest.Wait()
						if held {
							holder.open()
							time.Sleep(time.Minute)
							synctest.Wait()
						}
						assert.Equal(t, "runs", call.state())
						call.open()
						ltServed(t, call)
					})
				})
			}
		}
	}
}

// The grant has arrived and nobody has looked at it when the method panics. What
// is kept of that wait for the next one must not look like another grant.
//
// Rules 1 and 36.
func TestGrantThatNobodySawIsForgotten(t *testing.T) {
	ltEachTrap(t, "Done", true, func(t *testing.T, c *processlock.Coordinator, trap *ltTrap, holder *ltCall) {
		granted := make(chan struct{})
		trap.spring = func() {
			<-granted
			panic(errLtBoom)
		}
		first := ltGo(trap, c, "k")
		second := ltGo(t.Context(), c, "k") // keeps the key in the table
		holder.open()
		close(granted)
		synctest.Wait()
		if first.state() == "runs" {
			first.open()
		}
		third, fourth := ltGo(t.Context(), c, "k"), ltGo(t.Context(), c, "k")
		assert.Equal(t, []string{"runs", "waits", "waits"}, ltStates(second, third, fourth))
		for _, call := range []*ltCall{second, third, fourth} {
			call.open()
			ltServed(t, call)
		}
	})
}

// The traps above prove nothing for a method that is never called.
func TestContextMethodsAreCalled(t *testing.T) {
	for _, method := range []string{"Done", "Err", "Value"} {
		n := ltEachTrap(t, method, true, func(t *testing.T, c *processlock.Coordinator, trap *ltTrap, holder *ltCall) {
			trap.spring = func() {}
			call := ltGo(trap, c, "k")
			holder.open()
			call.open()
		})
		assert.Positive(t, n, method)
	}
}

// ltSliceError can't be compared, and its type says so.
type ltSliceError []string

func (ltSliceError) Error() string { return "a slice" }

// ltBoxError can't be compared either, but its type doesn't know: it is what it
// holds that can't.
type ltBoxError struct{ value any }

func (ltBoxError) Error() string { return "a box" }

// Is lets errors.Is find it without ==.
func (ltBoxError) Is(target error) bool {
	_, ok := target.(ltBoxMark)
	return ok
}

type ltBoxMark struct{}

func (ltBoxMark) Error() string { return "any box" }

// ltEndsWith is a context that ends with any error, before the call or during
// its wait.
func ltEndsWith(ctx context.Context, err error) (*ltHooked, func()) {
	done := make(chan struct{})
	return &ltHooked{
		Context: context.WithoutCancel(ctx),
		done:    func() <-chan struct{} { return done },
		err: func() error {
			select {
			case <-done:
				return err
			default:
				return nil
			}
		},
	}, func() { close(done) }
}

// Rules 9 and 12.
func TestContextErrorsThatCannotBeCompared(t *testing.T) {
	rows := map[string]struct {
		err   error
		found func(err error) bool
	}{
		"slice": {ltSliceError{"a"}, func(err error) bool {
			var e ltSliceError
			return errors.As(err, &e)
		}},
		"box": {ltBoxError{[]int{1}}, func(err error) bool { return errors.Is(err, ltBoxMark{}) }},
	}
	for name, row := range rows {
		t.Run("Err/"+name, func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				ctx, end := ltEndsWith(t.Context(), row.err)
				holder := ltGo(t.Context(), c, "k")
				waiter := ltGo(ctx, c, "k")
				end()
				synctest.Wait()
				late := ltGo(ctx, c, "free")
				for _, call := range []*ltCall{waiter, late} {
					assert.Equal(t, "return", call.ended(), "value: %v", call.value)
					assert.True(t, call.err != nil && row.found(call.err), "error: %T", call.err)
				}
				holder.open()
			})
		})
		t.Run("Cause/"+name, func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				ctx, cancel := context.WithCancelCause(t.Context())
				holder := ltGo(t.Context(), c, "k")
				waiter := ltGo(ctx, c, "k")
				cancel(row.err)
				synctest.Wait()
				late := ltGo(ctx, c, "free")
				for _, call := range []*ltCall{waiter, late} {
					assert.Equal(t, "return", call.ended(), "value: %v", call.value)
					assert.True(t, call.err != nil && row.found(call.err), "error: %T", call.err)
					assert.ErrorIs(t, call.err, context.Canceled)
				}
				holder.open()
			})
		})
	}
}
