package processlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// A key without identity is the group's error; nothing is queued for it.
//
// Rules 17 and 18.
func TestGroupBadKeyIsTheGroupsError(t *testing.T) {
	for name, key := range map[string]any{
		"func":        func() {},
		"deep":        []any{"a", map[string]any{"b": make(chan int)}},
		"zero Key":    processlock.Key{},
		"Keys inside": []any{processlock.All("a")},
		"in All":      processlock.All("a", func() {}),
	} {
		t.Run(name, func(t *testing.T) {
			gtBubble(t, 0, func(s *gtScene) {
				running := s.lock("k")
				behind := s.lock("k")
				s.g.GoLocked(key, ctNever(s))
				synctest.Wait()
				assert.Error(s, s.ctx.Err(), "as any first error")
				running.open()
				s.states([]string{"waits"}, behind)
				err := s.g.Wait()
				require.ErrorIs(s, err, processlock.ErrKey)
				var ae *processlock.AcquireError
				require.ErrorAs(s, err, &ae)
				assert.Equal(s, processlock.Key{}, ae.Key)
				want := s.c.WithLock(s.Context(), key, ltNop)
				assert.Equal(s, want.Error(), err.Error(), "as WithLock's")
				assert.Equal(s, processlock.Stats{Acquired: 1, Waited: 1, Canceled: 1}, s.stats())
			})
		})
	}
	gtBubble(t, 0, func(s *gtScene) { // a done context comes first
		s.cancel(nil)
		s.g.GoLocked(func() {}, ctNever(s))
		assert.NotErrorIs(s, s.g.Wait(), processlock.ErrKey)
	})
	gtBubble(t, 0, func(s *gtScene) { // user code that panics adds nothing
		assert.PanicsWithValue(s, errGt, func() { s.g.GoLocked(gtBadText{}, ctNever(s)) })
		assert.NoError(s, s.g.Wait())
	})
}

type gtBadText struct{}

func (gtBadText) MarshalText() ([]byte, error) { panic(errGt) }

// Reentrant takes over what NewGroup's lineage holds; then the inner return
// releases nothing, and who outlives the hold is told.
//
// Rules 22 and 27.
func TestGroupReentrant(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		var x, y, z *gtTask
		var g *processlock.Group
		err := s.c.WithLock(s.root, "k", func(ctx context.Context) error {
			behind := s.call("k")
			g, _ = processlock.NewGroup(ctx, "in")
			x, y, z = gtNew(s, ltNop), gtNew(s, ltNop), gtNew(s, ltNop)
			g.GoLocked("k", x.fn, processlock.Reentrant)
			g.GoLocked(processlock.All("j", "k", "l"), y.fn, processlock.Reentrant)
			g.GoLocked("k", z.fn, processlock.Reentrant)
			synctest.Wait()
			s.states([]string{"runs", "runs", "runs"}, x, y, z)
			assert.Equal(s, map[string][2][]string{`["j"]`: {{"in-2*"}, nil}, `["k"]`: {{"*"}, {""}}, `["l"]`: {{"in-2*"}, nil}}, gtLocks(s.c))
			x.open()
			y.open()
			assert.Equal(s, "waits", behind.state())
			close(behind.gate)
			return nil
		})
		require.NoError(s, err)
		synctest.Wait()
		z.open()
		assert.Equal(s, processlock.ErrLost, g.Wait(), "z outlived the hold")
		assert.Equal(s, processlock.Stats{Acquired: 7, Waited: 1}, s.stats())
	})
	gtBubble(t, 0, func(s *gtScene) { // without a hold it changes nothing
		x, y := s.lock("k", processlock.Reentrant), s.lock("k", processlock.Reentrant)
		s.states([]string{"runs", "waits"}, x, y)
		x.open()
		s.states([]string{"over", "runs"}, x, y)
		y.open()
		assert.NoError(s, s.g.Wait())
	})
}

