package processlock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A claim's channel, made inside a bubble, is fatal outside it. So what a
// bubble makes never reaches the pool that all share, and what the pool has
// never reaches a bubble, whose time would stop while somebody waits with it.
//
// Rules 35 and 37.
func TestClaimsMadeInABubbleNeverReachTheSharedPool(t *testing.T) {
	var c Coordinator
	contend := func(t *testing.T, waiting func()) {
		var all sync.WaitGroup
		for _, key := range []string{"a", "b"} {
			gate := make(chan struct{})
			held := make(chan struct{})
			all.Go(func() {
				_ = c.WithLock(t.Context(), key, func(context.Context) error {
					close(held)
					<-gate
					return nil
				})
			})
			<-held
			for range 3 * maxSpares {
				all.Go(func() { _ = c.WithLock(t.Context(), key, func(context.Context) error { return nil }) })
			}
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				all.Go(func() { _ = c.WithLock(ctx, key, func(context.Context) error { return nil }) })
				all.Go(cancel)
			}
			waiting()
			close(gate)
		}
		all.Wait()
	}
	for _, year := range []time.Duration{0, 1, 200} {
		claimPool.Put(&claim{port: make(chan struct{}, 1)})
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(year * 365 * 24 * time.Hour)
			for range 10 {
				if w := newClaim(); !w.bubbled {
					t.Fatal("a claim from outside was handed out in a bubble")
				}
			}
			contend(t, synctest.Wait)
		})
		for {
			w, ok := claimPool.Get().(*claim)
			if !ok {
				break
			}
			if w.bubbled {
				t.Fatal("a claim made in a bubble is in the pool")
			}
			if w.hold != nil || w.client != nil || w.entry != nil || w.wait != nil {
				t.Fatal("a pooled claim keeps a request alive")
			}
			if len(w.port) != 0 || cap(w.port) != 1 {
				t.Fatalf("a pooled claim's port has %d of %d tokens", len(w.port), cap(w.port))
			}
		}
		contend(t, func() {})
		if w := newClaim(); w.bubbled {
			t.Fatal("a claim made outside counts as made in a bubble")
		}
	}
	if err := CTLeft(&c); err != nil {
		t.Fatal(err)
	}
}
