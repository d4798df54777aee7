package contender

import (
	"context"
	"sync"
)

// A map of queues on sync.Cond, whose lock is handed to the first in the queue:
// how im7mortal/kmutex v2 does it.
func mapCondContender[K comparable]() Contender[K] {
	return Contender[K]{"map+Cond", Baseline, Guarantees{Exact: true, FIFO: true},
		func() Lock[K] { return &mapCond[K]{m: make(map[K]*condQueue)} }}
}

type mapCond[K comparable] struct {
	mu sync.Mutex
	m  map[K]*condQueue // of the keys that are held
}

type condQueue struct {
	turn    sync.Cond
	waiting int // guarded by mapCond.mu
}

func (m *mapCond[K]) lock(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.m[key]
	if q == nil {
		q = new(condQueue)
		q.turn.L = &m.mu
		m.m[key] = q
		return
	}
	q.waiting++
	// No loop around it: a wake-up is the grant, and Cond has no others.
	q.turn.Wait()
}

func (m *mapCond[K]) unlock(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.m[key]
	if q.waiting == 0 {
		delete(m.m, key)
		return
	}
	q.waiting--
	q.turn.Signal()
}

func (m *mapCond[K]) Do(ctx context.Context, key K, fn func(context.Context) error) error {
	m.lock(key)
	defer m.unlock(key)
	return fn(ctx)
}
