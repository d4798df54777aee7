package processlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ltMode returns the options of a request that is written as 'S' or 'X'.
func ltMode(letter byte) []processlock.Option {
	if letter == 'S' {
		return []processlock.Option{processlock.Shared}
	}
	return nil
}

// ltRunning lists the indexes of the calls whose fn runs.
func ltRunning(calls []*ltCall) []int {
	running := []int{}
	for i, call := range calls {
		if call.state() == "runs" {
			running = append(running, i)
		}
	}
	return running
}

// Requests arrive in the order of the letters; then, again and again, all that
// run return. Each group is what runs together.
//
// Rules 1, 3 and 4.
func TestSharedNeighboursAreGrantedTogether(t *testing.T) {
	rows := []struct {
		arrivals string
		groups   [][]int
	}{
		{"S", [][]int{{0}}},
		{"SSS", [][]int{{0, 1, 2}}},
		{"XS", [][]int{{0}, {1}}},
		{"XSS", [][]int{{0}, {1, 2}}},
		{"SX", [][]int{{0}, {1}}},
		{"SXS", [][]int{{0}, {1}, {2}}},
		{"SSXSS", [][]int{{0, 1}, {2}, {3, 4}}},
		{"XSSXSSSXXS", [][]int{{0}, {1, 2}, {3}, {4, 5, 6}, {7}, {8}, {9}}},
		{"XXX", [][]int{{0}, {1}, {2}}},
	}
	for _, row := range rows {
		t.Run(row.arrivals, func(t *testing.T) {
			ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
				var calls []*ltCall
				for _, letter := range []byte(row.arrivals) {
					calls = append(calls, ltGo(t.Context(), c, "k", ltMode(letter)...))
				}
				for _, group := range row.groups {
					require.Equal(t, group, ltRunning(calls))
					for _, i := range group {
						close(calls[i].gate)
					}
					synctest.Wait()
				}
				for _, call := range calls {
					ltServed(t, call)
				}
			})
		})
	}
}

// Rule 4.
func TestExclusiveWaitsForEverySharedHolder(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		shared := make([]*ltCall, 4)
		for i := range shared {
			shared[i] = ltGo(t.Context(), c, "k", processlock.Shared)
		}
		exclusive := ltGo(t.Context(), c, "k")
		// First the one that found the key free, then one from the middle, then
		// the youngest.
		for _, i := range []int{0, 2, 3, 1} {
			assert.Equal(t, "waits", exclusive.state())
			shared[i].open()
		}
		assert.Equal(t, "runs", exclusive.state())
		exclusive.open()
	})
}

// Rule 4.
func TestSharedTryDoesNotPassAQueuedExclusive(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k", processlock.Shared)
		assert.NoError(t, c.WithLock(t.Context(), "k", ltNop, processlock.Shared, processlock.IfAvailable))
		exclusive := ltGo(t.Context(), c, "k")
		err := c.WithLock(t.Context(), "k", ltNop, processlock.Shared, processlock.IfAvailable)
		assert.ErrorIs(t, err, processlock.ErrUnavailable)
		holder.open()
		exclusive.open()
		ltServed(t, exclusive)
	})
}

// ltLeaver is a way in which a waiting request can be made to leave.
type ltLeaver struct {
	name string
	want error
	// prepare returns the request's context and options, and what makes it leave.
	prepare func(ctx context.Context, c *processlock.Coordinator) (context.Context, []processlock.Option, func())
}

var ltLeavers = []ltLeaver{
	{"cancel", context.Canceled, func(ctx context.Context, _ *processlock.Coordinator) (context.Context, []processlock.Option, func()) {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, nil, cancel
	}},
	{"deadline", context.DeadlineExceeded, func(ctx context.Context, _ *processlock.Coordinator) (context.Context, []processlock.Option, func()) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		context.AfterFunc(ctx, cancel)
		return ctx, nil, func() { time.Sleep(time.Second) }
	}},
	{"MaxWait", processlock.ErrWaitTimeout, func(ctx context.Context, _ *processlock.Coordinator) (context.Context, []processlock.Option, func()) {
		return ctx, []processlock.Option{processlock.MaxWait(time.Second)}, func() { time.Sleep(time.Second) }
	}},
	{"close", processlock.ErrClosed, func(ctx context.Context, c *processlock.Coordinator) (context.Context, []processlock.Option, func()) {
		ctx, cl := c.WithClient(ctx, "leaver")
		return ctx, nil, cl.Close
	}},
	{"close without context", processlock.ErrClosed, func(ctx context.Context, c *processlock.Coordinator) (context.Context, []processlock.Option, func()) {
		ctx, cl := c.WithClient(ctx, "leaver")
		return context.WithoutCancel(ctx), nil, cl.Close
	}},
}

