package proof

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dbx-tools/processlock"
)

// subject is a lock whose histories are recorded.
type subject interface {
	lock(ctx context.Context, id int, shared, try bool, maxWait time.Duration, keys []string, fn func()) error
	// client makes a client for one request, and returns what closes it.
	client(ctx context.Context, id int) (context.Context, func())
	// rows shows the requests that hold and wait for each key.
	rows() map[string]lockRow
}

type lockRow struct{ holders, queue []int }

// recorder writes down a history. Its clock is a counter, so that no two moments
// are the same.
type recorder struct {
	subject
	maxWaiters int
	closes     bool // the subject has clients that can be closed
	clock      atomic.Int64
	ids        atomic.Int64
	modes      [128]atomic.Bool // by request: shared

	mu  sync.Mutex
	ops []porcupine.Operation
}

// maxRequests is what fits in a request's byte.
const maxRequests = 120

func (r *recorder) now() int64 { return r.clock.Add(1) }

func (r *recorder) record(from, to int64, in input) {
	in.maxWaiters = r.maxWaiters
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{Input: in, Call: from, Return: to})
}

// plan is what a request is to be.
type plan struct {
	keys            []string
	shared, try     bool
	maxWait         time.Duration
	deadline, close time.Duration // 0: never
	turns           int           // how often fn yields
	gate            chan struct{} // fn waits for it, if there is one
}

// run makes one request and records what it saw. arrived returns when the
// request was seen to have arrived, if that was before its fn ran.
func (r *recorder) run(id int, p plan, arrived func() int64) {
	ctx, closeClient := r.client(context.Background(), id)
	defer closeClient()
	if p.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.deadline)
		defer cancel()
	}
	r.modes[id].Store(p.shared)
	me := newRequest(id, p.shared)
	var robFrom, robTo int64
	var closing sync.WaitGroup
	if p.close > 0 {
		closing.Go(func() {
			time.Sleep(p.close)
			robFrom = r.now()
			closeClient()
			robTo = r.now()
		})
	}
	var entered, inside, left int64
	called := r.now()
	err := r.lock(ctx, id, p.shared, p.try, p.maxWait, p.keys, func() {
		entered = r.now()
		inside = r.now()
		for range p.turns {
			runtime.Gosched()
		}
		if p.gate != nil {
			<-p.gate
		}
		left = r.now()
	})
	returned := r.now()
	closing.Wait()
	for _, key := range p.keys {
		note := func(from, to int64, e event) { r.record(from, to, input{key: key, event: e, request: me}) }
		lost := errors.Is(err, processlock.ErrLost)
		switch {
		case p.try && err == nil:
			note(called, entered, evTried)
			note(entered, inside, evEnter)
			note(left, returned, evRelease)
		case err == nil || lost:
			seen := entered
			if at := arrived(); at > 0 {
				seen = min(at, entered)
			}
			note(called, seen, evArrive)
			if lost { // its hold may have gone before fn's first step
				note(called, inside, evEnter)
				note(robFrom, robTo, evRob)
			} else {
				note(entered, inside, evEnter)
				note(left, returned, evRelease)
			}
		case errors.Is(err, processlock.ErrQueueFull) && len(p.keys) == 1:
			note(called, returned, evFull)
		case errors.Is(err, processlock.ErrUnavailable) && p.try:
			note(called, returned, evRefused)
		case errors.Is(err, processlock.ErrWaitTimeout) && len(p.keys) == 1:
			note(called, returned, evArrive)
			note(called, returned, evTimeout)
		default:
			// It may never have arrived: arriving and leaving at one instant is
			// the same.
			note(called, returned, evArrive)
			note(called, returned, evLeave)
		}
	}
}

// look records every key's row.
func (r *recorder) look(keys []string) map[string]lockRow {
	from := r.now()
	rows := r.rows()
	to := r.now()
	for _, key := range keys {
		r.record(from, to, input{key: key, event: evLook, row: rowText(r.bytes(rows[key].holders), r.bytes(rows[key].queue))})
	}
	return rows
}

func (r *recorder) bytes(ids []int) (b []byte) {
	for _, id := range ids {
		b = append(b, byte(newRequest(id, r.modes[id].Load())))
	}
	return b
}

// storm records requests at random from several goroutines, while another looks
// on.
func (r *recorder) storm(rnd *rand.Rand, looks int) {
	keys := []string{"a", "b", "c"}[:1+rnd.IntN(3)]
	var wg sync.WaitGroup
	for range 3 + rnd.IntN(4) {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		wg.Go(func() {
			for range 1 + own.IntN(8) {
				if id := int(r.ids.Add(1)); id < maxRequests {
					r.run(id, r.plan(own, keys), func() int64 { return 0 })
				}
			}
		})
	}
	wg.Go(func() {
		for range looks {
			r.look(keys)
			runtime.Gosched()
		}
	})
	wg.Wait()
}

func (r *recorder) plan(rnd *rand.Rand, keys []string) plan {
	p := plan{keys: []string{keys[rnd.IntN(len(keys))]}, shared: rnd.IntN(5) < 2, turns: rnd.IntN(4)}
	soon := time.Duration(rnd.IntN(30)) * time.Microsecond
	switch rnd.IntN(12) {
	case 0, 1:
		p.try = true
	case 2:
		p.maxWait = soon + 1
	case 3:
		p.deadline = soon + 1
	case 4, 5:
		if r.closes {
			p.close = soon + 1
		}
	case 6:
		p.keys = slices.Clone(keys)
	}
	return p
}

// procession records requests that arrive one after the other while the key is
// held, each only once the one before is seen to wait. So their order is known
// without a look at any later row.
func (r *recorder) procession(rnd *rand.Rand) {
	keys := []string{"a"}
	var wg sync.WaitGroup
	gate := make(chan struct{})
	start := func(p plan) {
		id := int(r.ids.Add(1))
		var seen atomic.Int64
		var over atomic.Bool
		wg.Go(func() {
			defer over.Store(true)
			r.run(id, p, seen.Load)
		})
		for seen.Load() == 0 && !over.Load() {
			row := r.rows()["a"]
			if at := r.now(); slices.Contains(row.queue, id) || slices.Contains(row.holders, id) {
				seen.Store(at)
			}
			runtime.Gosched()
		}
	}
	start(plan{keys: keys, gate: gate})
	for range 3 + rnd.IntN(8) {
		start(plan{keys: keys, shared: rnd.IntN(2) == 0, turns: rnd.IntN(3)})
	}
	wg.Go(func() { // newcomers while the key is handed on
		for range 3 {
			r.run(int(r.ids.Add(1)), plan{keys: keys, shared: rnd.IntN(2) == 0, turns: 1}, func() int64 { return 0 })
		}
	})
	close(gate)
	wg.Wait()
}
