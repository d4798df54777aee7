package processlock

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// shardCount is a power of two. Shards share a mutex for the length of a table
// operation, never a lock.
const (
	shardBits  = 6
	shardCount = 1 << shardBits
)

// shard is one part of a coordinator's table: an intrusive hash table, chained
// by bucket. A key's lock inserts an entry and its release deletes it, so a Go
// map would pay for both, and would never shrink.
//
// Everything in it, and in its entries and their claims, is guarded by mu,
// except what is atomic. User code never runs under mu.
type shard struct {
	shardFields
	_ [(cacheLine - unsafe.Sizeof(shardFields{})%cacheLine) % cacheLine]byte
}

const cacheLine = 64

type shardFields struct {
	mu      sync.Mutex
	closed  bool     // Shutdown has passed here
	tabled  int32    // entries in buckets
	spares  int32    // entries in free
	held    int64    // rows of holders
	taken   int64    // requests granted on arrival, Reentrant too
	buckets []*entry // a power of two, or none

	// inline serves the only key of a shard, as nearly always there is one at
	// most: no allocation, no bucket, and its cache line is next to mu's.
	inline entry

	coordinator *Coordinator // set by Coordinator.start
	free        *entry       // chained by next
	freeCrowd   *crowd       // one, without claims
	freeClaims  *claim       // without ports, chained by next
	freeCount   int32
	stats       shardStats
}

// shardStats are a shard's counters besides held and taken.
type shardStats struct {
	waiting int64 // requests in a queue

	waited, unavailable, deadlocks, canceled, closed, lost int64

	// Counted by the waiter itself once it has resumed, without mu.
	resumed  atomic.Int64 // requests granted after a wait
	waitTime atomic.Int64 // nanoseconds, stays at the largest rather than wrap
}

// entry is a key that is held. It is in the table from the critical section in
// which it gets its first holder to the one in which it loses its last: whoever
// could be granted always is, so an entry without holders has no waiters
// either. Then it may serve another key of the same shard at once; shard never
// changes. The size is part of the promise on memory: 80 bytes and a bucket.
type entry struct {
	s string // the key's fields, flattened so that they take no padding
	n int64

	// The holder that came while the key was free, if it is still in. What
	// came any other way is a claim in crowd.
	hold   *hold
	client *Client
	fn     uintptr

	crowd *crowd // other holders, and the queue; nil while there were none
	hash  uint32
	kind  keyKind // keyInvalid: not in the table
	list  bool
	mode  Mode   // of all its holders
	next  *entry // in its bucket, or in free
	shard *shard
}

func (e *entry) key() Key { return Key{s: e.s, n: e.n, kind: e.kind, list: e.list} }

func (e *entry) is(k *Key, hash uint32) bool {
	return e.hash == hash && e.kind == k.kind && e.n == k.n && e.s == k.s
}

var hashSeed = maphash.MakeSeed()

var intSeed = [2]uint64{maphash.String(hashSeed, "a"), maphash.String(hashSeed, "b")}

// hash spreads keys over shards (its top bits) and buckets (its low 32). It is
// seeded, so that nobody can aim keys at one shard.
func (k *Key) hash() uint64 {
	if k.kind == keyInt {
		hi, lo := bits.Mul64(uint64(k.n)^intSeed[0], intSeed[1]|1)
		return hi ^ lo
	}
	return maphash.String(hashSeed, k.s)
}

func (c *Coordinator) shardOf(hash uint64) *shard { return &c.shards[hash>>(64-shardBits)] }

// clear makes e no key's entry.
func (e *entry) clear() { e.s, e.n, e.kind = "", 0, keyInvalid }

// find returns the entry of k, or nil.
func (s *shard) find(k *Key, hash uint64) *entry {
	h := uint32(hash)
	if s.inline.is(k, h) {
		return &s.inline
	}
	if s.tabled == 0 {
		return nil
	}
	e := s.buckets[h&uint32(len(s.buckets)-1)]
	for e != nil && !e.is(k, h) {
		e = e.next
	}
	return e
}

// insert makes the entry of k, which has none.
func (s *shard) insert(k *Key, hash uint64) *entry {
	e := &s.inline
	if e.kind != keyInvalid {
		if e = s.free; e != nil {
			s.free, e.next = e.next, nil
			s.spares--
		} else {
			e = &entry{shard: s}
		}
		if int(s.tabled) == len(s.buckets) {
			s.resize(max(8, 2*len(s.buckets)))
		}
		s.tabled++
		e.hash = uint32(hash)
		s.chain(e)
	}
	e.set(k, hash)
	return e
}

// set makes e the entry of k.
func (e *entry) set(k *Key, hash uint64) {
	e.s, e.n, e.kind, e.list, e.hash = k.s, k.n, k.kind, k.list, uint32(hash)
}

func (s *shard) chain(e *entry) {
	b := &s.buckets[e.hash&uint32(len(s.buckets)-1)]
	e.next, *b = *b, e
}

// remove takes e, which has neither holder nor waiter, out of the table.
func (s *shard) remove(e *entry) {
	e.clear()
	if e.crowd != nil {
		s.dismiss(e.crowd)
		e.crowd = nil
	}
	if e == &s.inline {
		return
	}
	p := &s.buckets[e.hash&uint32(len(s.buckets)-1)]
	for *p != e {
		p = &(*p).next
	}
	*p, e.next = e.next, nil
	s.tabled--
	// The table and the entries kept for reuse go down with what is in use, entry
	// by entry and halving by halving, so that no release pays for more of a burst
	// than a walk over its shard's buckets.
	if len(s.buckets) > 8 && int(s.tabled) < len(s.buckets)/8 {
		s.resize(len(s.buckets) / 2)
	}
	if s.spares < s.tabled+8 {
		e.next, s.free = s.free, e
		s.spares++
	} else if s.spares > s.tabled+8 {
		// Cut off, since a context that fn's caller kept may lead to it.
		drop := s.free
		s.free, drop.next = drop.next, nil
		s.spares--
	}
}

func (s *shard) resize(n int) {
	old := s.buckets
	s.buckets = make([]*entry, n)
	for _, e := range old {
		for e != nil {
			next := e.next
			s.chain(e)
			e = next
		}
	}
}

// count adds one to one of s.stats.
func (s *shard) count(n *int64) {
	s.mu.Lock()
	*n++
	s.mu.Unlock()
}

// entries yields all entries in no order. The loop must not insert or remove.
func (s *shard) entries(yield func(*entry) bool) {
	if s.inline.kind != keyInvalid && !yield(&s.inline) {
		return
	}
	for _, e := range s.buckets {
		for ; e != nil; e = e.next {
			if !yield(e) {
				return
			}
		}
	}
}
