package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// percentile returns the value below which share of all are; it sorts them.
func percentile(all []time.Duration, share float64) time.Duration {
	slices.Sort(all)
	return all[min(len(all)-1, int(share*float64(len(all))))]
}

// oneLock measures a lock that nobody else wants, one at a time.
func (m *measurer) oneLock() error {
	fmt.Println("\n### One uncontended lock\n\n| | median | p99 | round trips |\n|---|---|---|---|")
	const n = 4000
	names := []string{byHand, "pglock"}
	// Round trips are counted by a proxy, which costs time; times are taken
	// without it.
	trips := make([]float64, len(names))
	for i, name := range names {
		proxy, err := pgtest.NewProxy(m.db.Server.Addr())
		if err != nil {
			return err
		}
		counted, err := m.inTurns(m.db.DSNAt(proxy.Addr()), names[i:i+1], n/8, func() { proxy.Wire() })
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), proxy.Close())
		}
		trips[i] = float64(proxy.Wire().RoundTrips) / float64(len(counted[0]))
		if err := proxy.Close(); err != nil {
			return err
		}
	}
	times, err := m.inTurns(m.db.DSN(), names, n, func() {})
	if err != nil {
		return err
	}
	base := percentile(times[0], 0.5)
	for i, name := range names {
		median := percentile(times[i], 0.5)
		fmt.Printf("| %s | %v (%.2f x) | %v | %.2f |\n", label(name), median.Round(time.Microsecond), float64(median)/float64(base),
			percentile(times[i], 0.99).Round(time.Microsecond), trips[i])
	}
	return nil
}

// inTurns locks n times in each of the ways. They take turns, so that what else
// the machine does meets all of them.
func (m *measurer) inTurns(dsn string, names []string, n int, warmed func()) ([][]time.Duration, error) {
	const turn = 20
	fn := func(context.Context) error { return nil }
	all := make([]*way, len(names))
	for i, name := range names {
		w, err := open(m.ctx, dsn, name, 2)
		if err != nil {
			return nil, err
		}
		defer w.stop()
		all[i] = w
		for range turn {
			if err := w.lock(m.ctx, "one", fn); err != nil {
				return nil, err
			}
		}
	}
	warmed()
	times := make([][]time.Duration, len(all))
	for len(times[0]) < n {
		for i, w := range all {
			for range turn {
				begin := time.Now()
				if err := w.lock(m.ctx, "one", fn); err != nil {
					return nil, err
				}
				times[i] = append(times[i], time.Since(begin))
			}
		}
	}
	return times, nil
}

// connections counts the sessions of a crowd.
func (m *measurer) connections() error {
	fmt.Println("\n### Connections\n\n| | connections | done after |\n|---|---|---|")
	for _, keys := range []int{1, 1000} {
		most, took, err := m.crowd(keys)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("1,000 waiters on one key, holder elsewhere (%s after the release)", "all turns")
		if keys > 1 {
			what = "1,000 free keys at once, held 5 ms each"
		}
		fmt.Printf("| %s | %d | %v |\n", what, most, took.Round(100*time.Microsecond))
	}
	return nil
}

