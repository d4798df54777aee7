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

// Nor for a hook of the pool's whose server has gone.
func TestHooksAreBounded(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	pool := b.pool(b.db.DSNAt(p.Addr()), func(c *pgxpool.Config) {
		c.ConnConfig.ConnectTimeout = 2 * time.Second
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			p.BlackHole()
			_, err := conn.Exec(ctx, "select 1")
			return err
		}
	})
	l := pglock.New(pool, pglock.Options{})
	b.closes(l)
	b.refused(b.bounded(func() error { return l.WithLock(context.Background(), "k", nop) }), context.DeadlineExceeded)
	p.Heal()
	assert.Zero(t, p.Wire().Cancels)
}
