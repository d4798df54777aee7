package processlock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dtSource returns the function and the position that it is called from.
func dtSource() (name, file string, line int) {
	pc, file, line, _ := runtime.Caller(1)
	return runtime.FuncForPC(pc).Name(), file, line
}

// Every step names the key, its mode, and who holds it: the client, and the
// function with the place where it begins.
//
// Rule 31.
func TestDeadlockErrorFields(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		one, c1 := d.c.WithClient(context.Background(), "worker-1")
		two, c2 := d.c.WithClient(context.Background(), "worker-2")
		defer c1.Close()
		defer c2.Close()
		held, asked := make(chan struct{}), make(chan struct{})

		base, file, begins := dtSource() // the next fn literal begins two lines down
		go func() {
			_ = d.c.WithLock(two, []any{"b", 2}, func(ctx context.Context) error {
				close(held)
				<-asked
				return d.c.WithLock(ctx, "a", func(context.Context) error { return nil })
			}, Shared)
		}()
		<-held
		_, _, outer := dtSource()
		err := d.c.WithLock(one, "a", func(ctx context.Context) error {
			close(asked)
			synctest.Wait()
			return d.c.WithLock(ctx, []any{"b", 2}, func(context.Context) error { return nil })
		})

		var deadlock *DeadlockError
		require.ErrorAs(t, err, &deadlock)
		require.ErrorIs(t, err, ErrDeadlock)
		var acquire *AcquireError
		require.ErrorAs(t, err, &acquire)
		assert.Equal(t, MustKey("b", 2), acquire.Key)
		assert.Same(t, deadlock, acquire.Err)
		assert.False(t, acquire.Timeout())
		require.Len(t, deadlock.Cycle, 2)
		for _, w := range deadlock.Cycle { // how literals are numbered is the compiler's affair
			assert.Greater(t, w.Func, base)
			assert.Contains(t, w.Func, base)
		}
		assert.Equal(t, []Wait{{
			Key: MustKey("b", 2), Client: "worker-2", Mode: ModeShared,
			Func: deadlock.Cycle[0].Func, File: file, Line: begins + 2,
		}, {
			Key: MustKey("a"), Client: "worker-1", Mode: ModeExclusive,
			Func: deadlock.Cycle[1].Func, File: file, Line: outer + 1,
		}}, deadlock.Cycle)

		text := fmt.Sprintf(`processlock: deadlock: this call wants ["b",2], held shared by worker-2 at %s:%d,`+
			` which wants ["a"], held by this call's own worker-1 at %[1]s:%[3]d`,
			filepath.Base(file), begins+2, outer+1)
		assert.Equal(t, text, deadlock.Error())
		assert.Equal(t, text, err.Error())
		synctest.Wait()
	})
}

type dtStore struct {
	run func(ctx context.Context) error
}

func (s *dtStore) save(ctx context.Context) error { return s.run(ctx) }

func dtNamedFn(ctx context.Context) error {
	return Default().WithLock(ctx, "dt-named", dtNamedFn)
}

// A method value is generated code without a place of its own, so it goes by
// its name alone; a declared function has both.
//
// Rule 31.
func TestDeadlockErrorNamesTheFunction(t *testing.T) {
	c := New(Options{})
	s := &dtStore{}
	s.run = func(ctx context.Context) error {
		return c.WithLock(ctx, "a", func(context.Context) error { return nil })
	}
	err := c.WithLock(t.Context(), "a", s.save)
	var deadlock *DeadlockError
	require.ErrorAs(t, err, &deadlock)
	assert.Equal(t, []Wait{{Key: MustKey("a"), Func: "github.com/dbx-tools/processlock.(*dtStore).save"}}, deadlock.Cycle)
	assert.Equal(t, `processlock: deadlock: this call wants ["a"], held by this call's own fn`+
		` in github.com/dbx-tools/processlock.(*dtStore).save; Reentrant runs under the hold that is there,`+
		` Detach(ctx) is for a goroutine that outlives fn`, err.Error())

	deadlock = nil
	require.ErrorAs(t, dtNamedFn(t.Context()), &deadlock)
	pc := runtime.FuncForPC(funcAddr(dtNamedFn))
	file, line := pc.FileLine(pc.Entry())
	assert.Equal(t, []Wait{{
		Key: MustKey("dt-named"), Func: "github.com/dbx-tools/processlock.dtNamedFn", File: file, Line: line,
	}}, deadlock.Cycle)

	// WithLockValue's fn is the caller's, not the library's wrapper.
	_, file, line = dtSource()
	_, err = WithLockValue(t.Context(), "dt-value", func(ctx context.Context) (int, error) {
		return 1, WithLock(ctx, "dt-value", func(context.Context) error { return nil })
	})
	require.ErrorAs(t, err, &deadlock)
	assert.Equal(t, file, deadlock.Cycle[0].File)
	assert.Equal(t, line+1, deadlock.Cycle[0].Line)
}

