package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is a PgBouncer in front of a server. Close must be called.
type Pooler struct {
	dir    string
	port   int
	daemon *daemon
}

// Pool starts a PgBouncer in front of the server. mode is "session" or
// "transaction"; size bounds its sessions on the server for each database.
func (s *Server) Pool(mode string, size int) (*Pooler, error) {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path = "/usr/sbin/pgbouncer"; !executable(path) {
			return nil, fmt.Errorf("%w: pgbouncer (Debian: apt-get install pgbouncer; macOS: brew install pgbouncer)", ErrNotInstalled)
		}
	}
	u, err := serverUser()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pglock-")
	if err != nil {
		return nil, err
	}
	p := &Pooler{dir: dir}
	if err = p.start(u, path, s, mode, size); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pooler) start(u *user, path string, s *Server, mode string, size int) error {
	if err := u.own(p.dir); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return err
	}
	if p.port, err = freePort(); err != nil {
		return err
	}
	users, logFile, conf := filepath.Join(p.dir, "users"), filepath.Join(p.dir, "log"), filepath.Join(p.dir, "pgbouncer.ini")
	ini := fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
		"unix_socket_dir =\nauth_type = trust\nauth_file = %s\npool_mode = %s\ndefault_pool_size = %d\nmax_client_conn = 500\n"+
		"server_check_query =\nlogfile = %s\n",
		host, port, p.port, users, mode, size, logFile)
	password, _ := s.base.User.Password()
	for file, text := range map[string]string{users: fmt.Sprintf("%q %q\n", s.base.User.Username(), password), conf: ini} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if p.daemon, err = u.daemon(u.command(path, "-q", conf), p.dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.dsnAt(p.Addr(), strings.TrimPrefix(s.base.Path, "/")))
		if err == nil {
			return conn.Close(ctx)
		}
		if !p.daemon.alive() || ctx.Err() != nil {
			log, _ := os.ReadFile(logFile)
			return fmt.Errorf("pgtest: pgbouncer does not serve: %w\n%s", err, log)
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// Addr returns the pooler's host and port.
func (p *Pooler) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// Alive reports whether the pooler's process is still there.
func (p *Pooler) Alive() bool { return p.daemon.alive() }

// Log returns what the pooler has logged.
func (p *Pooler) Log() string {
	log, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// Close ends the pooler and removes what it has on disk.
func (p *Pooler) Close() error {
	if p.daemon != nil {
		p.daemon.quit()
		p.daemon.gone(5 * time.Second)
	}
	return os.RemoveAll(p.dir)
}
