package processlock

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Two keys whose hashes are the same in all bits are still two keys.
//
// Rule 2.
func TestKeysOfOneHashAreToldApart(t *testing.T) {
	keys := []Key{
		stringKey(""), stringKey("1"), stringKey("2"), intKey(0), intKey(1), MustKey(1, 2), MustKey([][]int{{1}}), MustKey(),
		{s: "1", kind: keyText}, // no real text, but only the kind divides it from "1"
	}
	c := New(Options{})
	c.start()
	s := &c.shards[0]
	const hash = 7
	entries := make([]*entry, len(keys))
	for i := range keys {
		assert.Nil(t, s.find(&keys[i], hash), "%v is taken for another", keys[i])
		entries[i] = s.insert(&keys[i], hash)
	}
	for i := range keys {
		assert.Same(t, entries[i], s.find(&keys[i], hash), keys[i])
	}
	for i := range keys {
		s.remove(entries[i])
		assert.Nil(t, s.find(&keys[i], hash), keys[i])
		for j := i + 1; j < len(keys); j++ {
			assert.Same(t, entries[j], s.find(&keys[j], hash), keys[j])
		}
	}
}

// The mutex of one key's shard stops the release in the middle; then the keys
// behind that one are free and those before it are not.
//
// Rule 23.
func TestAllReleasesInReverse(t *testing.T) {
	c := New(Options{})
	// Three keys of three shards, in canonical order.
	var keys []Key
	shards := make(map[*shard]bool)
	for i := 0; len(keys) < 3; i++ {
		k := intKey(int64(100 + i))
		if s := c.shardOf(k.hash()); !shards[s] {
			shards[s] = true
			keys = append(keys, k)
		}
	}
	free := func(k Key) bool {
		return c.WithLock(context.Background(), k, func(context.Context) error { return nil }, IfAvailable) == nil
	}
	gate, done := make(chan struct{}), make(chan error, 1)
	running := make(chan struct{})
	go func() {
		done <- c.WithLock(context.Background(), All(keys[0], keys[1], keys[2]), func(context.Context) error {
			close(running)
			<-gate
			return nil
		})
	}()
	<-running
	third := make(chan error, 1)
	go func() {
		third <- c.WithLock(context.Background(), keys[2], func(context.Context) error { return nil })
	}()
	for c.Stats().Waiting == 0 {
		runtime.Gosched()
	}

	s := c.shardOf(keys[1].hash())
	s.mu.Lock()
	close(gate)
	select {
	case err := <-third:
		assert.NoError(t, err)
		assert.False(t, free(keys[0]), "the first key was released before the second")
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the last key is not released first")
	}
	s.mu.Unlock()
	assert.NoError(t, <-done)
	assert.True(t, free(keys[0]))
}

// A timer that nobody stopped would still be running an hour before its end.
//
// Rule 20.
func TestMaxWaitStopsItsTimer(t *testing.T) {
	ends := map[string]func(ctx context.Context, release func()) (context.Context, func()){
		"granted": func(ctx context.Context, release func()) (context.Context, func()) {
			return ctx, release
		},
		"canceled": func(ctx context.Context, _ func()) (context.Context, func()) {
			return context.WithCancel(ctx)
		},
		"closed": func(ctx context.Context, _ func()) (context.Context, func()) {
			ctx, cl := WithClient(ctx, "w")
			return ctx, cl.Close
		},
		"context panics": func(ctx context.Context, release func()) (context.Context, func()) {
			armed := make(chan struct{})
			return &ltPanicky{ctx, armed}, func() {
				close(armed)
				release()
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(Options{})
				ctx := WithCoordinator(t.Context(), c)
				gate := make(chan struct{})
				release := sync.OnceFunc(func() { close(gate) })
				defer release()
				go func() {
					_ = c.WithLock(ctx, "k", func(context.Context) error {
						<-gate
						return nil
					})
				}()
				synctest.Wait()

				ctx, act := end(ctx, release)
				var a attempt
				a.settings.read([]Option{MaxWait(time.Hour)})
				a.place(ctx, nil)
				over := make(chan struct{})
				go func() {
					defer close(over)
					defer func() { _ = recover() }()
					k := stringKey("k")
					hash := k.hash()
					g := grant{hold: &hold{Context: ctx}}
					var err error
					if err = a.contend(c.shardOf(hash), &k, hash, &g); err == nil {
						g.end(&err)
					}
				}()
				synctest.Wait()
				act()
				<-over
				if assert.NotNil(t, a.timer, "nothing bounds the wait") {
					assert.False(t, a.timer.Stop(), "the timer still runs")
				}
			})
		})
	}
}

// ltPanicky is a context that panics once it is armed.
type ltPanicky struct {
	context.Context
	armed chan struct{}
}

func (p *ltPanicky) Err() error {
	select {
	case <-p.armed:
		panic("Err")
	default:
		return p.Context.Err()
	}
}
