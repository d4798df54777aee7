package processlock_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"golang.org/x/sync/semaphore"
)

// locker is what the benchmarks need of an implementation.
type locker func(ctx context.Context, key string, fn func(ctx context.Context) error) error

// implementations are what a user might write or pick instead. None but ours
// and the semaphores hand over in order of arrival or end a wait with a
// context; a single mutex doesn't keep keys apart either.
func implementations() []struct {
	name string
	lock locker
} {
	c := processlock.New(processlock.Options{})
	ctx := processlock.WithCoordinator(context.Background(), c)
	var mutex sync.Mutex
	return []struct {
		name string
		lock locker
	}{
		{"processlock", func(_ context.Context, key string, fn func(context.Context) error) error {
			return processlock.WithLock(ctx, key, fn)
		}},
		{"processlock.Coordinator", func(ctx context.Context, key string, fn func(context.Context) error) error {
			return c.WithLock(ctx, key, fn)
		}},
		{"mutex", func(ctx context.Context, _ string, fn func(context.Context) error) error {
			mutex.Lock()
			defer mutex.Unlock()
			return fn(ctx)
		}},
		{"mutexmap", new(mutexMap).lock},
		{"semaphoremap", new(semaphoreMap).lock},
	}
}

// mutexMap is a map of reference-counted mutexes, pooled.
type mutexMap struct {
	mu   sync.Mutex
	m    map[string]*countedMutex
	pool sync.Pool
}

type countedMutex struct {
	sync.Mutex
	users int // guarded by mutexMap.mu
}

func (m *mutexMap) lock(ctx context.Context, key string, fn func(context.Context) error) error {
	m.mu.Lock()
	l := m.m[key]
	if l == nil {
		if m.m == nil {
			m.m = make(map[string]*countedMutex)
		}
		if l, _ = m.pool.Get().(*countedMutex); l == nil {
			l = new(countedMutex)
		}
		m.m[key] = l
	}
	l.users++
	m.mu.Unlock()
	l.Lock()
	defer func() {
		m.mu.Lock()
		l.Unlock()
		if l.users--; l.users == 0 {
			delete(m.m, key)
			m.pool.Put(l)
		}
		m.mu.Unlock()
	}()
	return fn(ctx)
}

// semaphoreMap is a map of reference-counted semaphores: in order of arrival,
// with a context.
type semaphoreMap struct {
	mu sync.Mutex
	m  map[string]*countedSemaphore
}

type countedSemaphore struct {
	*semaphore.Weighted
	users int // guarded by semaphoreMap.mu
}

func (m *semaphoreMap) lock(ctx context.Context, key string, fn func(context.Context) error) error {
	m.mu.Lock()
	s := m.m[key]
	if s == nil {
		if m.m == nil {
			m.m = make(map[string]*countedSemaphore)
		}
		s = &countedSemaphore{Weighted: semaphore.NewWeighted(1)}
		m.m[key] = s
	}
	s.users++
	m.mu.Unlock()
	leave := func() {
		m.mu.Lock()
		if s.users--; s.users == 0 {
			delete(m.m, key)
		}
		m.mu.Unlock()
	}
	if err := s.Acquire(ctx, 1); err != nil {
		leave()
		return err
	}
	defer func() {
		s.Release(1)
		leave()
	}()
	return fn(ctx)
}

// BenchmarkUncontended locks free keys from one goroutine.
func BenchmarkUncontended(b *testing.B) {
	for _, n := range []int{1, 1024} {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = "tenant-" + strconv.Itoa(i)
		}
		for _, impl := range implementations() {
			b.Run(fmt.Sprintf("impl=%s/keys=%d/waiters=0", impl.name, n), func(b *testing.B) {
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					_ = impl.lock(ctx, keys[i], nothing)
					if i++; i == n {
						i = 0
					}
				}
			})
		}
	}
}

