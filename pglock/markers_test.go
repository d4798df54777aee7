package pglock_test

import (
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/require"
)

// A session that has got what a nested call waited for publishes on what that
// call held, and keeps the key for the next of its process, who holds nothing of
// it. Who waits for that next one is in no cycle through it.
func TestSessionThatIsHandedOnAccusesNobody(t *testing.T) {
	for _, mode := range []pglock.WaitMode{pglock.Queue, pglock.Poll} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBed(t)
			local := processlock.New(processlock.Options{})
			l := b.locker(pglock.Options{Wait: mode, Local: local, Handoff: pglock.Handoff{For: time.Minute}})
			other := b.locker(pglock.Options{Wait: mode})
			hand := b.session()

			b.take(hand, "handed on")
			held := b.hold(l, "held")
			first := b.start(held.ctx, l, "handed on")
			// By hand, "held", and what stands for it and for the wish.
			b.eventually(func() bool { return len(b.locks()) >= 4 }, "nothing is published")
			second := b.start(t.Context(), l, "handed on")
			b.eventually(func() bool { return waitersOf(local, idOf("handed on")) == 1 }, "the second does not wait")
			b.unlock(hand, "handed on")
			first.runs().ok()
			second.runs()
			held.ok()
			b.take(hand, "held") // has another holder now

			theirs := b.hold(other, "theirs")
			waits := b.start(theirs.ctx, other, "held")
			asks := b.start(second.ctx, l, "theirs")
			time.Sleep(4 * time.Second) // both looks of a search are over
			waits.pending()
			asks.pending()
			b.unlock(hand, "held")
			waits.runs().ok()
			theirs.ok()
			asks.runs().ok()
			second.ok()
			require.Empty(t, b.locks())
		})
	}
}
