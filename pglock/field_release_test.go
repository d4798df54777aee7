package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestField_P1_UnlockGoesWhereTheLockIs(t *testing.T) {
	b := newBed(t)
	lockers := []*pglock.Locker{b.locker(pglock.Options{}), b.locker(pglock.Options{})}
	var inside [5]atomic.Int32
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			key := i % len(inside)
			for range 5 {
				assert.NoError(t, lockers[i/5%2].WithLock(t.Context(), key, func(context.Context) error {
					assert.Equal(t, int32(1), inside[key].Add(1))
					inside[key].Add(-1)
					return nil
				}))
			}
		})
	}
	wg.Wait()
	b.nothingHeld()
}

// ways are the ways to lock around an fn.
var ways = map[string]func(l *pglock.Locker, ctx context.Context, key any, fn func(context.Context) error) error{
	"WithLock": func(l *pglock.Locker, ctx context.Context, key any, fn func(context.Context) error) error {
		return l.WithLock(ctx, key, fn)
	},
	"WithConn": func(l *pglock.Locker, ctx context.Context, key any, fn func(context.Context) error) error {
		return l.WithConn(ctx, key, func(ctx context.Context, _ *pgx.Conn) error { return fn(ctx) })
	},
	"WithTx": func(l *pglock.Locker, ctx context.Context, key any, fn func(context.Context) error) error {
		return l.WithTx(ctx, key, pgx.TxOptions{}, func(ctx context.Context, _ pgx.Tx) error { return fn(ctx) })
	},
}

func TestField_P2_SessionOfAFailedUnlockIsNotUsedAgain(t *testing.T) {
	for name, lock := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			p := b.proxy()
			l := b.lockerAt(p.Addr(), pglock.Options{Release: 200 * time.Millisecond, Probe: time.Hour})
			defer p.Heal()
			var pids []int
			begin := time.Now()
			err := b.bounded(func() error {
				return lock(l, t.Context(), "k", func(context.Context) error {
					pids = b.held("k")
					if name == "WithTx" {
						p.Drop() // silence would be taken for a long COMMIT
					} else {
						p.BlackHole()
					}
					return nil
				})
			})
			assert.Error(t, err, "the unlock was never answered")
			assert.Less(t, time.Since(begin), patience/2, "Release bounds it")
			p.Heal()
			b.eventually(func() bool { return len(b.held("k")) == 0 }, "the lock of a session in doubt stays")
			// A machine that is too busy for an answer within this short a Release
			// loses the lock again.
			b.eventually(func() bool {
				err := lock(l, t.Context(), "k", func(context.Context) error {
					assert.NotEqual(t, pids, b.held("k"), "the session in doubt is used again")
					return nil
				})
				if !errors.Is(err, processlock.ErrLost) {
					require.NoError(t, err)
				}
				return err == nil
			}, "the Locker does not recover")
		})
	}
}

func TestField_P2_UnlockThatIsAnsweredFalseIsALoss(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	mine := errors.New("mine")
	for _, result := range []error{nil, mine} {
		err := l.WithConn(t.Context(), "k", func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "discard all")
			require.NoError(t, err)
			return result
		})
		assert.ErrorIs(t, err, processlock.ErrLost)
		if result != nil {
			assert.ErrorIs(t, err, mine)
		}
	}
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
}

func TestField_P3_UnlockDoesNotNeedTheCallersContext(t *testing.T) {
	type outcome struct{ panics, exits bool }
	ends := map[string]func(cancel context.CancelFunc) outcome{
		"canceled":            func(cancel context.CancelFunc) outcome { cancel(); return outcome{} },
		"canceled and panic":  func(cancel context.CancelFunc) outcome { cancel(); return outcome{panics: true} },
		"canceled and Goexit": func(cancel context.CancelFunc) outcome { cancel(); return outcome{exits: true} },
		"panic":               func(context.CancelFunc) outcome { return outcome{panics: true} },
		"Goexit":              func(context.CancelFunc) outcome { return outcome{exits: true} },
	}
	for name, lock := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			l := b.locker(pglock.Options{})
			other := b.session()
			for name, end := range ends {
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { _ = recover() }()
					_ = lock(l, ctx, "k", func(context.Context) error {
						switch o := end(cancel); {
						case o.panics:
							panic("fn's own")
						case o.exits:
							runtime.Goexit()
						}
						return nil
					})
				})
				wg.Wait()
				assert.True(t, b.free(other, "k"), "%s: the call has returned", name)
				cancel()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_ = lock(l, ctx, "k", func(ctx context.Context) error { <-ctx.Done(); return nil })
			assert.True(t, b.free(other, "k"), "deadline: the call has returned")
		})
	}
}

// A cancel that meets the grant must leave neither a lock without a holder nor a
// holder without a lock.
func TestField_P5_CancelMeetsTheGrant(t *testing.T) {
	for _, mode := range []pglock.WaitMode{pglock.Queue, pglock.Poll} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBed(t)
			l := b.locker(pglock.Options{Wait: mode, Slice: 20 * time.Millisecond})
			other := b.session()
			ran, rounds := 0, 300
			for range rounds {
				b.take(other, "k")
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() {
					time.Sleep(time.Duration(rand.Int64N(int64(5 * time.Millisecond))))
					cancel()
				})
				wg.Go(func() {
					err := l.WithLock(ctx, "k", func(context.Context) error {
						ran++
						if held := b.held("k"); len(held) != 1 {
							return fmt.Errorf("fn runs and the lock is held by %v", held)
						}
						return nil
					})
					if !errors.Is(err, context.Canceled) {
						assert.NoError(t, err)
					}
				})
				time.Sleep(time.Duration(rand.Int64N(int64(5 * time.Millisecond))))
				b.unlock(other, "k")
				wg.Wait()
			}
			b.nothingHeld()
			t.Logf("%d of %d were granted", ran, rounds)
		})
	}
}

func TestField_P6_NoStatementIsCanceledForAnother(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{MaxConns: 2, Slice: 10 * time.Millisecond})
	other := b.session()
	b.take(other, "busy")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { defer stop(); cancelWaits(b, l, "busy", 200) })
	for i := range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				assert.NoError(t, l.WithConn(t.Context(), i, func(ctx context.Context, conn *pgx.Conn) error {
					_, err := conn.Exec(ctx, "select pg_sleep(0.002)")
					return err
				}))
			}
		})
	}
	wg.Wait()
	b.unlock(other, "busy")
}
