package pglock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	stormProcesses  = 3
	stormGoroutines = 22 // in each
	stormKeys       = 3  // of each kind
	stormSpan       = 9 * time.Second
	stormQuiet      = 3 * time.Second // of it, at first, nothing is killed
)

// tally is what one process of the storm has to say at its end.
type tally struct {
	Added    int64   // turns that say that they have added one
	InDoubt  []int64 // turns whose commit was not answered: each has added one, or has not
	Overlaps int64   // turns that met another and yet had kept their lock
	Lost     int64
	Refused  int64
	Errors   []string
}

// storm is one process of the storm.
type storm struct {
	l       *pglock.Locker
	pool    *pgxpool.Pool // for work beside the session that holds the lock
	killing atomic.Bool

	mu sync.Mutex
	tally
}

// stormRole adds to counters under their locks, in every way there is, until its
// time is over. A line on its standard input says that sessions are killed from
// now on; the end of it, that nobody cares any more.
func stormRole() error {
	l, err := roleLocker()
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(context.Background(), os.Getenv(dsnVariable))
	if err != nil {
		return err
	}
	defer pool.Close()
	s := &storm{l: l, pool: pool}
	ctx, cancel := context.WithTimeout(context.Background(), stormSpan)
	defer cancel()
	go func() {
		defer cancel()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			s.killing.Store(true)
		}
	}()
	var wg sync.WaitGroup
	for i := range stormGoroutines {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				s.turn(ctx, n%3)
			}
		})
	}
	wg.Wait()
	closing, cancelClosing := context.WithTimeout(context.Background(), patience)
	defer cancelClosing()
	if err := l.Close(closing); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s.tally)
}

// turn makes one call, which some callers give up and some don't wait for.
func (s *storm) turn(ctx context.Context, way int) {
	if rand.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.Int64N(int64(20*time.Millisecond))))
		defer cancel()
	}
	var opts []processlock.Option
	if rand.IntN(8) == 0 {
		opts = append(opts, processlock.IfAvailable)
	}
	t := &turn{id: rand.Int64()}
	// Once fn runs, what was to end the wait is not to end it.
	inside, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	killing := s.killing.Load()
	var err error
	key := rand.IntN(stormKeys)
	switch way {
	case 0:
		// The transaction is not of the session that holds the lock, and lives on
		// when that one is killed. So these have counters of their own.
		key += stormKeys
		err = s.l.WithLock(ctx, key, func(context.Context) error { return t.add(inside, s.pool, key) }, opts...)
	case 1:
		err = s.l.WithConn(ctx, key, func(_ context.Context, conn *pgx.Conn) error { return t.add(inside, conn, key) }, opts...)
	case 2:
		err = s.l.WithTx(context.WithoutCancel(ctx), key, pgx.TxOptions{}, func(_ context.Context, tx pgx.Tx) error {
			return t.write(inside, tx, key)
		}, append(opts, processlock.MaxWait(20*time.Millisecond))...)
		t.added, t.inDoubt = err == nil, err != nil && t.written
	}
	s.note(t, err, killing || s.killing.Load())
}

// turn is what is known of one fn.
type turn struct {
	id                           int64
	ran, written, added, inDoubt bool
}

var errOverlap = errors.New("another turn was in at the same time")

func (t *turn) add(ctx context.Context, db interface {
	Begin(context.Context) (pgx.Tx, error)
}, key int) error {
	t.ran = true
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	if err := t.write(ctx, tx, key); err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	if err := tx.Commit(ctx); err != nil {
		t.inDoubt = true
		return err
	}
	t.added = true
	return nil
}

// write adds one to what it has read, if that is still there.
func (t *turn) write(ctx context.Context, tx pgx.Tx, key int) error {
	t.ran = true
	var n int
	if err := tx.QueryRow(ctx, "select n from counters where key = $1", key).Scan(&n); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "insert into turns values ($1)", t.id); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, "update counters set n = $2 where key = $1 and n = $3", key, n+1, n)
	if err != nil {
		return err
	}
	if tag.RowsAffected() != 1 {
		return errOverlap
	}
	t.written = true
	return nil
}

