package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// The context of an fn whose hold is lost ends as the standard library's do:
// Done and Err agree, the cause is there, and children made before and after
// end with it, as does what was registered on it.
//
// Rules 24, 25 and 27.
func TestField_C6_ContextOfALostHoldIsOneByTheBook(t *testing.T) {
	for _, key := range []any{"k", processlock.All("j", "k")} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			ctx, cl := c.WithClient(t.Context(), "w")
			call := ltGo(ctx, c, key)
			before, cancel := context.WithCancel(call.ctx)
			defer cancel()
			told := false
			context.AfterFunc(call.ctx, func() { told = true })
			assert.NoError(t, call.ctx.Err())
			assert.NoError(t, context.Cause(call.ctx))

			cl.Close()
			synctest.Wait()
			after, cancel := context.WithCancel(call.ctx)
			defer cancel()
			for name, ctx := range map[string]context.Context{"fn's": call.ctx, "before": before, "after": after} {
				assert.True(t, ctClosed(ctx.Done()), name)
				assert.Equal(t, context.Canceled, ctx.Err(), name)
				assert.Equal(t, processlock.ErrClosed, context.Cause(ctx), name)
			}
			assert.True(t, told, "AfterFunc was not run")
			call.open()
			assert.Equal(t, processlock.ErrLost, call.err)
		})
	}
}

// pfSlowText is a key whose text takes as long as it wants.
type pfSlowText struct{ asked, gate chan struct{} }

func (k pfSlowText) MarshalText() ([]byte, error) {
	k.asked <- struct{}{}
	<-k.gate
	return []byte("slow"), nil
}

// A key that takes its time to say what it is stops nobody, whatever call reads
// it.
//
// Rules 2 and 36.
func TestField_H3_SlowKeyStopsNobody(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		ctx := processlock.WithCoordinator(t.Context(), c)
		holder := ltGo(ctx, c, "held")
		for name, read := range map[string]func(key pfSlowText) error{
			"method":   func(key pfSlowText) error { return c.WithLock(ctx, key, ltNop) },
			"function": func(key pfSlowText) error { return processlock.WithLock(ctx, key, ltNop) },
			"All":      func(key pfSlowText) error { return c.WithLock(ctx, processlock.All("a", key), ltNop) },
			"nested":   func(key pfSlowText) error { return c.WithLock(processlock.Detach(holder.ctx), []any{key}, ltNop) },
		} {
			key := pfSlowText{make(chan struct{}), make(chan struct{})}
			var err error
			over := make(chan struct{})
			go func() {
				defer close(over)
				err = read(key)
			}()
			<-key.asked
			for i := range 300 {
				assert.True(t, ltFree(c, i), name)
			}
			assert.False(t, ltFree(c, "held"))
			assert.Len(t, c.Snapshot().Locks, 1)
			close(key.gate)
			<-over
			assert.NoError(t, err, name)
		}
		holder.open()
	})
}

// pfTalkative is a key with every method by which fmt and errors ask a value
// for a text.
type pfTalkative struct{ ID int }

func (pfTalkative) String() string   { panic("String") }
func (pfTalkative) GoString() string { panic("GoString") }
func (pfTalkative) Error() string    { panic("Error") }

// Of a key's methods only MarshalText is asked, also for the text of an error.
//
// Rule 36.
func TestField_H3_NoOtherMethodOfAKeyIsCalled(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		key := pfTalkative{7}
		holder := ltGo(t.Context(), c, key)
		for _, key := range []any{key, &key, processlock.All(key)} {
			err := c.WithLock(t.Context(), key, ctNever(t), processlock.IfAvailable)
			assert.EqualError(t, err, `processlock: lock [{"ID":7}]: not available now`)
		}
		assert.Equal(t, `[{"ID":7}]`, c.Snapshot().Locks[0].Key.String())
		holder.open()
	})
}
