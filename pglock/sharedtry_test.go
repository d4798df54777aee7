package pglock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A try never waits, though a shared call of this process does in front of it.
func TestSharedTryBehindAWaitIsRefusedAtOnce(t *testing.T) {
	for _, mode := range []pglock.WaitMode{pglock.Queue, pglock.Poll} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBed(t)
			other := b.session()
			b.take(other, "k")
			l := b.locker(pglock.Options{Wait: mode})
			w := b.start(t.Context(), l, "k", processlock.Shared)
			b.eventually(func() bool { return len(b.sessions()) > 0 }, "nobody asks")
			for range 3 {
				try := b.start(t.Context(), l, "k", processlock.Shared, processlock.IfAvailable)
				require.ErrorIs(t, try.returns(), processlock.ErrUnavailable)
			}
			w.pending()
			b.unlock(other, "k")
			w.runs().ok()
		})
	}
}

// However long shared holders of a process overlap, their sessions are not more
// than MaxConns.
func TestSharedHoldersStayWithinMaxConns(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{MaxConns: 3})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	most := 0
	for ctx.Err() == nil {
		wg.Go(func() {
			assert.NoError(t, l.WithLock(t.Context(), "k", func(context.Context) error {
				time.Sleep(500 * time.Millisecond)
				return nil
			}, processlock.Shared))
		})
		time.Sleep(5 * time.Millisecond)
		most = max(most, len(b.sessions()))
	}
	wg.Wait()
	assert.LessOrEqual(t, most, 3)
}
