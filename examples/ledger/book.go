package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// posting is what a task does: the two entries of a transfer, or one.
type posting struct {
	line    int
	entries []entry
}

// entry adds to an account, or takes away.
type entry struct {
	account int
	cents   int64
}

// postings are what there is to do for in, in the order of the file.
func postings(in *input, by string) []posting {
	var ps []posting
	for _, t := range in.transfers {
		es := []entry{{t.from, -t.cents}, {t.to, t.cents}}
		if by == byAccount {
			ps = append(ps, posting{t.line, es[:1]}, posting{t.line, es[1:]})
		} else {
			ps = append(ps, posting{t.line, es})
		}
	}
	return ps
}

// store is the balances, and the lines whose entries each account has seen.
type store interface {
	balance(account int) int64
	write(account int, cents int64, line int)
	seen(account int) []int
}

// book is a store and those who post to it.
type book struct {
	store
	latency time.Duration

	posted     atomic.Int64
	running    atomic.Int64
	peak       atomic.Int64 // the most at one time
	goroutines atomic.Int64 // the most at one time, of the whole program
}

// post is right only if nobody else posts to these accounts between its reads
// and its writes. If the context ends meanwhile it writes nothing.
func (b *book) post(ctx context.Context, p posting) error {
	raise(&b.peak, b.running.Add(1))
	defer b.running.Add(-1)
	raise(&b.goroutines, int64(runtime.NumGoroutine()))

	var balances [2]int64
	for i, e := range p.entries {
		balances[i] = b.balance(e.account)
	}
	if err := b.roundTrip(ctx); err != nil {
		return err
	}
	for i, e := range p.entries {
		b.write(e.account, balances[i]+e.cents, p.line)
	}
	b.posted.Add(1)
	return nil
}

// roundTrip takes as long as a database would.
func (b *book) roundTrip(ctx context.Context) error {
	if b.latency == 0 {
		runtime.Gosched()
		return ctx.Err()
	}
	timer := time.NewTimer(b.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// raise sets m to n if that is more.
func raise(m *atomic.Int64, n int64) {
	for old := m.Load(); n > old && !m.CompareAndSwap(old, n); old = m.Load() {
	}
}

// guarded is a store for those who lock: nothing but an account's lock guards
// what it has of the account.
type guarded struct {
	cents []int64
	lines [][]int
}

func newGuarded(accounts int) *guarded {
	return &guarded{make([]int64, accounts), make([][]int, accounts)}
}

func (s *guarded) balance(account int) int64 { return s.cents[account] }
func (s *guarded) seen(account int) []int    { return s.lines[account] }

func (s *guarded) write(account int, cents int64, line int) {
	s.cents[account] = cents
	s.lines[account] = append(s.lines[account], line)
}

// unguarded is a store for those who don't: each read and each write is safe by
// itself, as in a database, and what lies between them is not.
type unguarded struct {
	cents []atomic.Int64
	mu    sync.Mutex
	lines [][]int // guarded by mu
}

func newUnguarded(accounts int) *unguarded {
	return &unguarded{cents: make([]atomic.Int64, accounts), lines: make([][]int, accounts)}
}

func (s *unguarded) balance(account int) int64 { return s.cents[account].Load() }

func (s *unguarded) write(account int, cents int64, line int) {
	s.cents[account].Store(cents)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[account] = append(s.lines[account], line)
}

func (s *unguarded) seen(account int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[account]
}
