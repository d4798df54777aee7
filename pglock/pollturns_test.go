package pglock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crowd has goroutines lock key over and over until stop.
func (b *bed) crowd(l *pglock.Locker, key any) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var turns atomic.Int64
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				assert.NoError(b, l.WithLock(context.Background(), key, func(context.Context) error {
					turns.Add(1)
					time.Sleep(100 * time.Microsecond)
					return nil
				}))
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	b.Cleanup(stop)
	b.eventually(func() bool { return turns.Load() > 1000 }, "the crowd does not lock")
	return stop
}

// Who polls gets its turn beside a process that has a crowd waiting.
func TestPollingBesideACrowdGetsATurn(t *testing.T) {
	b := newBed(t)
	stop := b.crowd(b.locker(pglock.Options{Wait: pglock.Poll}), "k")
	l := b.locker(pglock.Options{Wait: pglock.Poll})
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // its tries meet a free key by chance
	defer cancel()
	begin := time.Now()
	for range 3 {
		require.NoError(t, l.WithLock(ctx, "k", nop))
	}
	t.Logf("3 turns after %v", time.Since(begin))
	stop()
}

// So does who has to poll since its connections wait for other keys.
func TestPollingForLackOfConnectionsGetsATurn(t *testing.T) {
	b := newBed(t)
	other := b.session()
	b.take(other, "long")
	l := b.locker(pglock.Options{MaxConns: 2, Slice: 50 * time.Millisecond})
	long := b.start(t.Context(), l, "long").queued(1)
	stop := b.crowd(b.locker(pglock.Options{}), "k")
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	begin := time.Now()
	for range 10 {
		require.NoError(t, l.WithLock(ctx, "k", nop))
	}
	t.Logf("10 turns after %v", time.Since(begin))
	stop()
	b.unlock(other, "long")
	long.runs().ok()
}
