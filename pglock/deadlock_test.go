package pglock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Processes that each hold a key and ask for the next one's: one of them is told,
// the others go on, and who waits beside them is not accused.
func TestDeadlockBetweenProcesses(t *testing.T) {
	for _, mode := range []pglock.WaitMode{pglock.Queue, pglock.Poll} {
		for _, n := range []int{2, 3} {
			t.Run(mode.String()+"_"+string(rune(48+n)), func(t *testing.T) {
				b := newBed(t)
				key := func(i int) string { return string(rune('a' + i%n)) }
				var inside, wg sync.WaitGroup
				inside.Add(n)
				errs := make([]error, n)
				begin := time.Now()
				innocent := b.locker(pglock.Options{Wait: mode})
				for i := range n {
					l := b.locker(pglock.Options{Wait: mode})
					wg.Go(func() {
						errs[i] = l.WithLock(context.Background(), key(i), func(ctx context.Context) error {
							inside.Done()
							inside.Wait()
							return l.WithLock(ctx, key(i+1), nop)
						})
					})
				}
				inside.Wait()
				beside := b.start(t.Context(), innocent, "a").let()
				outer := b.hold(innocent, "other")
				nested := b.start(outer.ctx, innocent, "b").let()
				wg.Wait()
				assert.Less(t, time.Since(begin), patience)
				told := 0
				for _, err := range errs {
					if err == nil {
						continue
					}
					told++
					var d *processlock.DeadlockError
					require.ErrorAs(t, err, &d)
					assert.Len(t, d.Cycle, n)
					t.Log(err)
				}
				assert.Equal(t, 1, told)
				beside.ok()
				nested.ok()
				outer.ok()
			})
		}
	}
}

// The request that is on the cycle waits in its process's queue behind one that
// is on none.
func TestDeadlockBehindAnother(t *testing.T) {
	b := newBed(t)
	l, other := b.locker(pglock.Options{}), b.locker(pglock.Options{})
	holder := b.hold(other, "b")
	a := b.hold(l, "a")
	head := b.start(t.Context(), l, "b") // holds nothing
	b.eventually(func() bool { return len(b.waiting("b")) == 1 }, "the head does not wait")
	behind := b.start(a.ctx, l, "b")
	back := b.start(holder.ctx, other, "a")
	select {
	case <-behind.over:
		require.ErrorIs(t, behind.err, processlock.ErrDeadlock)
		a.ok()
		back.runs().ok()
		holder.ok()
		head.runs().ok()
	case <-back.over:
		require.ErrorIs(t, back.err, processlock.ErrDeadlock)
		holder.ok()
		head.runs().ok()
		behind.runs().ok()
		a.ok()
	case <-time.After(patience):
		require.Fail(t, "the deadlock is not found")
	}
	require.False(t, errors.Is(head.err, processlock.ErrDeadlock))
}
