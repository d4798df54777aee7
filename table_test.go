package processlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// ctModel drives one shard's table beside a map and compares the two.
type ctModel struct {
	shard *shard
	want  map[Key]*entry
	hash  func(k *Key) uint64
	peak  int
}

func ctNewModel(hash func(k *Key) uint64) *ctModel {
	c := New(Options{})
	c.start()
	return &ctModel{shard: &c.shards[0], want: make(map[Key]*entry), hash: hash}
}

func (m *ctModel) step(insert bool, k Key) error {
	s, h := m.shard, m.hash(&k)
	e := s.find(&k, h)
	if want := m.want[k]; e != want {
		return fmt.Errorf("find(%v) is %p, want %p", k, e, want)
	}
	switch {
	case insert && e == nil:
		e = s.insert(&k, h)
		if e.key() != k {
			return fmt.Errorf("insert(%v) made the entry of %v", k, e.key())
		}
		if e.hold != nil || e.client != nil || e.crowd != nil || e.shard != s {
			return fmt.Errorf("insert(%v) made an entry that is not clean", k)
		}
		m.want[k] = e
		m.peak = max(m.peak, len(m.want))
	case !insert && e != nil:
		s.remove(e)
		delete(m.want, k)
	}
	return m.sizes()
}

// sizes checks what the table may keep at its present load.
func (m *ctModel) sizes() error {
	s, n := m.shard, len(m.want)
	inline := 0
	if s.inline.kind != keyInvalid {
		inline = 1
	}
	if int(s.tabled)+inline != n {
		return fmt.Errorf("%d entries in buckets and %d inline, want %d", s.tabled, inline, n)
	}
	if b := len(s.buckets); b&(b-1) != 0 || int(s.tabled) > b || b > max(8, 8*(int(s.tabled)+1)) {
		return fmt.Errorf("%d buckets for %d entries", b, s.tabled)
	}
	if int(s.spares) > int(s.tabled)+9 {
		return fmt.Errorf("%d entries kept beside %d in use", s.spares, s.tabled)
	}
	return nil
}

// all checks that the table yields what the map has, each once.
func (m *ctModel) all() error {
	seen := make(map[Key]bool)
	for e := range m.shard.entries {
		if k := e.key(); m.want[k] != e || seen[k] {
			return fmt.Errorf("entries yields %v", k)
		}
		seen[e.key()] = true
	}
	if len(seen) != len(m.want) {
		return fmt.Errorf("entries yields %d of %d", len(seen), len(m.want))
	}
	free := int32(0)
	for e := m.shard.free; e != nil; e = e.next {
		if e.kind != keyInvalid {
			return fmt.Errorf("the free list has the entry of %v", e.key())
		}
		free++
	}
	if free != m.shard.spares {
		return fmt.Errorf("%d entries in the free list, counted %d", free, m.shard.spares)
	}
	return nil
}

func ctModelKey(n int) Key {
	switch n % 3 {
	case 0:
		return intKey(int64(n))
	case 1:
		return stringKey(fmt.Sprint("k", n))
	default:
		return Key{s: fmt.Sprint("text", n), kind: keyText, list: n%2 == 0}
	}
}

