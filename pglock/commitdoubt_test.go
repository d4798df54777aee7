package pglock_test

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cut is a connection that ends with the COMMIT: after it was sent, or before.
type cut struct {
	net.Conn
	sent bool
}

func (c *cut) Write(p []byte) (n int, err error) {
	commits := bytes.Contains(p, []byte("commit;"))
	if !commits || c.sent {
		n, err = c.Conn.Write(p)
	}
	if commits {
		c.Close()
	}
	return n, err
}

// Where the connection ends in mid-COMMIT it may be done or not, and that is
// what the call says; the lock is gone either way.
func TestCommitThatIsNotAnsweredIsInDoubt(t *testing.T) {
	b := newBed(t)
	other := b.session()
	b.exec(other, "create table t (sent bool)")
	for _, sent := range []bool{true, false} {
		l := pglock.New(b.pool(b.db.DSN(), func(c *pgxpool.Config) {
			dial := c.ConnConfig.DialFunc
			c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return &cut{conn, sent}, err
			}
		}), pglock.Options{})
		b.closes(l)
		err := l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "insert into t values ($1)", sent)
			return err
		})
		assert.ErrorContains(t, err, "it is not known whether the commit was done")
		assert.ErrorIs(t, err, processlock.ErrLost)
		var refused *processlock.AcquireError
		assert.NotErrorAs(t, err, &refused, "fn ran")
		b.nothingHeld()
	}
	b.eventually(func() bool { return ask[int](b, other, "select count(*) from t where sent") == 1 }, "the COMMIT that was sent is not done")
	assert.Zero(t, ask[int](b, other, "select count(*) from t where not sent"))
	require.NoError(t, b.locker(pglock.Options{}).WithLock(t.Context(), "k", nop))
}
