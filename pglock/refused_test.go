package pglock_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowAfter is a connection on which an answer that follows a refusal is late.
type slowAfter struct {
	net.Conn
	refused bool
}

func (c *slowAfter) Read(p []byte) (int, error) {
	if c.refused {
		time.Sleep(20 * time.Millisecond)
	}
	n, err := c.Conn.Read(p)
	c.refused = bytes.Contains(p[:n], []byte("42501"))
	return n, err
}

// A statement that the server refuses ends no other lock, though what follows
// the refusal takes time.
func TestRefusedStatementEndsNoOtherLock(t *testing.T) {
	b := newBed(t)
	admin := b.session()
	role := b.db.Name + "_role" // of the cluster
	b.exec(admin, "create role "+role)
	b.Cleanup(func() { assert.NoError(t, b.db.Server.Exec(context.Background(), "drop role "+role)) })
	l := pglock.New(b.pool(b.db.DSN(), func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "set role "+role)
			return err
		}
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &slowAfter{Conn: conn}, err
		}
	}), pglock.Options{})
	b.closes(l)
	held := b.hold(l, "held")
	b.exec(admin, "revoke execute on function pg_try_advisory_lock(bigint) from public")
	for range 10 {
		b.refused(l.WithLock(t.Context(), "other", nop))
	}
	b.exec(admin, "grant execute on function pg_try_advisory_lock(bigint) to public")
	require.NoError(t, l.WithLock(t.Context(), "other", nop))
	held.ok()
}
