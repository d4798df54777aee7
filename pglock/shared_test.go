package pglock_test

import (
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/require"
)

// A shared holder that stays long keeps no shared one of its process waiting,
// though the time in which the key is passed on here is over.
func TestSharedJoinsAfterHandoffIsOver(t *testing.T) {
	for _, mode := range []pglock.WaitMode{pglock.Queue, pglock.Poll} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBed(t)
			l := b.locker(pglock.Options{Wait: mode, Handoff: pglock.Handoff{Max: 1}})
			var held []*call
			for range 5 {
				held = append(held, b.hold(l, "k", processlock.Shared))
			}
			require.NoError(t, l.WithLock(t.Context(), "k", nop, processlock.Shared, processlock.IfAvailable))
			for _, c := range held {
				c.ok()
			}
			b.nothingHeld()
		})
	}
}

// Shared holders that follow each other without a gap, in one process, let an
// exclusive request of another in.
func TestSharedHoldersOfAProcessDontStarveOthers(t *testing.T) {
	b := newBed(t)
	l, other := b.locker(pglock.Options{Slice: 5 * time.Second}), b.locker(pglock.Options{Slice: 5 * time.Second})
	last := b.hold(l, "k", processlock.Shared)
	x := b.start(t.Context(), other, "k")
	b.eventually(func() bool { return len(b.waiting("k")) == 1 }, "the other process does not wait")
	for i := 0; ; i++ {
		next := b.start(t.Context(), l, "k", processlock.Shared)
		select {
		case <-next.entered:
		case <-x.entered:
			x.ok()
			next.runs()
			next.ok()
			last.ok()
			return
		case <-time.After(100 * time.Millisecond):
			last.ok() // next waits behind x
			x.runs().ok()
			next.runs().ok()
			return
		}
		require.Less(t, i, 1000)
		last.ok()
		last = next
	}
}
