package pgtest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const child = "PGTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		startAndHang()
	}
	os.Exit(m.Run())
}

// startAndHang is the process that TestServerDiesWithItsProcess kills.
func startAndHang() {
	s, err := pgtest.Start(nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.DSN("postgres"))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func start(t *testing.T, settings pgtest.Settings) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start(settings)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func create(t *testing.T, s *pgtest.Server) *pgtest.Database {
	t.Helper()
	d, err := s.Create(t.Context())
	require.NoError(t, err)
	return d
}

func TestServerIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := start(t, pgtest.Settings{"max_locks_per_transaction": "10"})
	d := create(t, s)
	conn := connect(t, d.DSN())
	var setting string
	require.NoError(t, conn.QueryRow(t.Context(), "show max_locks_per_transaction").Scan(&setting))
	assert.Equal(t, "10", setting)

	const id int64 = -9223372036854771659
	exec1(t, conn, fmt.Sprintf("select pg_advisory_lock(%d)", id))
	pid := int(conn.PgConn().PID())
	held, err := d.Held(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, []int{pid}, held)
	other := create(t, s)
	locks, err := other.Locks(t.Context())
	require.NoError(t, err)
	assert.Empty(t, locks, "of another database")

	require.NoError(t, d.Terminate(t.Context(), pid))
	assert.Error(t, conn.Ping(t.Context()))
	require.Eventually(t, func() bool {
		sessions, err := d.Sessions(t.Context())
		return err == nil && len(sessions) == 0
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, d.Drop(t.Context()))
}

func TestKilledServerStartsAgain(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	d := create(t, s)
	exec1(t, connect(t, d.DSN()), "create table kept (x int)")
	conn := connect(t, d.DSN())
	require.NoError(t, s.Kill9())
	// Its sessions notice by themselves.
	require.Eventually(t, func() bool { return conn.Ping(t.Context()) != nil }, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Start())
	exec1(t, connect(t, d.DSN()), "insert into kept values (1)")
	s.Stop()
	require.NoError(t, s.Start())
	exec1(t, connect(t, d.DSN()), "insert into kept values (2)")
}

func TestStandbyFollowsAndIsPromoted(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	d := create(t, s)
	standby, err := s.Standby()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, standby.Close()) })
	there, err := d.On(t.Context(), standby)
	require.NoError(t, err)
	conn := connect(t, there.DSN())
	_, err = conn.Exec(t.Context(), "create table no (x int)")
	require.ErrorContains(t, err, "read-only")
	require.NoError(t, standby.Promote(t.Context()))
	exec1(t, conn, "create table yes (x int)")
}

func TestServerDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	tmp := t.TempDir()
	// The server's own user has to get at it.
	for dir := tmp; strings.Contains(dir, "TestServerDies"); dir = dir[:strings.LastIndexByte(dir, '/')] {
		require.NoError(t, os.Chmod(dir, 0o777))
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), child+"=1", "TMPDIR="+tmp)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	dsn, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	conn := connect(t, strings.TrimSpace(dsn))
	left := func() int {
		files, err := os.ReadDir(tmp)
		require.NoError(t, err)
		return len(files)
	}
	require.Equal(t, 1, left())

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	assert.Eventually(t, func() bool { return conn.Ping(t.Context()) != nil }, 10*time.Second, 5*time.Millisecond)
	assert.Eventually(t, func() bool { return left() == 0 }, 10*time.Second, 5*time.Millisecond)
}

func TestPoolerPools(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	d := create(t, s)
	for _, mode := range []string{"session", "transaction"} {
		p, err := s.Pool(mode, 1)
		require.NoError(t, err)
		a := connect(t, d.DSNAt(p.Addr()))
		exec1(t, a, "select 1")
		b := connect(t, d.DSNAt(p.Addr()))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err = b.Exec(ctx, "select 2")
		cancel()
		assert.Equal(t, mode == "transaction", err == nil, "%s: the one session serves a second client: %v", mode, err)
		assert.True(t, p.Alive())
		require.NoError(t, p.Close())
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	_, err := pgtest.Program("pg_no_such_program")
	assert.ErrorIs(t, err, pgtest.ErrNotInstalled)
	assert.ErrorContains(t, err, "apt-get install")
}
