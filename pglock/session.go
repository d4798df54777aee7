package pglock

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

type sessionKind uint8

const (
	kindHub  sessionKind = iota // tries, unlocks and pings for all keys; never waits
	kindWait                    // waits for one key, and holds it then
	kindOwn                     // the same, and is lent to fn
)

// session is one connection of the Locker's. What it is asked to do is queued
// and done by a goroutine that is there only while there is something to do or a
// lock to watch over; nobody else touches the connection, except fn while the
// session is lent.
//
// No context ever governs what we do on it, only deadlines of the socket: for
// pgx the end of a context means a cancel request, which comes late and hits what
// it was not meant for.
type session struct {
	l    *Locker
	kind sessionKind

	// Guarded by l.mu.
	queue   []*op
	running bool // the goroutine is there, or somebody who stands in for it
	reading bool // it reads in the background, with a deadline to be moved
	timer   *time.Timer
	ticking bool      // timer is set
	stoodIn time.Time // since when somebody stands in; zero: nobody
	sentOff bool      // the read deadline was moved, so that he leaves
	rested  time.Time // since when there has been nothing to do
	minded  time.Time // when those who hold were looked at last
	minding bool      // they are being looked at; a context may take its time
	batched int       // how many ops the last query served
	dead    bool
	err     error // why
	lent    bool
	idled   bool // was idle, and nothing has been heard from it since
	tenures map[*tenure]struct{}

	// Where there is room for one only: closed when this one has gone from the
	// server, and that of the one whose place it is to have.
	left, after chan struct{}

	// Of the goroutine, or of whoever has handed it an op.
	conn  *pgx.Conn
	live  pgx.Tx // kindOwn: see prepareTx
	ended pgx.Tx
	pid   int64 // of the server's process, which a pooler's differs from

	raw atomic.Pointer[net.Conn] // under TLS, if there is any
	// mute refuses new connections for the session, which once it stands could
	// only be cancel requests. While it is lent they are fn's business.
	mute atomic.Bool
}

// bound is how long the server may take to answer what needs no waiting. Before
// it is asked nothing may have been heard of it for 0.4 Probe.
func (l *Locker) bound() time.Duration { return l.opts.Probe / 2 }

// hold notes that s holds t, and sees to it that s is watched. Called under mu.
func (s *session) hold(t *tenure) {
	s.tenures[t] = struct{}{}
	if s.dead {
		s.lose(t)
		return
	}
	if !s.running {
		s.rested = time.Now()
		s.startTimer()
	}
}

// letGo notes that s no longer holds t. Called under mu.
func (s *session) letGo(t *tenure) { delete(s.tenures, t) }
