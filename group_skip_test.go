package processlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// IfAvailable, MaxWait and a full queue keep a task from starting; that is counted
// and is no error.
//
// Rules 19, 20, 21 and 41.
func TestGroupSkips(t *testing.T) {
	gtBubbleWith(t, processlock.Options{MaxWaiters: 2}, 0, func(s *gtScene) {
		busy := s.call("k")
		never := func(key any, opts ...processlock.Option) {
			s.g.GoLocked(key, ctNever(s), opts...)
			synctest.Wait()
		}
		never("k", processlock.IfAvailable)
		assert.Equal(s, 1, s.g.Skipped())
		never("k", processlock.MaxWait(0))
		never("k", processlock.MaxWait(-1))
		never(processlock.All("f", "k"), processlock.IfAvailable)
		assert.Equal(s, 4, s.g.Skipped())
		assert.True(s, ltFree(s.c, "f"), "nothing is kept of a failed try")
		never("k", processlock.MaxWait(time.Second), processlock.MaxWait(time.Hour))
		x := s.lock("k")
		assert.EqualValues(s, 2, s.c.Stats().Waiting)
		never("k")
		never(processlock.All("f", "k"))
		assert.Equal(s, 6, s.g.Skipped())
		assert.True(s, ltFree(s.c, "f"))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(s, 7, s.g.Skipped())
		assert.NoError(s, s.ctx.Err())
		busy.open()
		s.states([]string{"runs"}, x)
		x.open()
		require.NoError(s, s.g.Wait())
		assert.Equal(s, 7, s.g.Skipped(), "after Wait too")
		// f was granted twice for All, and three times for a look.
		assert.Equal(s, processlock.Stats{Acquired: 2 + 2 + 2, Waited: 2, Unavailable: 7}, s.stats())
	})
}

// IfAvailable on a free key runs; with All, on free keys.
//
// Rule 19.
func TestGroupIfAvailableRuns(t *testing.T) {
	gtBubble(t, 0, func(s *gtScene) {
		x, y := s.lock("k", processlock.IfAvailable), s.lock(processlock.All("l", "m"), processlock.MaxWait(0))
		s.states([]string{"runs", "runs"}, x, y)
		x.open()
		y.open()
		assert.Zero(s, s.g.Skipped())
	})
}

// MaxWait bounds the wait for the key, of several the waits together. What comes
// after the grant, for the slot, does not count; if time is up when the grant
// comes, the grant wins.
//
// Rule 20.
func TestGroupMaxWait(t *testing.T) {
	t.Run("runs out", func(t *testing.T) {
		gtBubble(t, 1, func(s *gtScene) {
			busy := s.call("k")
			x, behind := s.lock("k", processlock.MaxWait(time.Second)), s.lock("k")
			time.Sleep(time.Second - 1)
			synctest.Wait()
			assert.EqualValues(s, 2, s.c.Stats().Waiting)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			assert.EqualValues(s, 1, s.c.Stats().Waiting)
			assert.Equal(s, 1, s.g.Skipped())
			busy.open()
			s.states([]string{"waits", "runs"}, x, behind)
			behind.open()
			assert.Equal(s, processlock.Stats{Acquired: 2, Waited: 2, Unavailable: 1}, s.stats())
			assert.Equal(s, 2*time.Second, s.c.Stats().WaitDuration)
		})
	})
	t.Run("counts no wait for a slot", func(t *testing.T) {
		for _, key := range []any{"k", processlock.All("j", "k")} {
			gtBubble(t, 1, func(s *gtScene) {
				busy, running := s.call("k"), s.free()
				x := s.lock(key, processlock.MaxWait(time.Second))
				time.Sleep(time.Second / 2)
				busy.open()
				time.Sleep(time.Hour)
				running.open()
				s.states([]string{"runs"}, x)
				x.open()
				assert.Zero(s, s.g.Skipped())
			})
		}
	})
	t.Run("of several together", func(t *testing.T) {
		gtBubble(t, 0, func(s *gtScene) {
			j, k := s.call("j"), s.call("k")
			x := s.lock(processlock.All("j", "k"), processlock.MaxWait(time.Second))
			time.Sleep(600 * time.Millisecond)
			j.open()
			time.Sleep(400 * time.Millisecond)
			synctest.Wait()
			assert.Equal(s, 1, s.g.Skipped())
			assert.True(s, ltFree(s.c, "j"), "it gave j up")
			k.open()
			s.states([]string{"waits"}, x)
			assert.Equal(s, processlock.Stats{Acquired: 4, Waited: 2, Unavailable: 1}, s.stats())
		})
	})
	t.Run("meets the grant", func(t *testing.T) {
		// Both happen in one instant of the bubble's clock, in either order.
		for range 50 {
			gtBubble(t, 0, func(s *gtScene) {
				ran := 0
				s.g.GoLocked("k", func(context.Context) error { time.Sleep(time.Second); return nil })
				s.g.GoLocked("k", func(context.Context) error { ran++; return nil }, processlock.MaxWait(time.Second))
				s.g.GoLocked("k", ltNop)
				require.NoError(s, s.g.Wait())
				assert.Equal(s, 1, ran+s.g.Skipped())
				st := s.stats()
				assert.Equal(s, processlock.Stats{Acquired: 2 + int64(ran), Waited: 2, Unavailable: 1 - int64(ran)}, st)
			})
		}
	})
}
