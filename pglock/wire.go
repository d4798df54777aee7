package pglock

import (
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// reply is the answer to one query.
type reply struct {
	rows [][]string
	tags []string // of its statements
	err  *pgconn.PgError
}

// last returns the first column of the last row.
func (r reply) last() string {
	if len(r.rows) == 0 || len(r.rows[len(r.rows)-1]) == 0 {
		return ""
	}
	return r.rows[len(r.rows)-1][0]
}

// roundTrip sends the queries and returns the answer to each. Its error means
// that the session is of no use any more. At rest the socket has no deadline.
func (s *session) roundTrip(within time.Duration, queries ...string) ([]reply, error) {
	conn := s.conn.PgConn().Conn()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	if err := s.send(queries...); err != nil {
		return nil, late(err, within)
	}
	replies := make([]reply, len(queries))
	for i := range replies {
		if err := s.receive(&replies[i]); err != nil {
			return nil, late(err, within)
		}
	}
	return replies, conn.SetDeadline(time.Time{})
}

// send sends the queries.
func (s *session) send(queries ...string) error {
	pc := s.conn.PgConn()
	if pc.IsClosed() || pc.IsBusy() {
		return errBusy
	}
	f := pc.Frontend()
	for _, q := range queries {
		f.SendQuery(&pgproto3.Query{String: q})
	}
	return f.Flush()
}

// receive reads the answer to one query.
func (s *session) receive(r *reply) error {
	for {
		msg, err := s.conn.PgConn().ReceiveMessage(background)
		if err != nil {
			return err
		}
		if over, err := r.add(msg); over || err != nil {
			return err
		}
	}
}

// add takes a message of the answer, and reports whether it was the last.
func (r *reply) add(msg pgproto3.BackendMessage) (over bool, err error) {
	switch msg := msg.(type) {
	case *pgproto3.DataRow:
		row := make([]string, len(msg.Values))
		for i, v := range msg.Values {
			row[i] = string(v)
		}
		r.rows = append(r.rows, row)
	case *pgproto3.CommandComplete:
		r.tags = append(r.tags, string(msg.CommandTag))
	case *pgproto3.ErrorResponse:
		r.err = pgconn.ErrorResponseToPgError(msg)
		if fatal(r.err) {
			return false, r.err
		}
	case *pgproto3.ReadyForQuery:
		return true, nil
	}
	return false, nil
}

// fatal reports whether the server ends the session with err.
func fatal(err *pgconn.PgError) bool {
	severity := err.SeverityUnlocalized
	if severity == "" {
		severity = err.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}
