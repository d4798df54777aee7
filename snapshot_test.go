package processlock_test

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// ctParked is an fn with a name and a line that a snapshot shows.
func ctParked(gate <-chan struct{}) error {
	<-gate
	return nil
}

type ctStore struct{ gate chan struct{} }

func (s *ctStore) save(context.Context) error { return ctParked(s.gate) }

// ctAge is a row's age when the snapshot was taken; -1 if it is not known.
func ctAge(s processlock.Snapshot, since time.Time) time.Duration {
	if since.IsZero() {
		return -1
	}
	return s.Taken.Sub(since)
}

// Every field of a snapshot, over holders that came in every way and waiters
// of both modes, in the order of their coming.
//
// Rules 39 and 40.
func TestField_L5_SnapshotShowsEveryField(t *testing.T) {
	for _, track := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := processlock.New(processlock.Options{TrackHolds: track})
			alice, ca := c.WithClient(t.Context(), "alice")
			defer ca.Close()
			gate := make(chan struct{})
			store := &ctStore{gate}
			done := make(chan error, 8)
			start := func(ctx context.Context, key any, fn func(context.Context) error, opts ...processlock.Option) {
				go func() { done <- c.WithLock(ctx, key, fn, opts...) }()
				synctest.Wait()
				time.Sleep(time.Minute)
			}
			reader := func(context.Context) error { return ctParked(gate) }

			begin := time.Now()
			start(alice, "k", reader, processlock.Shared)
			start(t.Context(), "k", store.save, processlock.Shared)
			start(alice, "k", store.save)
			start(t.Context(), "k", reader, processlock.Shared)
			start(t.Context(), []any{"invoice", 7}, reader)

			s := c.Snapshot()
			require.Equal(t, time.Now(), s.Taken)
			require.Equal(t, 5*time.Minute, s.Taken.Sub(begin))
			require.Len(t, s.Locks, 2)
			slices.SortFunc(s.Locks, func(a, b processlock.LockState) int {
				return len(b.Holders) - len(a.Holders)
			})
			k, invoice := s.Locks[0], s.Locks[1]
			require.Equal(t, processlock.MustKey("k"), k.Key)
			require.Equal(t, processlock.MustKey("invoice", 7), invoice.Key)
			require.Len(t, k.Holders, 2)
			require.Len(t, k.Waiters, 2)

			age := func(d time.Duration) time.Duration {
				if !track {
					return -1
				}
				return d
			}
			h := k.Holders[0]
			require.Equal(t, "alice", h.Client)
			require.Equal(t, processlock.ModeShared, h.Mode)
			require.True(t, h.Running)
			require.Equal(t, "snapshot_test.go", path.Base(h.File))
			require.Positive(t, h.Line)
			require.Contains(t, h.Func, "SnapshotShowsEveryField")
			require.Equal(t, age(5*time.Minute), ctAge(s, h.Since))

			h = k.Holders[1]
			require.Equal(t, "", h.Client)
			require.True(t, strings.HasSuffix(h.Func, "(*ctStore).save"), h.Func)
			require.Equal(t, "", h.File, "a method value has a name only")
			require.Zero(t, h.Line)
			require.Equal(t, age(4*time.Minute), ctAge(s, h.Since))

			w := k.Waiters[0]
			require.Equal(t, "alice", w.Client)
			require.Equal(t, processlock.ModeExclusive, w.Mode)
			require.True(t, strings.HasSuffix(w.Func, "(*ctStore).save"), w.Func)
			require.Equal(t, 3*time.Minute, ctAge(s, w.Since), "waiters always know since when")
			require.Equal(t, []processlock.Key{}, w.Holding)

			w = k.Waiters[1]
			require.Equal(t, processlock.ModeShared, w.Mode)
			require.Equal(t, "snapshot_test.go", path.Base(w.File))
			require.Positive(t, w.Line)
			require.Equal(t, 2*time.Minute, ctAge(s, w.Since))

			require.Len(t, invoice.Holders, 1)
			require.Equal(t, []processlock.Waiter{}, invoice.Waiters)
			require.Equal(t, processlock.ModeExclusive, invoice.Holders[0].Mode)

			close(gate)
			for range 5 {
				require.NoError(t, <-done)
			}
			ctRequireIdle(t, c)
		})
	}
}

// Those that came through the queue know since when they hold, tracked or not;
// that is when they were granted, not when they began to wait.
//
// Rule 40.
func TestHolderThatWaitedKnowsSinceWhen(t *testing.T) {
	for _, track := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := processlock.New(processlock.Options{TrackHolds: track})
			busy := ctHold(t, c, t.Context(), "k")
			next := ctStart(t, c, t.Context(), "k")
			time.Sleep(time.Hour)
			require.NoError(t, busy.finish())
			<-next.entered
			time.Sleep(time.Minute)
			s := c.Snapshot()
			require.Equal(t, time.Minute, ctAge(s, s.Locks[0].Holders[0].Since))
			require.True(t, s.Locks[0].Holders[0].Running)
			require.NoError(t, next.finish())

			again := ctHold(t, c, t.Context(), "k")
			s = c.Snapshot()
			require.Equal(t, !track, s.Locks[0].Holders[0].Since.IsZero(), "nothing is left of whoever had the place before")
			require.NoError(t, again.finish())
		})
	}
}

