package pglock_test

import (
	"context"
	"testing"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/require"
)

// Where Err says that fn's context has ended, Done says so too.
func TestDoneDoesNotLagBehindErr(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, l.WithLock(ctx, "k", func(ctx context.Context) error {
			done := ctx.Done()
			cancel()
			require.ErrorIs(t, ctx.Err(), context.Canceled)
			require.True(t, isClosed(done))
			return nil
		}))
	}
}
