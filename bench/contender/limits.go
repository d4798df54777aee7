package contender

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const oneForAll = "one lock for all keys"

var (
	bareMutex = Contender[string]{"bare Mutex", Limit, Guarantees{Note: oneForAll},
		func() Lock[string] { return new(mutexOnly) }}
	bareRWMutex = Contender[string]{"bare RWMutex", Limit, Guarantees{Note: oneForAll},
		func() Lock[string] { return new(rwMutexOnly) }}
	bareSemaphore = Contender[string]{"bare Weighted", Limit, Guarantees{FIFO: true, Ctx: true, Note: oneForAll},
		func() Lock[string] { return &semaphoreOnly{semaphore.NewWeighted(1)} }}
)

type mutexOnly struct{ mu sync.Mutex }

func (m *mutexOnly) Do(ctx context.Context, _ string, fn func(context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(ctx)
}

type rwMutexOnly struct{ mu sync.RWMutex }

func (m *rwMutexOnly) Do(ctx context.Context, _ string, fn func(context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(ctx)
}

func (m *rwMutexOnly) DoShared(ctx context.Context, _ string, fn func(context.Context) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return fn(ctx)
}

type semaphoreOnly struct{ s *semaphore.Weighted }

func (s *semaphoreOnly) Do(ctx context.Context, _ string, fn func(context.Context) error) error {
	if err := s.s.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.s.Release(1)
	return fn(ctx)
}