// crowd has a thousand goroutines lock, and returns the most sessions that they
// used at once.
func (m *measurer) crowd(keys int) (most int, took time.Duration, err error) {
	pool, err := m.db.Pool(m.ctx)
	if err != nil {
		return 0, 0, err
	}
	defer pool.Close()
	l := pglock.New(pool, pglock.Options{})
	defer func() { _ = l.Close(context.Background()) }()
	var holder *pgx.Conn
	if keys == 1 {
		if holder, err = m.holder("crowd 0"); err != nil {
			return 0, 0, err
		}
		defer func() { _ = holder.Close(context.Background()) }()
	}
	var wg sync.WaitGroup
	errs := make([]error, 1000)
	begin := time.Now()
	for i := range errs {
		wg.Go(func() {
			errs[i] = l.WithLock(m.ctx, fmt.Sprintf("crowd %d", i%keys), func(context.Context) error {
				if keys > 1 {
					time.Sleep(5 * time.Millisecond)
				}
				return nil
			})
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); wg.Wait() }()
	for looks := 0; ; looks++ {
		sessions, err := m.db.Sessions(m.ctx)
		if err != nil {
			return 0, 0, err
		}
		n := len(sessions)
		if holder != nil {
			n-- // the holder's own
		}
		most = max(most, n)
		if holder != nil && looks == 50 {
			begin = time.Now()
			if err := holder.Close(m.ctx); err != nil {
				return 0, 0, err
			}
			<-done
			return most, time.Since(begin), errors.Join(errs...)
		}
		select {
		case <-done:
			return most, time.Since(begin), errors.Join(errs...)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// holder returns a session that holds a key.
func (m *measurer) holder(key any) (*pgx.Conn, error) {
	conn, err := pgx.Connect(m.ctx, m.db.DSN())
	if err == nil {
		_, err = conn.Exec(m.ctx, "select pg_advisory_lock($1)", processlock.MustKey(key).ID())
	}
	return conn, err
}

// handOver measures how long after a release elsewhere a waiter's fn runs.
func (m *measurer) handOver() error {
	fmt.Println("\n### Hand-over between processes\n\nFrom the release of a holder elsewhere to the waiter's fn; holds up to 1 s.\n\n| | median | p90 | longest |\n|---|---|---|---|")
	for _, name := range []string{"pglock", "pglock, poll"} {
		w, err := open(m.ctx, m.db.DSN(), name, 2)
		if err != nil {
			return err
		}
		var times []time.Duration
		for i := range 24 {
			took, err := m.oneHandOver(w, time.Duration(i)*40*time.Millisecond)
			if err != nil {
				w.stop()
				return err
			}
			times = append(times, took)
		}
		w.stop()
		fmt.Printf("| %s | %v | %v | %v |\n", map[string]string{"pglock": "Queue", "pglock, poll": "Poll"}[name],
			rounded(percentile(times, 0.5)), rounded(percentile(times, 0.9)), rounded(percentile(times, 1)))
	}
	return nil
}

func (m *measurer) oneHandOver(w *way, hold time.Duration) (time.Duration, error) {
	holder, err := m.holder("passed")
	if err != nil {
		return 0, err
	}
	defer func() { _ = holder.Close(context.Background()) }()
	entered := make(chan time.Time, 1)
	failed := make(chan error, 1)
	go func() {
		failed <- w.lock(m.ctx, "passed", func(context.Context) error { entered <- time.Now(); return nil })
	}()
	time.Sleep(hold)
	begin := time.Now()
	if _, err := holder.Exec(m.ctx, "select pg_advisory_unlock_all()"); err != nil {
		return 0, err
	}
	if err := <-failed; err != nil {
		return 0, err
	}
	return (<-entered).Sub(begin), nil
}

// killed measures how soon a holder is told that its session was ended.
func (m *measurer) killed() error {
	pool, err := m.db.Pool(m.ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	l := pglock.New(pool, pglock.Options{})
	defer func() { _ = l.Close(context.Background()) }()
	id, err := l.LockID("killed")
	if err != nil {
		return err
	}
	var times []time.Duration
	for range 40 {
		err := l.WithLock(m.ctx, "killed", func(ctx context.Context) error {
			time.Sleep(30 * time.Millisecond)
			pids, err := m.db.Held(m.ctx, id)
			if err != nil {
				return err
			}
			begin := time.Now()
			if err := m.db.Terminate(m.ctx, pids...); err != nil {
				return err
			}
			<-ctx.Done()
			times = append(times, time.Since(begin))
			return nil
		})
		if !errors.Is(err, processlock.ErrLost) {
			return fmt.Errorf("a killed session: %w", err)
		}
	}
	fmt.Printf("\n### A killed session\n\nFrom pg_terminate_backend to the end of fn's context: median %v, p90 %v, longest %v.\n",
		rounded(percentile(times, 0.5)), rounded(percentile(times, 0.9)), rounded(percentile(times, 1)))
	return nil
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
