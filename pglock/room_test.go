package pglock

import (
	"context"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Calls that left before there was room for their keys leave nothing.
func TestCallsThatFoundNoRoomLeaveNothing(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "host=127.0.0.1 port=1")
	require.NoError(t, err)
	defer pool.Close()
	l := New(pool, Options{MaxKeys: 1})
	l.keys = 1 // held by somebody
	for i := range 100 {
		err := l.WithLock(t.Context(), i, func(context.Context) error { return nil }, processlock.MaxWait(time.Millisecond))
		require.ErrorIs(t, err, processlock.ErrWaitTimeout)
	}
	assert.Empty(t, l.crowd)
	assert.Empty(t, l.entries)
}