// A request that has been granted its key but has not resumed holds it and does
// not run; nor does what All has taken while it waits for the rest.
//
// Rules 23 and 39.
func TestHolderThatDoesNotRunYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		busy := ctHold(t, &c, t.Context(), "k")
		slow := ctSlowly(t.Context())
		granted := ctStart(t, &c, slow, "k")
		synctest.Wait()
		time.Sleep(time.Minute)
		slow.armed.Store(true)
		require.NoError(t, busy.finish())
		<-slow.asked
		s := c.Snapshot()
		require.False(t, s.Locks[0].Holders[0].Running)
		require.Zero(t, ctAge(s, s.Locks[0].Holders[0].Since), "since just now")
		close(slow.gate)
		<-granted.entered
		require.True(t, c.Snapshot().Locks[0].Holders[0].Running)

		all := ctStart(t, &c, t.Context(), processlock.All("a", "k", "z"))
		synctest.Wait()
		s = c.Snapshot()
		require.Len(t, s.Locks, 2)
		require.Equal(t, processlock.MustKey("a"), s.Locks[0].Key)
		require.False(t, s.Locks[0].Holders[0].Running)
		require.Equal(t, []processlock.Key{processlock.MustKey("a")}, s.Locks[1].Waiters[0].Holding)
		require.NoError(t, granted.finish())
		<-all.entered
		s = c.Snapshot()
		require.Len(t, s.Locks, 3)
		for _, l := range s.Locks {
			require.True(t, l.Holders[0].Running, l.Key.String())
		}
		require.NoError(t, all.finish())
	})
}

// Rule 39.
func TestSnapshotIsSortedByCanonicalText(t *testing.T) {
	var c processlock.Coordinator
	keys := []any{"b", "a", 10, 9, "", []any{"a", 1}, []any{}, 1.5, true, nil, "ä", "\x00", []any{"a"}, []byte("a")}
	for i := range 100 {
		keys = append(keys, i*7919)
	}
	err := c.WithLock(t.Context(), processlock.All(keys...), func(context.Context) error {
		s := c.Snapshot()
		require.Greater(t, len(s.Locks), 110)
		require.True(t, slices.IsSortedFunc(s.Locks, func(a, b processlock.LockState) int {
			return strings.Compare(a.Key.Canonical(), b.Key.Canonical())
		}))
		return nil
	})
	require.NoError(t, err)
}

// A waiter holds what its lineage holds, in any coordinator, each key once, and
// what All has taken before; not what has been given back meanwhile.
//
// Rule 39.
func TestWaiterShowsWhatItHoldsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, other processlock.Coordinator
		busy := ctHold(t, &c, t.Context(), "busy")
		z := ctHold(t, &c, t.Context(), "z")
		foreign := ctHold(t, &other, z.fnCtx, "foreign")
		same := ctHold(t, &other, foreign.fnCtx, "z")
		waits := ctStart(t, &c, same.fnCtx, processlock.All("a", "busy"))
		synctest.Wait()
		detached := ctStart(t, &c, processlock.Detach(same.fnCtx), "busy")
		synctest.Wait()
		holding := func(i int) []processlock.Key {
			for _, l := range c.Snapshot().Locks {
				if l.Key == processlock.MustKey("busy") {
					slices.SortFunc(l.Waiters, func(a, b processlock.Waiter) int { return len(b.Holding) - len(a.Holding) })
					return l.Waiters[i].Holding
				}
			}
			return nil
		}
		key := func(s string) processlock.Key { return processlock.MustKey(s) }
		require.Equal(t, []processlock.Key{key("a"), key("z"), key("foreign")}, holding(0), "by canonical text, in which a string's length comes first")
		require.Equal(t, []processlock.Key{}, holding(1))
		require.NoError(t, foreign.finish())
		require.Equal(t, []processlock.Key{key("a"), key("z")}, holding(0))

		require.NoError(t, busy.finish())
		for _, call := range []*ctCall{waits, detached, same, z} {
			require.NoError(t, call.finish())
		}
		ctRequireIdle(t, &c)
	})
}

// Rule 39.
func TestSnapshotAsJSONHasEmptyListsAndNoNulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c processlock.Coordinator
		text := func() string {
			b, err := json.Marshal(c.Snapshot())
			require.NoError(t, err)
			require.NotContains(t, string(b), "null")
			return string(b)
		}
		require.Contains(t, text(), `"Locks":[]`)
		busy := ctHold(t, &c, t.Context(), "k")
		require.Contains(t, text(), `"Waiters":[]`)
		require.Contains(t, text(), `"Mode":"exclusive"`)
		waits := ctStart(t, &c, t.Context(), "k", processlock.Shared)
		synctest.Wait()
		require.Contains(t, text(), `"Holding":[]`)
		require.Contains(t, text(), `"Mode":"shared"`)
		require.NoError(t, busy.finish())
		require.NoError(t, waits.finish())
		require.Contains(t, text(), `"Locks":[]`)
	})
}

// A snapshot shares nothing with the coordinator, nor with another snapshot.
//
// Rule 39.
func TestSnapshotIsACopy(t *testing.T) {
	var c processlock.Coordinator
	busy := ctHold(t, &c, t.Context(), "k")
	s := c.Snapshot()
	s.Locks[0].Holders[0].Client = "changed"
	s.Locks[0].Key = processlock.MustKey("changed")
	after := c.Snapshot()
	require.Equal(t, "", after.Locks[0].Holders[0].Client)
	require.Equal(t, processlock.MustKey("k"), after.Locks[0].Key)
	require.NoError(t, busy.finish())
	require.Len(t, s.Locks, 1)
}