// BenchmarkDisjoint locks a key of its own in every goroutine.
func BenchmarkDisjoint(b *testing.B) {
	for _, impl := range implementations() {
		b.Run(fmt.Sprintf("impl=%s/keys=own/waiters=0", impl.name), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				key := "tenant-" + strconv.FormatInt(n.Add(1), 10)
				for pb.Next() {
					_ = impl.lock(ctx, key, nothing)
				}
			})
		})
	}
}

// BenchmarkHotKey locks one key from many goroutines.
func BenchmarkHotKey(b *testing.B) {
	for _, waiters := range []int{2, 8, 128} {
		for _, cancellable := range []bool{false, true} {
			for _, impl := range implementations() {
				b.Run(fmt.Sprintf("impl=%s/keys=1/waiters=%d/cancellable=%t", impl.name, waiters, cancellable), func(b *testing.B) {
					ctx := context.Background()
					if cancellable {
						var cancel context.CancelFunc
						ctx, cancel = context.WithCancel(ctx)
						defer cancel()
					}
					b.ReportAllocs()
					var wg sync.WaitGroup
					var left atomic.Int64
					left.Store(int64(b.N))
					for range waiters {
						wg.Go(func() {
							for left.Add(-1) >= 0 {
								_ = impl.lock(ctx, "hot", nothing)
							}
						})
					}
					wg.Wait()
				})
			}
		}
	}
}

// BenchmarkHooks locks a free key and a busy one where nobody looks, where hooks
// did, where they do, and where only what is slow is looked at.
func BenchmarkHooks(b *testing.B) {
	none := func(processlock.Event) {}
	hooks := processlock.Hooks{Waiting: none, Acquired: none, Released: none, Failed: none}
	for _, looks := range []struct {
		name string
		opts processlock.Options
	}{
		{"off", processlock.Options{}},
		{"removed", processlock.Options{}},
		{"on", processlock.Options{Hooks: hooks}},
		{"slow", processlock.Options{SlowWait: time.Hour, SlowHold: time.Hour}},
	} {
		for _, waiters := range []int{0, 8} {
			b.Run(fmt.Sprintf("hooks=%s/waiters=%d", looks.name, waiters), func(b *testing.B) {
				c := processlock.New(looks.opts)
				if looks.name == "removed" {
					c.AddHooks(hooks)()
				}
				ctx := processlock.WithCoordinator(context.Background(), c)
				b.ReportAllocs()
				if waiters == 0 {
					for b.Loop() {
						_ = processlock.WithLock(ctx, "k", nothing)
					}
					return
				}
				var wg sync.WaitGroup
				var left atomic.Int64
				left.Store(int64(b.N))
				for range waiters {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							_ = processlock.WithLock(ctx, "k", nothing)
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// BenchmarkShared holds one key in shared mode from every goroutine.
func BenchmarkShared(b *testing.B) {
	c := processlock.New(processlock.Options{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = c.WithLock(context.Background(), "hot", nothing, processlock.Shared)
		}
	})
}

// BenchmarkKey locks free keys of several kinds.
func BenchmarkKey(b *testing.B) {
	type tenant struct {
		Region string
		ID     int
	}
	ctx := processlock.WithCoordinator(context.Background(), processlock.New(processlock.Options{}))
	key := processlock.MustKey("invoice", 7)
	for _, bench := range []struct {
		name string
		lock func()
	}{
		{"string", func() { _ = processlock.WithLock(ctx, "invoice", nothing) }},
		{"int", func() { _ = processlock.WithLock(ctx, 7, nothing) }},
		{"list", func() { _ = processlock.WithLock(ctx, []any{"invoice", 7}, nothing) }},
		{"struct", func() { _ = processlock.WithLock(ctx, tenant{"eu", 7}, nothing) }},
		{"Key", func() { _ = processlock.WithLock(ctx, key, nothing) }},
		{"All2", func() { _ = processlock.WithLock(ctx, processlock.All("a", "b"), nothing) }},
	} {
		b.Run("key="+bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bench.lock()
			}
		})
	}
}
