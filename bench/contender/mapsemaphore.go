package contender

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// A map of reference-counted semaphores: how dolt and containerd lock by key.
func mapSemaphoreContender[K comparable]() Contender[K] {
	return Contender[K]{"map+Weighted", Baseline, Guarantees{Exact: true, FIFO: true, Ctx: true},
		func() Lock[K] { return &mapSemaphore[K]{m: make(map[K]*countedSemaphore)} }}
}

type mapSemaphore[K comparable] struct {
	mu sync.Mutex
	m  map[K]*countedSemaphore
}

type countedSemaphore struct {
	s     *semaphore.Weighted
	users int // guarded by mapSemaphore.mu
}

func (m *mapSemaphore[K]) enter(key K) *countedSemaphore {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.m[key]
	if e == nil {
		e = &countedSemaphore{s: semaphore.NewWeighted(1)}
		m.m[key] = e
	}
	e.users++
	return e
}

func (m *mapSemaphore[K]) leave(key K, e *countedSemaphore) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.users--; e.users == 0 {
		delete(m.m, key)
	}
}

func (m *mapSemaphore[K]) Do(ctx context.Context, key K, fn func(context.Context) error) error {
	e := m.enter(key)
	defer m.leave(key, e)
	if err := e.s.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.s.Release(1)
	return fn(ctx)
}
