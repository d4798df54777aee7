package pglock_test

import (
	"context"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/locktest"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// locals knows the coordinator of each Locker of a suite.
type locals struct{ m sync.Map }

func (c *locals) of(l processlock.Locker) *processlock.Coordinator {
	local, _ := c.m.Load(l)
	return local.(*processlock.Coordinator)
}

// TestContract holds a Locker to the contract, as seen from one process. There
// the order of arrival is kept and a cycle is found at once.
func TestContract(t *testing.T) {
	b := serialBed(t)
	var known locals
	locktest.Run(t, func(t *testing.T) processlock.Locker {
		local := processlock.New(processlock.Options{})
		l := b.warm(t, pglock.Options{Local: local})
		known.m.Store(l, local)
		return l
	}, locktest.Options{
		RealTime: true, // 37: a server is waited for
		Waiters: func(l processlock.Locker, key any) int {
			lockers, ok := l.(*pglock.Locker)
			if !ok {
				return 0
			}
			return waitersOf(known.of(lockers), idOf(key))
		},
		Client: func(ctx context.Context, l processlock.Locker, name string) (context.Context, *processlock.Client) {
			return known.of(l).WithClient(ctx, name)
		},
		KeepsGoroutines: true, // 35: a session is kept and watched
	})
}

// serialBed is newBed for a test beside which nothing else may run.
func serialBed(t *testing.T) *bed {
	t.Helper()
	server, err := shared()
	require.NoError(t, err)
	return bedOn(t, server)
}

// warm returns a Locker that has its connection: rule 34 weighs what a burst of
// keys leaves, not a connection's buffers.
func (b *bed) warm(t *testing.T, opts pglock.Options) *pglock.Locker {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), b.db.DSN())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	l := pglock.New(pool, opts)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		assert.NoError(t, l.Close(ctx), "Close")
	})
	require.NoError(t, l.WithLock(context.Background(), "warm", nop))
	return l
}

// waitersOf counts who waits in this process for a lock id.
func waitersOf(local *processlock.Coordinator, id int64) int {
	key := processlock.MustKey(big.NewInt(id))
	for _, lock := range local.Snapshot().Locks {
		if lock.Key == key {
			return len(lock.Waiters)
		}
	}
	return 0
}

// deployment is a Locker whose calls go to several Lockers in turn, each of
// which knows as little of the others as if it were in another process.
type deployment struct {
	lockers []*pglock.Locker
	turn    atomic.Int64
}

func (d *deployment) WithLock(ctx context.Context, key any, fn func(context.Context) error, opts ...processlock.Option) error {
	return d.lockers[int(d.turn.Add(1))%len(d.lockers)].WithLock(ctx, key, fn, opts...)
}

// TestContractBetweenProcesses holds several Lockers to what the contract says
// of one, but for what is promised inside a process only.
func TestContractBetweenProcesses(t *testing.T) {
	b := serialBed(t)
	for _, mode := range []pglock.WaitMode{pglock.Queue, pglock.Poll} {
		t.Run(mode.String(), func(t *testing.T) {
			locktest.Run(t, func(t *testing.T) processlock.Locker {
				d := new(deployment)
				for range 3 {
					d.lockers = append(d.lockers, b.warm(t, pglock.Options{Wait: mode, Slice: 50 * time.Millisecond}))
				}
				return d
			}, locktest.Options{
				RealTime:        true,
				Unordered:       true, // 3, 4: order is each process's own
				NoLineage:       true, // 22, 30, 31: a call nests in its own process
				NoReentrant:     true,
				NoDetach:        true,
				NoCycles:        true,
				KeepsGoroutines: true,
			})
		})
	}
}