func (s *storm) note(t *turn, err error, killing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.added:
		s.Added++
	case t.inDoubt:
		s.InDoubt = append(s.InDoubt, t.id)
	}
	var acquire *processlock.AcquireError
	isLost := errors.Is(err, processlock.ErrLost)
	if isLost {
		s.Lost++
	}
	switch {
	case errors.As(err, &acquire):
		s.Refused++
		if t.ran {
			s.complain("fn ran, and the call says that it did not: %v", err)
		}
	case err != nil && !t.ran && !isLost: // WithTx may lose its session between lock and BEGIN
		s.complain("fn did not run, and the call does not say so: %v", err)
	case errors.Is(err, errOverlap) && !isLost:
		s.Overlaps++
		if !killing {
			s.complain("no session was killed yet: %v", err)
		}
	case err != nil && !killing:
		s.complain("no session was killed yet: %v", err)
	}
}

func (s *storm) complain(format string, args ...any) {
	if len(s.Errors) < 20 {
		s.Errors = append(s.Errors, fmt.Sprintf(format, args...))
	}
}

// Three processes, calls that give up at random, sessions that are killed, a
// server that is killed and comes back: no turn is lost, none is counted twice,
// and in the end nothing is held.
func TestStorm(t *testing.T) {
	b := ownBed(t, pgtest.Settings{"max_connections": "300"})
	hand := b.session()
	b.exec(hand, "create table counters (key int primary key, n int)")
	b.exec(hand, "create table turns (id int8 primary key)")
	b.exec(hand, "insert into counters select k, 0 from generate_series(0, $1) k", 2*stormKeys-1)
	require.NoError(t, hand.Close(t.Context()))

	ins := make([]io.WriteCloser, stormProcesses)
	outs := make([]chan []byte, stormProcesses)
	for i := range stormProcesses {
		opts := pglock.Options{Slice: 100 * time.Millisecond}
		if i == 2 {
			opts.Wait = pglock.Poll
		}
		cmd := b.child("storm", opts)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		ins[i], outs[i] = in, make(chan []byte, 1)
		go func() {
			out, err := cmd.Output()
			if err != nil {
				out = fmt.Appendf(out, "%v", err)
			}
			outs[i] <- out
		}()
		t.Cleanup(func() { _ = in.Close() })
	}
	begin := time.Now()
	time.Sleep(stormQuiet)
	for _, in := range ins {
		_, err := io.WriteString(in, "kill\n")
		require.NoError(t, err)
	}
	for restarted := false; time.Since(begin) < stormSpan; {
		time.Sleep(30 * time.Millisecond)
		if sessions, err := b.db.Sessions(t.Context()); err == nil && len(sessions) > 0 {
			_ = b.db.Terminate(t.Context(), sessions[rand.IntN(len(sessions))].PID)
		}
		if !restarted && time.Since(begin) > stormSpan*2/3 {
			restarted = true
			require.NoError(t, b.db.Server.Kill9())
			require.NoError(t, b.db.Server.Start())
		}
	}
	var sum tally
	for i := range outs {
		out := <-outs[i]
		var one tally
		require.NoError(t, json.Unmarshal(out, &one), "%s", out)
		t.Logf("process %d: %d added, %d lost, %d in doubt, %d refused, %d overlaps", i, one.Added, one.Lost, len(one.InDoubt), one.Refused, one.Overlaps)
		assert.Empty(t, one.Errors)
		assert.Positive(t, one.Added)
		sum.Added += one.Added
		sum.Lost += one.Lost
		sum.Overlaps += one.Overlaps
		sum.InDoubt = append(sum.InDoubt, one.InDoubt...)
	}
	hand = b.session()
	counted := ask[int64](b, hand, "select sum(n) from counters")
	settled := ask[int64](b, hand, "select count(*) from turns where id = any($1)", sum.InDoubt)
	assert.Equal(t, sum.Added+settled, counted, "turns that were reported, and the counters")
	assert.LessOrEqual(t, sum.Overlaps, sum.Lost, "only a turn that has lost its lock, and was told, may meet another")
	assert.Empty(t, ask[*string](b, hand, "select string_agg(key::text, ' ') from counters where n = 0"), "a key was never had")
	b.eventually(func() bool { return len(b.locks()) == 0 }, "a lock is left")
}
