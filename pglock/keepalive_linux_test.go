package pglock_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// This end of each connection, too, finds out by itself that the other is gone:
// in silence, and while it waits for an acknowledgement, when no keepalive is
// sent.
func TestKeepAlivesAreSetOnThisEnd(t *testing.T) {
	b := newBed(t)
	type option struct{ level, name int }
	want := map[time.Duration]map[option]int{}
	for probe, values := range map[time.Duration][]int{5 * time.Second: {2, 1, 2, 5000}, 20 * time.Second: {8, 4, 2, 20000}} {
		want[probe] = map[option]int{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE}:      1,
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}:     values[0],
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL}:    values[1],
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT}:      values[2],
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT}: values[3],
		}
	}
	for probe, want := range want {
		var mu sync.Mutex
		var conns []*net.TCPConn
		l := pglock.New(b.pool(b.db.DSN(), func(c *pgxpool.Config) {
			dial := c.ConnConfig.DialFunc
			c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				if tcp, ok := conn.(*net.TCPConn); ok {
					mu.Lock()
					conns = append(conns, tcp)
					mu.Unlock()
				}
				return conn, err
			}
		}), pglock.Options{Probe: probe})
		b.closes(l)
		other := b.session()
		b.take(other, "busy")
		held, waits := b.hold(l, "held"), b.start(t.Context(), l, "busy").queued(1)
		require.NoError(t, l.WithConn(t.Context(), "own", func(context.Context, *pgx.Conn) error {
			mu.Lock()
			defer mu.Unlock()
			assert.Len(t, conns, 3, "one for each kind")
			for _, conn := range conns {
				raw, err := conn.SyscallConn()
				require.NoError(t, err)
				require.NoError(t, raw.Control(func(fd uintptr) {
					for o, value := range want {
						set, err := unix.GetsockoptInt(int(fd), o.level, o.name)
						assert.NoError(t, err)
						assert.Equal(t, value, set, "option %v with Probe %v", o, probe)
					}
				}))
			}
			return nil
		}))
		b.unlock(other, "busy")
		waits.runs().ok()
		held.ok()
	}
}
