package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// dsnVariable names a server that is to be used in place of a throwaway one
// wherever a test neither breaks nor configures its server.
const dsnVariable = "PGLOCK_TEST_DSN"

// startLimit bounds how long a server may take to come up, on a machine that is
// busy with other things.
const startLimit = 60 * time.Second

// Server is a PostgreSQL server. Its superuser is postgres, who needs no
// password. Close must be called.
type Server struct {
	base url.URL // of its maintenance database

	// Those of a server of the caller's own are empty.
	user   *user
	bin    string
	dir    string // holds all that the server has on disk
	port   int
	daemon *daemon

	mu    sync.Mutex
	admin *pgxpool.Pool // made by the first who needs it
}

// Settings are lines of postgresql.conf.
type Settings map[string]string

// Shared returns a server that nobody breaks or configures: the one that
// PGLOCK_TEST_DSN names, else a throwaway one.
func Shared() (*Server, error) {
	dsn := os.Getenv(dsnVariable)
	if dsn == "" {
		return Start(nil)
	}
	s, err := At(dsn)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dsnVariable, err)
	}
	return s, nil
}

// At returns the server at dsn, which is somebody else's.
func At(dsn string) (*Server, error) {
	base, err := url.Parse(dsn)
	if err != nil || base.Host == "" {
		return nil, errors.New("pgtest: the address of a server is to be of the form postgres://user@host:port/database")
	}
	return &Server{base: *base}, nil
}

// Start makes a cluster and starts its server, on a port of its own of the
// loopback interface. Nothing is synced to disk: kill -9 of the server leaves a
// cluster that can be started again, a power failure does not.
func Start(settings Settings) (*Server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	err = s.initialize(settings)
	if err == nil {
		err = s.launch()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newServer makes the folder of a server that is not there yet.
func newServer() (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	u, err := serverUser()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pglock-")
	if err != nil {
		return nil, err
	}
	s := &Server{user: u, bin: bin, dir: dir}
	if err := u.own(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// initialize makes the cluster.
func (s *Server) initialize(settings Settings) error {
	initdb := s.user.command(filepath.Join(s.bin, "initdb"), "--pgdata="+s.data(), "--username=postgres", "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync", "--wal-segsize=1")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: initdb: %w\n%s", err, out)
	}
	all := Settings{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": s.dir,
		"fsync":                   "off",
		"full_page_writes":        "off",
		"autovacuum":              "off",
		"max_connections":         "200",
		"shared_buffers":          "16MB",
		"max_wal_size":            "64MB",
		"log_line_prefix":         "%m [%p] %d %a ",
	}
	for name, value := range settings {
		all[name] = value
	}
	var conf strings.Builder
	for name, value := range all {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
	}
	path := filepath.Join(s.data(), "pgtest.conf")
	if err := os.WriteFile(path, []byte(conf.String()), 0o644); err != nil {
		return err
	}
	return s.appendTo(filepath.Join(s.data(), "postgresql.conf"), "include 'pgtest.conf'\n")
}

func (*Server) appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// launch starts the server on a port that is free just now; one who takes that
// port meanwhile costs another round.
func (s *Server) launch() error {
	var err error
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.start(); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

var errPortTaken = errors.New("pgtest: the port was taken meanwhile")

// start starts the server on its port and returns when it serves.
func (s *Server) start() error {
	logFile, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	from, err := logFile.Seek(0, 2)
	if err != nil {
		return err
	}
	cmd := s.user.command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port))
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if s.daemon, err = s.user.daemon(cmd, s.dir); err != nil {
		return err
	}
	s.base = url.URL{Scheme: "postgres", User: url.User("postgres"), Host: s.Addr(), Path: "/postgres",
		RawQuery: "sslmode=disable"}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.base.String())
		if err == nil {
			return conn.Close(ctx)
		}
		switch log := s.logFrom(from); {
		case !s.daemon.alive() && strings.Contains(log, "Address already in use"):
			return errPortTaken
		case !s.daemon.alive():
			return fmt.Errorf("pgtest: postgres did not come up:\n%s", log)
		case ctx.Err() != nil:
			return fmt.Errorf("pgtest: postgres does not serve after %v: %w\n%s", startLimit, err, log)
		}
		pause(ctx, 5*time.Millisecond)
	}
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "log") }

// Log returns what the server has logged.
func (s *Server) Log() string { return s.logFrom(0) }

func (s *Server) logFrom(offset int64) string {
	log, err := os.ReadFile(s.logPath())
	if err != nil || int64(len(log)) < offset {
		return fmt.Sprint(err)
	}
	return string(log[offset:])
}

// Addr returns the server's host and port.
func (s *Server) Addr() string {
	if s.dir == "" {
		return s.base.Host
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// DSN returns the address of one of the server's databases.
func (s *Server) DSN(database string) string { return s.dsnAt(s.Addr(), database) }

// dsnAt is DSN by way of another address, a proxy's or a pooler's.
func (s *Server) dsnAt(addr, database string) string {
	dsn := s.base
	dsn.Host, dsn.Path = addr, "/"+database
	return dsn.String()
}

// Close ends the server and removes what it has on disk.
func (s *Server) Close() error {
	s.closeAdmin()
	if s.dir == "" {
		return nil
	}
	if s.daemon != nil {
		s.daemon.quit()
		s.daemon.gone(10 * time.Second)
	}
	return os.RemoveAll(s.dir)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