// The holder that counts is the one that the cycle leads through, with its own
// client: the innermost of the coordinator that was asked.
//
// Rules 24 and 31.
func TestDeadlockErrorNamesTheClient(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		named := func(name string) context.Context {
			ctx, c := d.c.WithClient(context.Background(), name)
			d.Cleanup(c.Close)
			return ctx
		}
		ctx, foreign := New(Options{}).WithClient(named("reader"), "foreign")
		defer foreign.Close()
		d.askWith(named("bystander"), "a", Shared)
		reader := d.askWith(ctx, "a", Shared)
		d.ask("a", Shared)
		b := d.ask("b")
		reader.ask("b").mustWait()
		e := b.ask("a").mustBeVictim("a", "b")
		assert.Equal(t, "reader", e.Cycle[0].Client)
		assert.Equal(t, "", e.Cycle[1].Client)
	})
}

// Texts as they stand in a log: on one line, whatever is in the names.
//
// Rule 31.
func TestDeadlockErrorText(t *testing.T) {
	a, b := MustKey("a"), MustKey("b")
	const help = "; Reentrant runs under the hold that is there, Detach(ctx) is for a goroutine that outlives fn"
	for _, tt := range []struct {
		name  string
		cycle []Wait
		want  string
	}{
		{"two clients", []Wait{
			{Key: b, Client: "worker-2", Func: "main.store", File: "/src/app/store.go", Line: 88},
			{Key: a, Client: "worker-1", Func: "main.main", File: "/src/app/main.go", Line: 41},
		}, `this call wants ["b"], held by worker-2 at store.go:88, which wants ["a"], held by this call's own worker-1 at main.go:41`},
		{"no clients", []Wait{
			{Key: b, Func: "main.store", File: "store.go", Line: 88},
			{Key: a, Func: "main.main", File: "main.go", Line: 41},
		}, `this call wants ["b"], held by an fn at store.go:88, which wants ["a"], held by this call's own fn at main.go:41`},
		{"three, shared", []Wait{
			{Key: b, Client: "x", File: "x.go", Line: 1, Mode: ModeShared},
			{Key: MustKey(7), Client: "y", File: "y.go", Line: 2},
			{Key: a, Client: "z", File: "z.go", Line: 3, Mode: ModeShared},
		}, `this call wants ["b"], held shared by x at x.go:1, which wants [7], held by y at y.go:2, which wants ["a"], held shared by this call's own z at z.go:3`},
		{"own key", []Wait{{Key: a, Client: "w", File: "w.go", Line: 9}},
			`this call wants ["a"], held by this call's own w at w.go:9` + help},
		{"own key, shared, method value", []Wait{{Key: a, Func: "main.(*T).save", Mode: ModeShared}},
			`this call wants ["a"], held shared by this call's own fn in main.(*T).save; a shared hold serves only a call that is Shared and Reentrant, Detach(ctx) is for a goroutine that outlives fn`},
		{"nothing known", []Wait{{Key: b}, {Key: a}},
			`this call wants ["b"], held by an fn, which wants ["a"], held by this call's own fn`},
		{"hostile clients", []Wait{
			{Key: b, Client: "x\nheld by y\x1b[31m", File: "x.go", Line: 1},
			{Key: a, Client: `a "b", which wants`, File: "y.go", Line: 2},
		}, `this call wants ["b"], held by "x\nheld by y\x1b[31m" at x.go:1, which wants ["a"], held by this call's own "a \"b\", which wants" at y.go:2`},
		{"words that stay as they are", []Wait{
			{Key: b, Client: "eu-1/pod_7.x:80@q#3", File: "x.go", Line: 1},
			{Key: a, Client: "é", File: "y.go", Line: 2},
		}, `this call wants ["b"], held by eu-1/pod_7.x:80@q#3 at x.go:1, which wants ["a"], held by this call's own "é" at y.go:2`},
		{"hostile places", []Wait{
			{Key: b, Func: "f\n", File: "/x\ny.go", Line: 1},
			{Key: a, Func: "g\u2028h", Client: "\xff"},
		}, `this call wants ["b"], held by an fn at x\ny.go:1, which wants ["a"], held by this call's own "\xff" in g\u2028h`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &DeadlockError{Cycle: tt.cycle}
			assert.Equal(t, "processlock: deadlock: "+tt.want, e.Error())
			assert.Equal(t, e.Error(), (&AcquireError{Key: tt.cycle[0].Key, Err: e}).Error())
		})
	}
}

// A victim's error is ErrDeadlock and nothing else that one could test for.
//
// Rules 13 and 31.
func TestDeadlockErrorIs(t *testing.T) {
	dtBubble(t, Options{}, func(d *dtScene) {
		a, b := d.ask("a"), d.ask("b")
		a.ask("b")
		for _, x := range []*dtCall{b.ask("a"), b.ask("b"), b.ask("a", MaxWait(1))} {
			x.mustFail(ErrDeadlock)
			for _, other := range []error{
				ErrUnavailable, ErrWaitTimeout, ErrQueueFull, ErrClosed, ErrKey, ErrLost,
				context.Canceled, context.DeadlineExceeded,
			} {
				assert.NotErrorIs(t, x.err, other)
			}
			acquire, ok := x.err.(*AcquireError)
			require.True(t, ok, "%T", x.err)
			deadlock, ok := acquire.Err.(*DeadlockError)
			require.True(t, ok, "%T", acquire.Err)
			assert.Equal(t, ErrDeadlock, errors.Unwrap(deadlock))
			assert.Equal(t, acquire.Key, deadlock.Cycle[0].Key)
		}
	})
}
