package contender

import (
	"context"
	"sync"
)

// A map of reference-counted mutexes whose entries are pooled, with Lock(key)
// and Unlock(key): what moby/locker v2 does, which has no release to import.
func mapMutexContender[K comparable]() Contender[K] {
	return Contender[K]{"map+Mutex", Baseline, Guarantees{Exact: true, Note: "the moby/locker v2 construction"},
		func() Lock[K] { return &mapMutex[K]{m: make(map[K]*countedMutex)} }}
}

type mapMutex[K comparable] struct {
	mu sync.Mutex
	m  map[K]*countedMutex
}

type countedMutex struct {
	sync.Mutex
	users int // holder and waiters; guarded by mapMutex.mu
}

var countedMutexes = sync.Pool{New: func() any { return new(countedMutex) }}

func (m *mapMutex[K]) lock(key K) {
	m.mu.Lock()
	l := m.m[key]
	if l == nil {
		l = countedMutexes.Get().(*countedMutex)
		m.m[key] = l
	}
	l.users++
	m.mu.Unlock()
	l.Lock()
}

func (m *mapMutex[K]) unlock(key K) {
	m.mu.Lock()
	l := m.m[key]
	l.Unlock()
	if l.users--; l.users == 0 {
		delete(m.m, key)
		countedMutexes.Put(l)
	}
	m.mu.Unlock()
}

func (m *mapMutex[K]) Do(ctx context.Context, key K, fn func(context.Context) error) error {
	m.lock(key)
	defer m.unlock(key)
	return fn(ctx)
}
