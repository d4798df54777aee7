package pglock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The wait on the server is the queue's, not its head's: who leaves, leaves at
// once, and the next has the place.
func TestNextInheritsThePlaceOnTheServer(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{Slice: time.Hour})
	other := b.session()
	b.take(other, "k")
	first := b.start(t.Context(), l, "k").queued(1)
	place := b.waiting("k")
	second := b.start(t.Context(), l, "k")
	begin := time.Now()
	first.cancel()
	b.refused(first.returns(), context.Canceled)
	assert.Less(t, time.Since(begin), 5*time.Second)
	assert.Equal(t, place, b.waiting("k"))
	begin = time.Now()
	b.unlock(other, "k")
	second.runs()
	assert.Less(t, time.Since(begin), 5*time.Second)
	assert.Equal(t, place, b.held("k"))
	second.ok()

	// With nobody left the wait ends with its slice.
	l = b.locker(pglock.Options{Slice: 50 * time.Millisecond})
	b.take(other, "k")
	last := b.start(t.Context(), l, "k").queued(1)
	last.cancel()
	b.refused(last.returns(), context.Canceled)
	b.eventually(func() bool { return len(b.waiting("k")) == 0 }, "a wait goes on that nobody wants")
	b.unlock(other, "k")
}

func TestSharedBetweenProcesses(t *testing.T) {
	b := newBed(t)
	one, two := b.agent(pglock.Options{}), b.agent(pglock.Options{})
	l := b.locker(pglock.Options{})
	r1, r2 := one.hold("k", "shared"), two.hold("k", "shared")
	r3 := b.hold(l, "k", processlock.Shared)
	b.refused(l.WithLock(t.Context(), "k", nop, processlock.MaxWait(20*time.Millisecond)), processlock.ErrWaitTimeout)
	require.ErrorIs(t, one.start("k", "ifavailable").returns(), processlock.ErrUnavailable)
	r3.ok()
	w := b.start(t.Context(), l, "k").queued(1)
	r1.ok()
	w.pending()
	r2.ok()
	w.runs()
	require.ErrorIs(t, two.start("k", "shared", "ifavailable").returns(), processlock.ErrUnavailable)
	late := two.start("k", "shared").queued(1)
	w.ok()
	late.runs().ok()
}

// One process that has a crowd waiting keeps a key for Handoff.For and no longer.
func TestHandoffLeavesOthersTheirTurn(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	crowd := b.lockerAt(p.Addr(), pglock.Options{})
	lone := b.locker(pglock.Options{})
	var wg sync.WaitGroup
	var turns atomic.Int64
	var over atomic.Bool
	for range 32 {
		wg.Go(func() {
			for !over.Load() {
				assert.NoError(t, crowd.WithLock(t.Context(), "k", func(context.Context) error { turns.Add(1); return nil }))
			}
		})
	}
	b.eventually(func() bool { return turns.Load() > 1000 }, "the crowd does not lock")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, longest := 0, time.Duration(0)
	for got < 50 && ctx.Err() == nil {
		begin := time.Now()
		err := lone.WithLock(ctx, "k", func(context.Context) error { got++; return nil })
		if err == nil {
			longest = max(longest, time.Since(begin))
		}
	}
	over.Store(true)
	wg.Wait()
	wire := p.Wire()
	t.Logf("%d turns in the crowd with %d round trips, %d alone, which waited %v at most", turns.Load(), wire.RoundTrips, got, longest)
	assert.Greater(t, got, 3)
	assert.Less(t, longest, patience/2)
	assert.Greater(t, turns.Load(), int64(10*wire.RoundTrips), "in the crowd the key passes without a round trip")
}

// Several keys at once, asked for in every order by several processes, never
// deadlock.
func TestAllBetweenProcesses(t *testing.T) {
	b := newBed(t)
	lockers := []*pglock.Locker{b.locker(pglock.Options{}), b.locker(pglock.Options{Wait: pglock.Poll}), b.locker(pglock.Options{})}
	var inside [4]atomic.Int32
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() {
			for range 15 {
				picked := rand.Perm(len(inside))[:2+rand.IntN(2)]
				keys := make([]any, len(picked))
				for n, k := range picked {
					keys[n] = k
				}
				assert.NoError(t, lockers[i%3].WithLock(t.Context(), processlock.All(keys...), func(context.Context) error {
					for _, k := range picked {
						if inside[k].Add(1) != 1 {
							return errors.New("two hold key " + strconv.Itoa(k))
						}
					}
					time.Sleep(100 * time.Microsecond)
					for _, k := range picked {
						inside[k].Add(-1)
					}
					return nil
				}))
			}
		})
	}
	wg.Wait()
}

// The session on which all is tried and given back never runs a caller's SQL.
func TestFnNeverHasTheSessionOfOthers(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	held := b.hold(l, "k")
	hub := b.held("k")
	require.Len(t, hub, 1)
	for name := range 5 {
		require.ErrorIs(t, l.WithConn(t.Context(), name, func(_ context.Context, conn *pgx.Conn) error {
			assert.NotEqual(t, hub[0], int(conn.PgConn().PID()))
			_, err := conn.Exec(t.Context(), "select pg_advisory_unlock_all()")
			return err
		}), processlock.ErrLost)
	}
	assert.Equal(t, hub, b.held("k"))
	held.ok()
}
