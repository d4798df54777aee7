package processlock

import (
	"context"
	"runtime"
	"testing"
	"unsafe"
)

func ctHeap() int64 {
	// Twice: what pools keep survives one collection.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A million keys held at once cost at most 100 B each beyond the hold that fn's
// context is, and nothing once they are released. They are taken and released
// by hand, since a million goroutines would cost a thousand times that.
//
// Rule 34.
func TestField_D5_MillionKeysHeldAtOnceCostLittleAndThenNothing(t *testing.T) {
	n := 1_000_000
	if ctRace {
		n /= 8 // plain runs hold the million
	}
	var c Coordinator
	for i := range 1000 { // what the table keeps for reuse anyway
		_ = c.WithLock(context.Background(), i, func(context.Context) error { return nil })
	}
	grants := make([]grant, n)
	start := ctHeap()

	q := call{}
	q.place(context.Background(), &c)
	for i := range grants {
		k := intKey(int64(i))
		hash := k.hash()
		h := &hold{Context: q.ctx}
		if !q.take(c.shardOf(hash), &k, hash, h) {
			t.Fatalf("key %d is not free", i)
		}
		grants[i] = grant{hold: h}
	}
	held := ctHeap()
	if got := c.Stats().Held; got != int64(n) {
		t.Fatalf("%d keys are held", got)
	}
	for i := range grants {
		if !grants[i].release(nil) {
			t.Fatalf("key %d was not held", i)
		}
		grants[i] = grant{}
	}
	end := ctHeap()
	runtime.KeepAlive(grants)
	if err := CTLeft(&c); err != nil {
		t.Error(err)
	}

	perKey := float64(held-start)/float64(n) - float64(unsafe.Sizeof(hold{}))
	t.Logf("%.1f B a key beyond the hold while held; %d B more than at the start once released", perKey, end-start)
	if perKey > 100 {
		t.Errorf("a held key costs %.1f B beyond its hold, want at most 100", perKey)
	}
	if end-start >= 1<<20 {
		t.Errorf("%d B are retained after the burst, want less than 1 MB", end-start)
	}
}

// The same for what a user can do in one call: All of very many keys, released
// in the order that leaves the latest first.
//
// Rules 23 and 34.
func TestAllOfManyKeysIsForgotten(t *testing.T) {
	const n = 30_000
	var c Coordinator
	// All's Keys are part of the start.
	parts := make([]any, n)
	for i := range parts {
		parts[i] = i
	}
	keys := All(parts...)
	_ = c.WithLock(context.Background(), 0, func(context.Context) error { return nil })
	start := ctHeap()
	var held int64
	err := c.WithLock(context.Background(), keys, func(context.Context) error {
		held = ctHeap()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	end := ctHeap()
	runtime.KeepAlive(keys)
	runtime.KeepAlive(parts)
	t.Logf("%d B a key while held; %d B more than at the start once released", (held-start)/n, end-start)
	if end-start >= 1<<20 {
		t.Errorf("%d B are retained, want less than 1 MB", end-start)
	}
	if err := CTLeft(&c); err != nil {
		t.Error(err)
	}
}

// A key that a crowd waited for is forgotten too, with its claims: the
// collector may take what is kept for reuse.
//
// Rules 34 and 35.
func TestCrowdsAreForgotten(t *testing.T) {
	var c Coordinator
	contend := func(key int) {
		var done [50]chan struct{}
		_ = c.WithLock(context.Background(), key, func(context.Context) error {
			for i := range done {
				done[i] = make(chan struct{})
				go func() {
					defer close(done[i])
					_ = c.WithLock(context.Background(), key, func(context.Context) error { return nil })
				}()
			}
			for c.Stats().Waiting < int64(len(done)) {
				runtime.Gosched()
			}
			return nil
		})
		for i := range done {
			<-done[i]
		}
	}
	contend(0)
	start := ctHeap()
	for key := range 300 {
		contend(key)
	}
	if grown := ctHeap() - start; grown > 256<<10 {
		t.Errorf("%d B are retained of 300 contended keys", grown)
	}
	if err := CTLeft(&c); err != nil {
		t.Error(err)
	}
}
