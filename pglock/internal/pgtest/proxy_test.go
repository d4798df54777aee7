package pgtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func proxy(t *testing.T, s *pgtest.Server) *pgtest.Proxy {
	t.Helper()
	p, err := pgtest.NewProxy(s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

func TestProxyCountsAndBreaks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	d := create(t, s)
	p := proxy(t, s)
	conn := connect(t, d.DSNAt(p.Addr()))
	assert.Equal(t, 1, p.Wire().Conns)

	exec1(t, conn, "select 1 /* one */")
	exec1(t, conn, "select 2; select 3")
	w := p.Wire()
	assert.Equal(t, 2, w.RoundTrips)
	assert.Equal(t, 2, w.Executes)
	assert.Equal(t, 1, w.Count("select 1", "one"))
	assert.Equal(t, 0, w.Count("select 1", "select 3"))
	require.NoError(t, conn.QueryRow(t.Context(), "select $1::int", 7).Scan(new(int)))
	w = p.Wire()
	assert.Equal(t, 1, w.Executes)
	assert.Equal(t, 1, w.Count("$1::int"))

	require.NoError(t, conn.PgConn().CancelRequest(t.Context()))
	w = p.Wire()
	assert.Equal(t, 1, w.Cancels)
	assert.Equal(t, 1, w.Conns)

	p.Delay(20 * time.Millisecond)
	begin := time.Now()
	exec1(t, conn, "select 1")
	assert.GreaterOrEqual(t, time.Since(begin), 40*time.Millisecond)
	p.Delay(0)

	p.BlackHole()
	answered := make(chan error, 1)
	go func() { _, err := conn.Exec(context.Background(), "select 1"); answered <- err }()
	select {
	case err := <-answered:
		t.Fatalf("a black hole answered: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	p.Heal()
	require.NoError(t, <-answered)

	p.Drop()
	require.Error(t, conn.Ping(t.Context()))
	p.Heal()
	exec1(t, connect(t, d.DSNAt(p.Addr())), "select 1")
}
