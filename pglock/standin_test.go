package pglock_test

import (
	"context"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// full is a connection that takes nothing once it is stuck, until its deadline or
// its end: as a socket whose buffer is full.
type full struct {
	net.Conn
	stuck  *atomic.Bool
	once   sync.Once
	closed chan struct{}

	mu    sync.Mutex
	until time.Time     // the deadline of writes
	moved chan struct{} // closed when it moves
}

func newFull(conn net.Conn, stuck *atomic.Bool) *full {
	return &full{Conn: conn, stuck: stuck, closed: make(chan struct{}), moved: make(chan struct{})}
}

func (c *full) Write(p []byte) (int, error) {
	for c.stuck.Load() {
		c.mu.Lock()
		until, moved := c.until, c.moved
		c.mu.Unlock()
		var due <-chan time.Time
		if !until.IsZero() {
			due = time.After(time.Until(until))
		}
		select {
		case <-c.closed:
			return 0, net.ErrClosed
		case <-due:
			return 0, os.ErrDeadlineExceeded
		case <-moved:
		}
	}
	return c.Conn.Write(p)
}

func (c *full) SetDeadline(t time.Time) error {
	c.setWrite(t)
	return c.Conn.SetDeadline(t)
}

func (c *full) SetWriteDeadline(t time.Time) error {
	c.setWrite(t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *full) setWrite(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *full) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A call that sends by itself on a connection that takes nothing is not stuck
// with it: within Probe it goes on with another.
func TestCallLeavesAConnectionThatTakesNothing(t *testing.T) {
	b := newBed(t)
	const probe = time.Second
	stuck := new(atomic.Bool)
	pool := b.pool(b.db.DSN(), func(c *pgxpool.Config) {
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			stuck := stuck
			if stuck.Load() {
				stuck = new(atomic.Bool) // the next is sound
			}
			conn, err := dial(ctx, network, addr)
			return newFull(conn, stuck), err
		}
	})
	l := pglock.New(pool, pglock.Options{Probe: probe})
	b.closes(l)
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
	stuck.Store(true)
	begin := time.Now()
	require.NoError(t, b.bounded(func() error { return l.WithLock(context.Background(), "k", nop) }))
	assert.GreaterOrEqual(t, time.Since(begin), probe/4, "the connection took something")
}

// A call that reads by itself leaves when its context is done, however late the
// answer is, and what the server grants then is given back.
func TestCallLeavesAnAnswerThatIsLate(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	l := b.lockerAt(p.Addr(), pglock.Options{Probe: 2 * patience})
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
	p.BlackHole()
	defer p.Heal()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	begin := time.Now()
	b.refused(b.bounded(func() error { return l.WithLock(ctx, "k", nop) }), context.DeadlineExceeded)
	assert.Less(t, time.Since(begin), patience/2)
	p.Heal()
	b.nothingHeld()
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
}
