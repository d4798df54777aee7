package contender

import (
	"context"
	"sync"
)

// The construction of map+Mutex with a RWMutex a key.
var mapRWMutex = Contender[string]{"map+RWMutex", Baseline, Guarantees{Exact: true},
	func() Lock[string] { return &rwMap{m: make(map[string]*countedRWMutex)} }}

type rwMap struct {
	mu sync.Mutex
	m  map[string]*countedRWMutex
}

type countedRWMutex struct {
	sync.RWMutex
	users int // guarded by rwMap.mu
}

var countedRWMutexes = sync.Pool{New: func() any { return new(countedRWMutex) }}

func (m *rwMap) enter(key string) *countedRWMutex {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.m[key]
	if l == nil {
		l = countedRWMutexes.Get().(*countedRWMutex)
		m.m[key] = l
	}
	l.users++
	return l
}

func (m *rwMap) leave(key string, l *countedRWMutex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(m.m, key)
		countedRWMutexes.Put(l)
	}
}

func (m *rwMap) Do(ctx context.Context, key string, fn func(context.Context) error) error {
	l := m.enter(key)
	defer m.leave(key, l)
	l.Lock()
	defer l.Unlock()
	return fn(ctx)
}

func (m *rwMap) DoShared(ctx context.Context, key string, fn func(context.Context) error) error {
	l := m.enter(key)
	defer m.leave(key, l)
	l.RLock()
	defer l.RUnlock()
	return fn(ctx)
}