// In each row those that leave are written in lower case. Groups as above,
// after they have left.
//
// Rules 4, 5 and 9.
func TestLeavingTheQueueKeepsTheOrderAndGrantsAtOnce(t *testing.T) {
	rows := []struct {
		arrivals string
		groups   [][]int
	}{
		{"Xx", [][]int{{0}}},
		{"XxXX", [][]int{{0}, {2}, {3}}},
		{"XXxX", [][]int{{0}, {1}, {3}}},
		{"XXXx", [][]int{{0}, {1}, {2}}},
		{"XxxX", [][]int{{0}, {3}}},
		{"XxXx", [][]int{{0}, {2}}},
		{"Xxxx", [][]int{{0}}},
		{"SxS", [][]int{{0, 2}}}, // while the first is still inside
		{"SxSSXS", [][]int{{0, 2, 3}, {4}, {5}}},
		{"SXxS", [][]int{{0}, {1}, {3}}},
		{"SxXS", [][]int{{0}, {2}, {3}}},
		{"SXsS", [][]int{{0}, {1}, {3}}},
		{"XSxS", [][]int{{0}, {1, 3}}},
		{"XsXS", [][]int{{0}, {2}, {3}}},
		{"XxS", [][]int{{0}, {2}}},
	}
	for _, leaver := range ltLeavers {
		for _, row := range rows {
			t.Run(leaver.name+"/"+row.arrivals, func(t *testing.T) {
				ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
					var calls, left []*ltCall
					var leave []func()
					for _, letter := range []byte(row.arrivals) {
						ctx, opts := t.Context(), ltMode(letter)
						leaves := letter == 'x' || letter == 's'
						if leaves {
							var o []processlock.Option
							var f func()
							ctx, o, f = leaver.prepare(ctx, c)
							opts = append(ltMode(letter-'a'+'A'), o...)
							leave = append(leave, f)
						}
						call := ltGo(ctx, c, "k", opts...)
						calls = append(calls, call)
						if leaves {
							left = append(left, call)
						}
					}
					for _, f := range leave {
						f()
						synctest.Wait()
					}
					for _, call := range left {
						ltRefused(t, call, leaver.want)
					}
					for _, group := range row.groups {
						require.Equal(t, group, ltRunning(calls))
						for _, i := range group {
							close(calls[i].gate)
						}
						synctest.Wait()
					}
					assert.Empty(t, ltRunning(calls))
				})
			})
		}
	}
}

// ltModel is the queue of one key, written to be obvious.
type ltModel struct {
	holders, queue []int
	shared         map[int]bool
}

func (m *ltModel) admits(id int) bool {
	if len(m.holders) == 0 {
		return true
	}
	return m.shared[id] && m.shared[m.holders[0]]
}

func (m *ltModel) settle() {
	for len(m.queue) > 0 && m.admits(m.queue[0]) {
		m.holders = append(m.holders, m.queue[0])
		m.queue = m.queue[1:]
	}
}

func (m *ltModel) arrive(id int, shared bool) {
	m.shared[id] = shared
	m.queue = append(m.queue, id)
	m.settle()
}

func (m *ltModel) remove(id int) {
	is := func(other int) bool { return other == id }
	m.holders = slices.DeleteFunc(m.holders, is)
	m.queue = slices.DeleteFunc(m.queue, is)
	m.settle()
}

// Arrivals, returns and departures at random, each step compared with the model
// through what runs and through Snapshot.
//
// Rules 1, 3, 4 and 5.
func TestQueueDoesAsTheModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			// TrackHolds writes down every hold, which goes another way inside.
			opts := processlock.Options{TrackHolds: seed%2 == 1, MaxWaiters: int(seed) * 10}
			ltBubbleWith(t, opts, func(t *testing.T, c *processlock.Coordinator) {
				ltCompareWithModel(t, c, rand.New(rand.NewPCG(seed, 0)))
			})
		})
	}
}

func ltCompareWithModel(t *testing.T, c *processlock.Coordinator, r *rand.Rand) {
	m := &ltModel{shared: map[int]bool{}}
	var calls []*ltCall
	var cancels []func()
	arrive := func(shared bool) {
		id := len(calls)
		ctx, cl := c.WithClient(t.Context(), fmt.Sprint(id))
		ctx, cancel := context.WithCancel(ctx)
		cancels = append(cancels, cancel)
		t.Cleanup(cl.Close)
		letter := byte('X')
		if shared {
			letter = 'S'
		}
		calls = append(calls, ltGo(ctx, c, "k", ltMode(letter)...))
		m.arrive(id, shared)
	}
	check := func() {
		t.Helper()
		running := ltRunning(calls)
		want := slices.Sorted(slices.Values(m.holders))
		require.ElementsMatch(t, want, running)
		holders, waiters := []int{}, []int{}
		for _, l := range c.Snapshot().Locks {
			for _, h := range l.Holders {
				holders = append(holders, ltAtoi(t, h.Client))
			}
			for _, w := range l.Waiters {
				waiters = append(waiters, ltAtoi(t, w.Client))
			}
		}
		require.ElementsMatch(t, m.holders, holders)
		require.Equal(t, append([]int{}, m.queue...), waiters)
	}
	for range 150 {
		switch p := r.IntN(10); {
		case p < 4 && len(m.queue) < 8:
			arrive(r.IntN(5) < 3)
		case p < 7 && len(m.holders) > 0:
			id := m.holders[r.IntN(len(m.holders))]
			calls[id].open()
			m.remove(id)
		case len(m.queue) > 0:
			id := m.queue[r.IntN(len(m.queue))]
			cancels[id]()
			synctest.Wait()
			ltRefused(t, calls[id], context.Canceled)
			m.remove(id)
		}
		check()
	}
	for len(m.holders) > 0 {
		id := m.holders[0]
		calls[id].open()
		m.remove(id)
		check()
	}
	assert.Equal(t, int64(len(calls)), ltEnds(c))
	for _, cancel := range cancels {
		cancel()
	}
}

func ltAtoi(t *testing.T, s string) (n int) {
	t.Helper()
	_, err := fmt.Sscan(s, &n)
	require.NoError(t, err)
	return n
}