// All takes each key once, one after the other, in canonical order, each in its
// own queue, and holds what it has.
//
// Rule 23.
func TestGroupAll(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		b, d := s.call("b"), s.call("d")
		x := s.lock(processlock.All("d", "a", "b", "c", "b", processlock.All("a", "d")))
		assert.Equal(s, map[string][2][]string{`["a"]`: {{"g-1"}, nil}, `["b"]`: {{"*"}, {"g-1"}}, `["d"]`: {{"*"}, nil}}, gtLocks(s.c))
		var holding []string
		for _, k := range s.c.Snapshot().Locks[1].Waiters[0].Holding {
			holding = append(holding, k.String())
		}
		assert.Equal(s, []string{`["a"]`}, holding)
		behindB, behindA := s.lock("b"), s.lock("a")
		b.open()
		assert.Equal(s, map[string][2][]string{
			`["a"]`: {{"g-1"}, {"g-3"}}, `["b"]`: {{"g-1"}, {"g-2"}}, `["c"]`: {{"g-1"}, nil}, `["d"]`: {{"*"}, {"g-1"}},
		}, gtLocks(s.c))
		d.open()
		s.states([]string{"runs", "waits", "waits"}, x, behindB, behindA)
		assert.Equal(s, [2][]string{{"g-1*"}, nil}, gtLocks(s.c)[`["c"]`])
		x.open()
		s.states([]string{"over", "runs", "runs"}, x, behindB, behindA)
		behindA.open()
		behindB.open()
		assert.Equal(s, processlock.Stats{Acquired: 2 + 4 + 2, Waited: 4}, s.stats())
	})
	gtBubble(t, 1, func(s *gtScene) { // of no keys: fn runs
		x := s.lock(processlock.All())
		s.states([]string{"runs"}, x)
		y := s.lock(processlock.All(), processlock.Shared)
		s.states([]string{"waits"}, y)
		x.open()
		y.open()
		assert.Equal(s, processlock.Stats{}, s.stats())
	})
	gtBubble(t, 0, func(s *gtScene) { // Shared
		r := s.call("b", processlock.Shared)
		x, y := s.lock(processlock.All("a", "b"), processlock.Shared), s.lock(processlock.All("b", "a"), processlock.Shared)
		s.states([]string{"runs", "runs"}, x, y)
		w := s.lock(processlock.All("a", "b"))
		s.states([]string{"waits"}, w)
		x.open()
		y.open()
		s.states([]string{"waits"}, w)
		r.open()
		s.states([]string{"runs"}, w)
		w.open()
	})
}

// What a task wrote is seen by the next under its key, and after Wait by all.
//
// Rules 7 and 38.
func TestGroupTaskSeesWhatTheOneBeforeWrote(t *testing.T) {
	var c processlock.Coordinator
	ctx := processlock.WithCoordinator(t.Context(), &c)
	g, _ := processlock.NewGroup(ctx, "g")
	g.SetLimit(3)
	sums, order := make([]int, 4), make([][]int, 4)
	for i := range 2000 {
		key := i % 4
		add := func(context.Context) error {
			sums[key] += i
			order[key] = append(order[key], i)
			return nil
		}
		if i%50 == 0 {
			g.GoLocked(processlock.All(key, key+100), add)
		} else {
			g.GoLocked(key, add)
		}
	}
	require.NoError(t, g.Wait())
	total := 0
	for key, sum := range sums {
		total += sum
		assert.Len(t, order[key], 500)
	}
	assert.Equal(t, 1999*1000, total)
}

// ErrLost and fn's error come joined, as WithLock's do.
//
// Rule 27.
func TestGroupJoinsErrLostWithTheError(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		var g *processlock.Group
		x := gtNew(s, func(context.Context) error { return errGt })
		require.NoError(s, s.c.WithLock(s.root, "k", func(ctx context.Context) error {
			g, _ = processlock.NewGroup(ctx, "in")
			g.GoLocked("k", x.fn, processlock.Reentrant)
			synctest.Wait()
			return nil
		}))
		x.open()
		err := g.Wait()
		assert.True(s, errors.Is(err, processlock.ErrLost) && errors.Is(err, errGt))
	})
}