// The table behaves like a map, with good hashes and with ones that collide in
// the bucket or in full, while it grows, shrinks and stays.
//
// Rules 2 and 34.
func TestTableAgainstAMap(t *testing.T) {
	for _, row := range []struct {
		name string
		hash func(k *Key) uint64
	}{
		{"hash", (*Key).hash},
		{"7 hashes", func(k *Key) uint64 { return k.hash() % 7 }},
		{"one bucket", func(k *Key) uint64 { return k.hash() << 16 }},
		{"one hash", func(*Key) uint64 { return 1 << 63 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			seed := rand.Uint64()
			rnd := rand.New(rand.NewPCG(seed, 1))
			m := ctNewModel(row.hash)
			for _, phase := range []struct{ steps, keys, insert int }{
				{2000, 700, 9},    // grow
				{1000, 700, 5},    // stay
				{3000, 700, 1},    // shrink
				{1000, 10_000, 6}, // grow with others
				{500, 3, 5},       // few, while the old ones stay
			} {
				for range phase.steps {
					if err := m.step(rnd.IntN(10) < phase.insert, ctModelKey(rnd.IntN(phase.keys))); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
				if err := m.all(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			for k := range m.want {
				if err := m.step(false, k); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if len(m.shard.buckets) > 8 || m.shard.spares > 9 {
				t.Errorf("after a peak of %d: %d buckets and %d entries are left", m.peak, len(m.shard.buckets), m.shard.spares)
			}
			if m.peak < 300 {
				t.Errorf("peak is %d only", m.peak)
			}
		})
	}
}

// Keys that differ have entries of their own, even in one bucket; what is no
// part of a lock's identity does not make an entry.
//
// Rule 2.
func TestTableTellsKeysApart(t *testing.T) {
	one := func(*Key) uint64 { return 0 }
	m := ctNewModel(one)
	keys := []Key{stringKey(""), stringKey("1"), intKey(0), intKey(1), {s: "", kind: keyText}, {s: "1", kind: keyText}}
	for _, k := range keys {
		if m.shard.find(&k, 0) != nil {
			t.Errorf("%v is there before its insert", k)
		}
		m.want[k] = m.shard.insert(&k, 0)
	}
	for k, e := range m.want {
		if m.shard.find(&k, 0) != e {
			t.Errorf("%v has become another", k)
		}
		listed := k
		listed.list = !k.list
		if m.shard.find(&listed, 0) != e {
			t.Errorf("%v as a list is another lock", k)
		}
	}
}

// While the mutex of one shard is taken, the keys of all others are had, waited
// for and handed on. Were the table one behind one mutex, processors would queue
// there for keys that have nothing to do with each other.
//
// Rule 2.
func TestShardsShareNoMutex(t *testing.T) {
	c := New(Options{})
	c.start()
	hash := func(key int) uint64 { k := intKey(int64(key)); return k.hash() }
	keys := make(map[*shard]int) // one of each
	for i := 0; len(keys) < shardCount; i++ {
		if i == 1000*shardCount {
			t.Fatalf("%d keys are in %d shards of %d", i, len(keys), shardCount)
		}
		keys[c.shardOf(hash(i))] = i
	}
	if len(keys) < 16 {
		t.Fatalf("there are %d shards: as many processors are usual", len(keys))
	}
	tried := 0
	for s, busy := range keys {
		if tried++; tried > 4 {
			break
		}
		s.mu.Lock()
		done := make(chan error, 1)
		go func() {
			for _, key := range keys {
				if key == busy {
					continue
				}
				waited := make(chan error, 1)
				err := c.WithLock(context.Background(), key, func(context.Context) error {
					go func() {
						waited <- c.WithLock(context.Background(), key, func(context.Context) error { return nil })
					}()
					for waits := false; !waits; runtime.Gosched() {
						o := c.shardOf(hash(key))
						o.mu.Lock()
						waits = o.inline.crowd != nil && o.inline.crowd.waiting == 1
						o.mu.Unlock()
					}
					return nil
				})
				if err = errors.Join(err, <-waited); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		select {
		case err := <-done:
			s.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			s.mu.Unlock()
			t.Fatal("a call waits for the mutex of another key's shard")
		}
	}
}

// ctSameShard returns n keys of one shard of c.
func ctSameShard(c *Coordinator, n int) (keys []int) {
	var first *shard
	for i := 0; len(keys) < n; i++ {
		k := intKey(int64(i))
		if s := c.shardOf(k.hash()); first == nil || s == first {
			first = s
			keys = append(keys, i)
		}
	}
	return keys
}

// The entry of a key whose hold was lost serves another key while the old fn
// still runs and its context is still used. The old one must
// neither release nor see nor pass for the new one's hold.
//
// Rules 22, 27 and 34.
func TestField_E3_RecycledEntryServesAnotherKeyWhileAnOldHoldIsAround(t *testing.T) {
	nop := func(context.Context) error { return nil }
	for _, options := range []Options{{}, {TrackHolds: true}} {
		c := New(options)
		c.start()
		keys := ctSameShard(c, 2)
		a, b := keys[0], keys[1]
		ctx, client := c.WithClient(t.Context(), "w")
		var stale context.Context
		err := c.WithLock(context.WithoutCancel(ctx), a, func(ctx context.Context) error {
			stale = ctx
			old, _ := lineageOf(ctx)
			client.Close()
			err := c.WithLock(t.Context(), b, func(ctx context.Context) error {
				now, _ := lineageOf(ctx)
				if old.entry != now.entry {
					t.Fatal("the entry was not recycled; find another way to test this")
				}
				if _, ok := old.live(); ok {
					t.Error("the lost hold counts as live")
				}
				// A fresh client's call with the old lineage: nothing of it is held.
				mixed, other := c.WithClient(stale, "other")
				defer other.Close()
				for _, key := range []int{b, a} {
					err := c.WithLock(mixed, key, nop, Reentrant, IfAvailable)
					if got, want := err != nil, key == b; got != want {
						t.Errorf("key %d with the old lineage: %v", key, err)
					}
				}
				return c.WithLock(ctx, b, nop, Reentrant)
			})
			if err != nil {
				t.Error(err)
			}
			return c.WithLock(t.Context(), b, nop)
		})
		if err != ErrLost {
			t.Errorf("the old call returned %v, want ErrLost", err)
		}
		if err := CTLeft(c); err != nil {
			t.Error(err)
		}
	}
}

// The late release of a lost hold comes while the recycled entry is held for
// another key: that one stays held.
//
// Rules 27 and 34.
func TestLateReleaseLeavesTheRecycledEntryAlone(t *testing.T) {
	nop := func(context.Context) error { return nil }
	for _, options := range []Options{{}, {TrackHolds: true}} {
		c := New(options)
		c.start()
		keys := ctSameShard(c, 2)
		ctx, client := c.WithClient(context.Background(), "w")
		running, late, released := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			released <- c.WithLock(ctx, keys[0], func(context.Context) error {
				close(running)
				<-late
				return nil
			})
		}()
		<-running
		client.Close()
		err := c.WithLock(t.Context(), keys[1], func(context.Context) error {
			close(late)
			if err := <-released; err != ErrLost {
				t.Errorf("the old call returned %v, want ErrLost", err)
			}
			if c.WithLock(t.Context(), keys[1], nop, IfAvailable) == nil {
				t.Error("a late release released another key")
			}
			return c.WithLock(t.Context(), keys[0], nop)
		})
		if err != nil {
			t.Error(err)
		}
		if err := CTLeft(c); err != nil {
			t.Error(err)
		}
	}
}
