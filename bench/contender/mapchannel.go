package contender

import (
	"context"
	"sync"
)

// A map of one-slot channels, reference-counted: to send is to lock. xkeylock
// does it so.
func mapChannelContender[K comparable]() Contender[K] {
	return Contender[K]{"map+channel", Baseline, Guarantees{Exact: true, FIFO: true, Ctx: true},
		func() Lock[K] { return &mapChannel[K]{m: make(map[K]*slot)} }}
}

type mapChannel[K comparable] struct {
	mu sync.Mutex
	m  map[K]*slot
}

type slot struct {
	held  chan struct{} // senders are queued in order of arrival
	users int           // guarded by mapChannel.mu
}

func (m *mapChannel[K]) enter(key K) *slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.m[key]
	if s == nil {
		s = &slot{held: make(chan struct{}, 1)}
		m.m[key] = s
	}
	s.users++
	return s
}

func (m *mapChannel[K]) leave(key K, s *slot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(m.m, key)
	}
}

func (m *mapChannel[K]) Do(ctx context.Context, key K, fn func(context.Context) error) error {
	s := m.enter(key)
	defer m.leave(key, s)
	select {
	case s.held <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.held }()
	return fn(ctx)
}
