package pglock

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// poolerRounds is how often two connections are compared. Under load a pooler in
// transaction mode goes unnoticed in a third of the rounds.
const poolerRounds = 16

// checkPooler refuses a pooler that gives each transaction another session. It is
// asked where the server's process is not the one that the connection was
// promised, which a direct connection never sees. While a second connection sits
// in a transaction, either it has got the session that the first one had, or the
// first is given another by its next statement; in session mode, neither.
func (s *session) checkPooler() error {
	l := s.l
	l.mu.Lock()
	pooled := l.pooled
	l.mu.Unlock()
	if pooled {
		return nil
	}
	other := l.newSession(s.kind)
	conn, err := other.dial(l.config.BeforeConnect)
	if err != nil {
		return err
	}
	other.conn = conn
	other.mute.Store(true)
	defer other.hangUp()
	for round := range poolerRounds {
		mine, err := s.backend("")
		if err != nil {
			return err
		}
		theirs, err := other.backend("begin; ")
		if round == 0 && timedOut(err) { // it is connected, to the pooler, and asks for the first time
			return poolFull(err)
		}
		if err != nil {
			return err
		}
		again, err := s.backend("")
		if err != nil {
			return err
		}
		if theirs == mine || again != mine {
			return ErrPooler
		}
		if _, err := other.backend("rollback; "); err != nil {
			return err
		}
	}
	l.mu.Lock()
	l.pooled = true
	l.mu.Unlock()
	return nil
}

// backend asks for the number of the server's process.
func (s *session) backend(before string) (int64, error) {
	replies, err := s.roundTrip(s.l.bound(), before+"select pg_catalog.pg_backend_pid()")
	if err != nil {
		return 0, err
	}
	if replies[0].err != nil {
		return 0, replies[0].err
	}
	return strconv.ParseInt(replies[0].last(), 10, 64)
}

// hangUp closes the connection in good order.
func (s *session) hangUp() {
	if s.conn != nil && !s.conn.IsClosed() {
		s.conn.PgConn().Conn().SetDeadline(time.Now().Add(time.Second))
		f := s.conn.PgConn().Frontend()
		f.Send(&pgproto3.Terminate{})
		err := f.Flush() // if it doesn't arrive the end of the socket does
		for buf := make([]byte, 64); s.left != nil && err == nil; {
			_, err = s.conn.PgConn().Conn().Read(buf)
		}
	}
	s.discard()
	if s.left != nil {
		close(s.left)
	}
}
