package pglock

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var errMute = errors.New("pglock: no cancel requests")

// connect makes the connection and prepares it. An error that is not final may
// be that of a connection that was made, and ended at once.
func (s *session) connect() (final bool, err error) {
	conn, err := s.dial(s.l.config.BeforeConnect)
	if err != nil {
		return true, err
	}
	s.conn = conn
	s.mute.Store(true)
	if hook := s.l.config.AfterConnect; hook != nil {
		// What its end would have pgx send is refused; see mute.
		ctx, cancel := context.WithTimeout(background, s.l.connectTimeout())
		err := hook(ctx, conn)
		cancel()
		if err != nil {
			s.discard()
			return true, err
		}
	}
	if err := s.prepare(); err != nil {
		s.discard()
		p, refused := errors.AsType[*pgconn.PgError](err)
		refused = refused && !fatal(p) || errors.Is(err, ErrStandby) || errors.Is(err, ErrPooler) || errors.Is(err, errPoolFull)
		return refused, err
	}
	return false, nil
}

// connectTimeout bounds a connect, and each of the pool's hooks beside it.
func (l *Locker) connectTimeout() time.Duration {
	if d := l.config.ConnConfig.ConnectTimeout; d > 0 {
		return d
	}
	return 2 * time.Minute // as pgxpool has it
}

// dial makes a connection with the pool's settings.
func (s *session) dial(before func(context.Context, *pgx.ConnConfig) error) (*pgx.Conn, error) {
	config := s.l.config.ConnConfig.Copy()
	config.ConnectTimeout = s.l.connectTimeout()
	if before != nil {
		ctx, cancel := context.WithTimeout(background, config.ConnectTimeout)
		err := before(ctx, config)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	if s.kind != kindOwn {
		config.OnNotice, config.OnNotification = nil, nil
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if s.mute.Load() {
			return nil, errMute
		}
		raw, err := dial(ctx, network, addr)
		if err != nil || s.conn != nil { // a cancel request of fn's
			return raw, err
		}
		if k, ok := raw.(interface {
			SetKeepAliveConfig(net.KeepAliveConfig) error
		}); ok {
			_ = k.SetKeepAliveConfig(s.l.keepAlive()) // a socket without is still watched by pings
		}
		setUserTimeout(raw, s.l.userTimeout())
		s.raw.Store(&raw)
		return raw, nil
	}
	return pgx.ConnectConfig(background, config)
}

// keepAlive finds out within Probe or so, in whole seconds, that the other end is gone.
func (l *Locker) keepAlive() net.KeepAliveConfig {
	idle := max(time.Second, (l.opts.Probe * 2 / 5).Truncate(time.Second))
	return net.KeepAliveConfig{Enable: true, Idle: idle, Interval: max(time.Second, idle/2), Count: 2}
}

// userTimeout is how long either end waits for an acknowledgement.
func (l *Locker) userTimeout() time.Duration { return max(l.opts.Probe, time.Second) }

// prepare refuses servers whose locks are worth nothing, and settles what would
// end an idle session, or keep the locks of a client that is gone.
func (s *session) prepare() error {
	replies, err := s.roundTrip(s.l.bound(), "select pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()")
	if err != nil {
		s.l.mu.Lock()
		defer s.l.mu.Unlock()
		if s.l.pooled && timedOut(err) { // a pooler accepts whom it has no session for
			return poolFull(err)
		}
		return err
	}
	if replies[0].err != nil {
		return replies[0].err
	}
	row := replies[0].rows[0]
	pc := s.conn.PgConn()
	if pc.ParameterStatus("in_hot_standby") == "on" || row[1] == "t" {
		return ErrStandby
	}
	s.pid, err = strconv.ParseInt(row[0], 10, 64)
	if err != nil {
		return err
	}
	if s.pid != int64(pc.PID()) {
		if err := s.checkPooler(); err != nil {
			return err
		}
	}
	replies, err = s.roundTrip(s.l.bound(), s.settings())
	if err != nil {
		return err
	}
	if replies[0].err != nil {
		return replies[0].err
	}
	if s.kind != kindOwn {
		return nil
	}
	// Not every platform of a server has it.
	_, err = s.roundTrip(s.l.bound(), "set client_connection_check_interval="+millis(max(100*time.Millisecond, s.l.opts.Probe/2)))
	if err != nil {
		return err
	}
	if err := pc.Conn().SetDeadline(time.Now().Add(s.l.bound())); err != nil {
		return err
	}
	if err := s.prepareTx(); err != nil {
		return late(err, s.l.bound())
	}
	return pc.Conn().SetDeadline(time.Time{})
}

// settings is one query for whatever of them the server's version has.
func (s *session) settings() string {
	k := s.l.keepAlive()
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	values := "('idle_session_timeout', '0'), ('idle_in_transaction_session_timeout', '0'), ('transaction_timeout', '0'), " +
		"('tcp_keepalives_idle', '" + seconds(k.Idle) + "'), ('tcp_keepalives_interval', '" + seconds(k.Interval) + "'), " +
		"('tcp_keepalives_count', '" + strconv.Itoa(k.Count) + "'), ('tcp_user_timeout', '" + millis(s.l.userTimeout()) + "')"
	if s.kind != kindOwn {
		values += ", ('statement_timeout', '0')"
	}
	return "select pg_catalog.set_config(s.name, v.value, false) from pg_catalog.pg_settings s join (values " + values + ") v(name, value) on v.name = s.name"
}
