package pglock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// loss is what must be seen of a hold whose session has gone: fn's context ends
// with cause ErrLost within bound of since.
func (c *call) loses(since time.Time, bound time.Duration) time.Duration {
	c.b.Helper()
	select {
	case <-c.ctx.Done():
	case <-time.After(patience):
		require.Fail(c.b, "fn is not told that the lock is lost", "key %v", c.key)
	}
	took := time.Since(since)
	assert.ErrorIs(c.b, context.Cause(c.ctx), processlock.ErrLost)
	assert.Less(c.b, took, bound, "until fn was told")
	return took
}

// young is the age up to which a hold is not watched, with a margin.
const young = 50 * time.Millisecond

func TestField_P11_LossIsTold(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	second := b.locker(pglock.Options{})
	for round := range 5 {
		held := b.hold(l, "k")
		waits := b.start(t.Context(), second, "k")
		if round > 0 { // else it is killed before anybody watches it
			time.Sleep(young)
		}
		begin := time.Now()
		b.terminate(b.held("k")...)
		took := held.loses(begin, 2*time.Second)
		waits.runs()
		overlap := time.Since(begin)
		held.let()
		assert.ErrorIs(t, held.returns(), processlock.ErrLost)
		waits.ok()
		t.Logf("told after %v, the next was in after %v", took, overlap)
	}
	require.NoError(t, l.WithLock(t.Context(), "k", nop), "the Locker works on")
}

// fn's own error comes with the loss, and other keys of the Locker that were on
// other sessions go on.
func TestLossIsJoinedWithFnsError(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	mine := errors.New("mine")
	held := b.startWith(t.Context(), "k", func(ctx context.Context, fn func(context.Context) error) error {
		return l.WithLock(ctx, "k", func(ctx context.Context) error { return errors.Join(fn(ctx), mine) })
	}).runs()
	own := b.startWith(t.Context(), "own", func(ctx context.Context, fn func(context.Context) error) error {
		return l.WithConn(ctx, "own", func(ctx context.Context, _ *pgx.Conn) error { return fn(ctx) })
	}).runs()
	time.Sleep(young)
	begin := time.Now()
	b.terminate(b.held("k")...)
	held.loses(begin, 2*time.Second)
	held.let()
	err := held.returns()
	assert.ErrorIs(t, err, processlock.ErrLost)
	assert.ErrorIs(t, err, mine)
	assert.NoError(t, own.ctx.Err(), "of another session")
	own.ok()
}

// In a cohort the holder of the moment is told; those before it returned nil,
// those behind it ask the server anew.
func TestLossInACohortIsTheHoldersOfTheMoment(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{Handoff: pglock.Handoff{For: time.Hour}})
	first := b.hold(l, "k")
	second := b.start(t.Context(), l, "k")
	b.eventually(func() bool { return !isClosed(second.entered) }, "")
	third := b.start(t.Context(), l, "k")
	time.Sleep(young)
	first.ok()
	var now, next *call
	select {
	case <-second.entered:
		now, next = second, third
	case <-third.entered:
		now, next = third, second
	case <-time.After(patience):
		t.Fatal("nobody is next")
	}
	time.Sleep(young)
	begin := time.Now()
	b.terminate(b.held("k")...)
	now.loses(begin, 2*time.Second)
	next.pending() // the loser's fn still runs, but it is told; the next needs a lock of its own
	now.let()
	assert.ErrorIs(t, now.returns(), processlock.ErrLost)
	next.runs()
	assert.NoError(t, next.ctx.Err())
	next.ok()
}

func TestField_P11_LossShowsWhereFnOwnsTheSession(t *testing.T) {
	b := newBed(t)
	b.exec(b.session(), "create table t (x int)")
	l := b.locker(pglock.Options{Probe: time.Second})
	err := l.WithConn(t.Context(), "k", func(ctx context.Context, conn *pgx.Conn) error {
		b.terminate(int(conn.PgConn().PID()))
		_, err := conn.Exec(ctx, "select 1")
		return err
	})
	assert.ErrorIs(t, err, processlock.ErrLost, "at the next statement")

	err = l.WithTx(t.Context(), "k", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into t values (1)"); err != nil {
			return err
		}
		b.terminate(int(tx.Conn().PgConn().PID()))
		return nil
	})
	assert.ErrorIs(t, err, processlock.ErrLost, "a lost lock fails the commit")
	assert.Equal(t, int64(0), ask[int64](b, b.session(), "select count(*) from t"))

	// A fn that asks nothing of its session is told by the socket.
	begin := time.Now()
	err = l.WithConn(t.Context(), "k", func(ctx context.Context, conn *pgx.Conn) error {
		b.terminate(int(conn.PgConn().PID()))
		select {
		case <-ctx.Done():
			assert.ErrorIs(t, context.Cause(ctx), processlock.ErrLost)
		case <-time.After(patience):
			t.Error("fn is not told that its session is gone")
		}
		return nil
	})
	assert.ErrorIs(t, err, processlock.ErrLost)
	t.Logf("told after %v", time.Since(begin))
}

// Nothing closes the socket: only silence tells.
func TestField_P12_BlackHole(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	const probe = 500 * time.Millisecond
	l := b.lockerAt(p.Addr(), pglock.Options{Probe: probe, Release: 100 * time.Millisecond})
	other := b.locker(pglock.Options{})
	held := b.hold(l, "k")
	time.Sleep(young)
	begin := time.Now()
	p.BlackHole()
	took := held.loses(begin, 4*probe)
	t.Logf("told after %v with a Probe of %v", took, probe)

	// The server knows nothing of it; others are bounded by their own context.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	b.refused(other.WithLock(ctx, "k", nop), context.DeadlineExceeded)
	// Nor does this Locker hang: what can't be reached is refused in bounds.
	b.refused(l.WithLock(ctx, "else", nop), context.DeadlineExceeded)
	held.let()
	assert.ErrorIs(t, held.returns(), processlock.ErrLost)
	p.Heal()
	require.NoError(t, other.WithLock(t.Context(), "k", nop))
	// A machine that is too busy for an answer within this short a Probe loses the
	// lock again.
	b.eventually(func() bool {
		err := l.WithLock(t.Context(), "k", nop)
		if !errors.Is(err, processlock.ErrLost) {
			require.NoError(t, err)
		}
		return err == nil
	}, "the Locker does not recover")
}

// The server is told to look after its end of the connection: else a cable that
// is pulled holds a lock for two hours.
func TestField_P12_KeepAlivesAreSet(t *testing.T) {
	b := newBed(t)
	for probe, want := range map[time.Duration][]int{5 * time.Second: {2, 1, 2, 5000}, 20 * time.Second: {8, 4, 2, 20000}} {
		l := b.locker(pglock.Options{Probe: probe})
		require.NoError(t, l.WithConn(t.Context(), "k", func(ctx context.Context, conn *pgx.Conn) error {
			var set []int
			for _, name := range []string{"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"} {
				set = append(set, ask[int](b, conn, "select setting::int from pg_settings where name = $1", name))
			}
			assert.Equal(t, want, set)
			assert.LessOrEqual(t, time.Duration(set[0]+set[1]*set[2])*time.Second, probe)
			return nil
		}))
	}
}
