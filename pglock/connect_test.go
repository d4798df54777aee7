package pglock_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nobody waits for ever for a connection that is accepted and never served.
func TestConnectingIsBounded(t *testing.T) {
	b := newBed(t)
	var timeout time.Duration
	pool := b.pool(b.db.DSN(), func(c *pgxpool.Config) {
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { timeout = c.ConnectTimeout; return nil }
	})
	l := pglock.New(pool, pglock.Options{})
	b.closes(l)
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
	assert.Positive(t, timeout)
	assert.LessOrEqual(t, timeout, 2*time.Minute)
}
