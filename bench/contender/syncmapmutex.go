package contender

import (
	"context"
	"sync"
)

// A mutex a key for ever: what weaviate does, and most answers to the question
// in forums.
func syncMapMutexContender[K comparable]() Contender[K] {
	return Contender[K]{"sync.Map+Mutex", Baseline, Guarantees{Exact: true, Note: "never forgets a key"},
		func() Lock[K] { return new(syncMapMutex[K]) }}
}

type syncMapMutex[K comparable] struct{ m sync.Map }

func (s *syncMapMutex[K]) Do(ctx context.Context, key K, fn func(context.Context) error) error {
	v, ok := s.m.Load(key)
	if !ok {
		v, _ = s.m.LoadOrStore(key, new(sync.Mutex))
	}
	mu := v.(*sync.Mutex)
	mu.Lock()
	defer mu.Unlock()
	return fn(ctx)
}
