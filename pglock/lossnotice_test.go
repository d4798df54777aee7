package pglock_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (b *bed) pids() (pids []int) {
	for _, s := range b.sessions() {
		pids = append(pids, s.PID)
	}
	return pids
}

// Connections that ended while nobody used them, be they ever so many, fail no
// call.
func TestIdleSessionsThatEndedFailNoCall(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{MaxConns: 8})
	nothing := func(context.Context, *pgx.Conn) error { return nil }
	var wg, in sync.WaitGroup
	in.Add(7)
	for i := range 7 {
		wg.Go(func() {
			assert.NoError(t, l.WithConn(t.Context(), i, func(context.Context, *pgx.Conn) error { in.Done(); in.Wait(); return nil }))
		})
	}
	wg.Wait()
	b.nothingHeld()
	require.Len(t, b.pids(), 7)
	b.terminate(b.pids()...)
	b.eventually(func() bool { return len(b.sessions()) == 0 }, "sessions are left")
	require.NoError(t, l.WithConn(t.Context(), "k", nothing))
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
}

// calling is a log handler that uses the Locker, as one might that writes to the
// database.
type calling struct {
	slog.Handler
	call func()
}

func (c calling) Enabled(context.Context, slog.Level) bool { return true }
func (c calling) Handle(context.Context, slog.Record) error {
	c.call()
	return nil
}

// The Logger may use the Locker: it is called without locks, and nobody waits for
// it.
func TestLoggerMayLock(t *testing.T) {
	b := newBed(t)
	var l *pglock.Locker
	logged := make(chan error, 10)
	log := slog.New(calling{slog.DiscardHandler, func() { logged <- l.WithLock(context.Background(), "log", nop) }})
	l = b.locker(pglock.Options{Handoff: pglock.Handoff{For: time.Nanosecond}, Logger: log})
	require.NoError(t, l.WithLock(t.Context(), "k", nop)) // connects
	hub := b.pids()
	require.Len(t, hub, 1)
	c := b.hold(l, "k")
	next := b.start(t.Context(), l, "k")
	b.terminate(hub...)
	if err := c.let().returns(); err != nil { // it was told before it returned
		require.ErrorIs(t, err, processlock.ErrLost)
	}
	next.runs().ok()
	require.NoError(t, b.bounded(func() error { return <-logged }))
}

// A loss is noticed within Probe also when the first to hear nothing is not the
// watch but another call.
func TestLossIsNoticedWithinProbeBesideOtherCalls(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	const probe = 2 * time.Second
	l := b.lockerAt(p.Addr(), pglock.Options{Probe: probe})
	c := b.hold(l, "k")
	defer p.Heal()
	time.Sleep(50 * time.Millisecond) // watched
	p.BlackHole()
	begin := time.Now()
	// The watch would ping 0.4 Probe after the last answer.
	time.Sleep(probe * 35 / 100)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.WithLock(ctx, "other", nop), context.DeadlineExceeded)
	<-c.ctx.Done()
	assert.Less(t, time.Since(begin), probe*5/4) // a machine that is busy takes its share
	assert.ErrorIs(t, context.Cause(c.ctx), processlock.ErrLost)
	p.Heal()
	require.ErrorIs(t, c.let().returns(), processlock.ErrLost)
}

// With Handoff.Max 1 each turn ends by asking the server, whoever waits.
func TestTurnsOfMaxOneAskTheServer(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{Handoff: pglock.Handoff{Max: 1}})
	require.NoError(t, l.WithLock(t.Context(), "k", nop)) // connects
	for range 10 {
		die := make(chan struct{})
		entered := make(chan struct{})
		var wg sync.WaitGroup
		var first error
		wg.Go(func() {
			first = l.WithLock(t.Context(), "k", func(context.Context) error {
				close(entered)
				<-die
				return nil
			})
		})
		<-entered
		hub := b.held("k")
		second := b.start(t.Context(), l, "k")
		b.terminate(hub...)
		close(die)
		wg.Wait()
		require.ErrorIs(t, first, processlock.ErrLost)
		second.runs().ok()
	}
}

// A call that was served after Close, under a hold that was lost, leaves no
// connection.
func TestCloseLeavesNoConnectionAfterALoss(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	var closed error
	done := make(chan struct{})
	err := l.WithLock(t.Context(), "k", func(ctx context.Context) error {
		go func() { closed = l.Close(context.Background()); close(done) }()
		b.eventually(func() bool { return l.WithLock(t.Context(), "free", nop) != nil }, "Close has not begun")
		b.terminate(b.held("k")...)
		<-ctx.Done()
		return l.WithLock(context.WithoutCancel(ctx), "nested", nop)
	})
	assert.ErrorIs(t, err, processlock.ErrLost)
	<-done
	assert.NoError(t, closed)
	b.eventually(func() bool { return len(b.sessions()) == 0 }, "a connection is left")
}
