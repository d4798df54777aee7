package locktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/locktest"
)

func newCoordinator(*testing.T) processlock.Locker { return new(processlock.Coordinator) }

func TestCoordinator(t *testing.T) {
	locktest.Run(t, newCoordinator, locktest.Options{Client: coordinatorClient})
}

func TestCoordinatorWithOptions(t *testing.T) {
	locktest.Run(t, func(*testing.T) processlock.Locker {
		return processlock.New(processlock.Options{MaxWaiters: 100, TrackHolds: true})
	}, locktest.Options{Client: coordinatorClient, CycleWithin: time.Second})
}

func TestCoordinatorRealTime(t *testing.T) {
	locktest.Run(t, newCoordinator,
		locktest.Options{RealTime: true, Client: coordinatorClient, Waiters: coordinatorWaiters})
}

// Without Waiters only what needs no certainty is asked.
func TestCoordinatorRealTimeBlind(t *testing.T) {
	locktest.Run(t, newCoordinator, locktest.Options{RealTime: true})
}

func TestDefault(t *testing.T) {
	locktest.Run(t, func(*testing.T) processlock.Locker { return packageLevel{} },
		locktest.Options{Client: defaultClient})
}

func TestClientBound(t *testing.T) {
	locktest.Run(t, func(*testing.T) processlock.Locker {
		b := new(bound)
		b.client, _ = b.WithClient(context.Background(), "bound")
		return b
	}, locktest.Options{Client: boundClient})
}

func coordinatorClient(ctx context.Context, l processlock.Locker, name string) (context.Context, *processlock.Client) {
	return l.(*processlock.Coordinator).WithClient(ctx, name)
}

// coordinatorWaiters counts the requests in the queue of one key.
func coordinatorWaiters(l processlock.Locker, key any) int {
	k, err := processlock.KeyOf(key)
	if err != nil {
		return 0
	}
	for _, lock := range l.(*processlock.Coordinator).Snapshot().Locks {
		if lock.Key.Canonical() == k.Canonical() {
			return len(lock.Waiters)
		}
	}
	return 0
}

// packageLevel is the package-level function as a Locker.
type packageLevel struct{}

func (packageLevel) WithLock(ctx context.Context, key any, fn func(context.Context) error, opts ...processlock.Option) error {
	return processlock.WithLock(ctx, key, fn, opts...)
}

func defaultClient(ctx context.Context, _ processlock.Locker, name string) (context.Context, *processlock.Client) {
	return processlock.WithClient(ctx, name)
}

// bound is a Coordinator all of whose calls are made by one client. The client
// is carried by a context that has no other part in the calls: it neither ends
// theirs, nor is it registered on them.
type bound struct {
	processlock.Coordinator
	client context.Context
}

func (b *bound) WithLock(ctx context.Context, key any, fn func(context.Context) error, opts ...processlock.Option) error {
	if ctx != nil {
		ctx = withValuesOf{ctx, b.client}
	}
	return b.Coordinator.WithLock(ctx, key, fn, opts...)
}

func boundClient(ctx context.Context, l processlock.Locker, name string) (context.Context, *processlock.Client) {
	return l.(*bound).WithClient(ctx, name)
}

// withValuesOf is a context that finds in another what it does not know.
type withValuesOf struct {
	context.Context
	other context.Context
}

func (w withValuesOf) Value(key any) any {
	if v := w.Context.Value(key); v != nil {
		return v
	}
	return w.other.Value(key)
}
