package processlock_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dbx-tools/processlock"
)

// BenchmarkPeer_M4_FreshKeyInsideAHotOne makes an entry for a new key in every
// round, while another key is held.
func BenchmarkPeer_M4_FreshKeyInsideAHotOne(b *testing.B) {
	for _, impl := range implementations() {
		// One mutex can't be nested, and the plain function's adapter drops fn's
		// context, which would spare it the lineage.
		if impl.name == "mutex" || impl.name == "processlock" {
			continue
		}
		b.Run("impl="+impl.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				_ = impl.lock(b.Context(), "test", func(ctx context.Context) error {
					return impl.lock(ctx, strconv.Itoa(i), nothing)
				})
			}
		})
	}
}

// pfKeys are n keys of strings.
func pfKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	return keys
}

// BenchmarkPeer_M6_RandomKeys picks one of 64 keys from very many goroutines.
func BenchmarkPeer_M6_RandomKeys(b *testing.B) {
	keys := pfKeys(64)
	for _, impl := range implementations() {
		b.Run(fmt.Sprintf("impl=%s/keys=%d/goroutines=128*procs", impl.name, len(keys)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(128)
			b.RunParallel(func(pb *testing.PB) {
				r := rand.New(rand.NewPCG(rand.Uint64(), 1))
				for pb.Next() {
					_ = impl.lock(b.Context(), keys[r.IntN(len(keys))], nothing)
				}
			})
		})
	}
}

// BenchmarkPeer_M11_M12_M13_SharedMix has the same shapes with shared holders:
// a fresh key inside a shared one, and one of 1 or 64 keys from very many
// goroutines, of which a share is exclusive.
func BenchmarkPeer_M11_M12_M13_SharedMix(b *testing.B) {
	b.Run("fresh", func(b *testing.B) {
		c := processlock.New(processlock.Options{})
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			_ = c.WithLock(b.Context(), "test", func(ctx context.Context) error {
				return c.WithLock(ctx, i, nothing, processlock.Shared)
			}, processlock.Shared)
		}
	})
	for _, n := range []int{1, 64} {
		for _, exclusive := range []int{0, 1, 10} {
			keys := pfKeys(n)
			b.Run(fmt.Sprintf("keys=%d/exclusive=%d%%/goroutines=128*procs", n, exclusive), func(b *testing.B) {
				c := processlock.New(processlock.Options{})
				b.ReportAllocs()
				b.SetParallelism(128)
				b.RunParallel(func(pb *testing.PB) {
					r := rand.New(rand.NewPCG(rand.Uint64(), 1))
					for pb.Next() {
						key := keys[r.IntN(n)]
						if r.IntN(100) < exclusive {
							_ = c.WithLock(b.Context(), key, nothing)
						} else {
							_ = c.WithLock(b.Context(), key, nothing, processlock.Shared)
						}
					}
				})
			})
		}
	}
}

// BenchmarkPeer_G10_NewAndFirstLock is what a coordinator costs that is used
// once, beside a map of mutexes that is.
func BenchmarkPeer_G10_NewAndFirstLock(b *testing.B) {
	b.Run("impl=processlock", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = processlock.New(processlock.Options{}).WithLock(b.Context(), "cold", nothing)
		}
	})
	b.Run("impl=mutexmap", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = new(mutexMap).lock(b.Context(), "cold", nothing)
		}
	})
	b.Run("impl=channel", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sem := make(chan struct{}, 1)
			sem <- struct{}{}
			_ = nothing(b.Context())
			<-sem
		}
	})
}

// BenchmarkPeer_G11_NestedKeys takes free keys inside one another, and tries
// them, beside a map of mutexes.
func BenchmarkPeer_G11_NestedKeys(b *testing.B) {
	c := processlock.New(processlock.Options{})
	impls := map[string]locker{
		"processlock": func(ctx context.Context, key string, fn func(context.Context) error) error {
			return c.WithLock(ctx, key, fn)
		},
		"processlock-try": func(ctx context.Context, key string, fn func(context.Context) error) error {
			return c.WithLock(ctx, key, fn, processlock.IfAvailable)
		},
		"mutexmap": new(mutexMap).lock,
	}
	for _, depth := range []int{1, 8, 128} {
		keys := pfKeys(depth)
		for _, name := range slices.Sorted(maps.Keys(impls)) {
			lock := impls[name]
			b.Run(fmt.Sprintf("impl=%s/depth=%d", name, depth), func(b *testing.B) {
				b.ReportAllocs()
				var nest func(ctx context.Context, i int) error
				nest = func(ctx context.Context, i int) error {
					if i == depth {
						return nil
					}
					return lock(ctx, keys[i], func(ctx context.Context) error { return nest(ctx, i+1) })
				}
				for b.Loop() {
					if err := nest(b.Context(), 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkField_K5_HandOffUnderCrowds is what direct hand-over costs: a switch
// of goroutines for each, however many wait.
func BenchmarkField_K5_HandOffUnderCrowds(b *testing.B) {
	for _, contenders := range []int{1, 8, 64, 1000} {
		b.Run(fmt.Sprintf("contenders=%d", contenders), func(b *testing.B) {
			c := processlock.New(processlock.Options{})
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range contenders {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						_ = c.WithLock(b.Context(), "hot", nothing)
					}
				})
			}
			wg.Wait()
		})
	}
}
