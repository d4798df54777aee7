package pgtest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Database is a database of its own on a server: advisory locks and sessions are
// counted by database, so that tests on different ones don't see each other.
type Database struct {
	Server *Server
	Name   string
	oid    uint32
}

var databases atomic.Int64

// Create makes an empty database.
func (s *Server) Create(ctx context.Context) (*Database, error) {
	name := fmt.Sprintf("pglock_%d_%d", time.Now().UnixNano(), databases.Add(1))
	if err := s.Exec(ctx, "create database "+name+" template template0"); err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return s.database(ctx, name)
}

// On returns the database of the same name on another server, a standby.
func (d *Database) On(ctx context.Context, s *Server) (*Database, error) {
	return s.database(ctx, d.Name)
}

func (s *Server) database(ctx context.Context, name string) (*Database, error) {
	d := &Database{Server: s, Name: name}
	err := s.row(ctx, "select oid from pg_database where datname = $1", []any{name}, &d.oid)
	return d, err
}

// Drop ends all sessions of the database and removes it.
func (d *Database) Drop(ctx context.Context) error {
	return d.Server.Exec(ctx, "drop database if exists "+d.Name+" with (force)")
}

// DSN returns the database's address.
func (d *Database) DSN() string { return d.Server.DSN(d.Name) }

// DSNAt is DSN by way of another address, a proxy's or a pooler's.
func (d *Database) DSNAt(addr string) string { return d.Server.dsnAt(addr, d.Name) }

// Lock is a row of pg_locks.
type Lock struct {
	ID      int64
	PID     int
	Granted bool
	Mode    string // "ExclusiveLock" or "ShareLock"
	Query   string // the last of the session
}

// Locks returns all advisory locks of the database, held and waited for, of the
// kind that has one 64-bit id.
func (d *Database) Locks(ctx context.Context) ([]Lock, error) {
	pool, err := d.Server.pool(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(ctx, `
		with l as materialized (select * from pg_locks where locktype = 'advisory' and database = $1 and objsubid = 1)
		select (l.classid::int8 << 32) | l.objid::int8 as id, l.pid, l.granted, l.mode, coalesce(a.query, '') as query
		from l left join pg_stat_activity a using (pid)
		order by id, granted desc, l.pid`, d.oid)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Lock])
}

// Held returns the sessions that hold id.
func (d *Database) Held(ctx context.Context, id int64) ([]int, error) {
	return d.sessionsAt(ctx, id, true)
}

// Waiting returns the sessions that wait for id in the server's queue.
func (d *Database) Waiting(ctx context.Context, id int64) ([]int, error) {
	return d.sessionsAt(ctx, id, false)
}

func (d *Database) sessionsAt(ctx context.Context, id int64, granted bool) ([]int, error) {
	locks, err := d.Locks(ctx)
	var pids []int
	for _, lock := range locks {
		if lock.ID == id && lock.Granted == granted {
			pids = append(pids, lock.PID)
		}
	}
	return pids, err
}

// Session is a row of pg_stat_activity.
type Session struct {
	PID   int
	State string
	Query string
}

// Sessions returns the sessions of clients in the database.
func (d *Database) Sessions(ctx context.Context) ([]Session, error) {
	pool, err := d.Server.pool(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(ctx, `
		select pid, coalesce(state, ''), query from pg_stat_activity
		where datname = $1 and backend_type = 'client backend' order by backend_start`, d.Name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Session])
}

// Terminate ends a session as an administrator would.
func (d *Database) Terminate(ctx context.Context, pids ...int) error {
	return d.Server.Exec(ctx, "select pg_terminate_backend(pid) from unnest($1::int[]) as pid", pids)
}

// Exec runs a statement as the superuser, in the maintenance database.
func (s *Server) Exec(ctx context.Context, sql string, args ...any) error {
	pool, err := s.pool(ctx)
	if err == nil {
		_, err = pool.Exec(ctx, sql, args...)
	}
	return err
}

func (s *Server) row(ctx context.Context, sql string, args []any, into ...any) error {
	pool, err := s.pool(ctx)
	if err == nil {
		err = pool.QueryRow(ctx, sql, args...).Scan(into...)
	}
	return err
}

// pool returns the connections with which this package itself looks at the
// server.
func (s *Server) pool(ctx context.Context) (*pgxpool.Pool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin != nil {
		return s.admin, nil
	}
	config, err := pgxpool.ParseConfig(s.base.String())
	if err != nil {
		return nil, err
	}
	config.MaxConns = 4
	config.ConnConfig.RuntimeParams["application_name"] = "pgtest"
	if s.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	return s.admin, nil
}

func (s *Server) closeAdmin() {
	s.mu.Lock()
	admin := s.admin
	s.admin = nil
	s.mu.Unlock()
	if admin != nil {
		admin.Close()
	}
}

// Version returns the server's major version.
func (s *Server) Version(ctx context.Context) (int, error) {
	var text string
	if err := s.row(ctx, "show server_version_num", nil, &text); err != nil {
		return 0, err
	}
	var number int
	_, err := fmt.Sscan(strings.TrimSpace(text), &number)
	return number / 10000, err
}

// Pool returns a pool of connections to the database. The caller closes it.
func (d *Database) Pool(ctx context.Context) (*pgxpool.Pool, error) { return pgxpool.New(ctx, d.DSN()) }
