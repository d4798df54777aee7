package proof

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
)

// toy is a keyed lock of a few lines that can be broken on purpose: histories of
// it show that the checker tells right from wrong.
type toy struct {
	mu    sync.Mutex
	keys  map[string]*toyKey
	fault fault
}

type fault string

const (
	faultless        fault = "none"
	noExclusion      fault = "no exclusion"
	barging          fault = "a release frees the key and only later looks at the queue"
	lastComeFirst    fault = "last come first served"
	readerPasses     fault = "a reader passes a writer that waits"
	tryPasses        fault = "a try passes the queue"
	loneReaders      fault = "readers are granted one by one"
	lostWakeup       fault = "who leaves the queue wakes nobody"
	timeoutLeaksKey  fault = "a wait that timed out gives up the key that it was granted"
	writerAmongRead  fault = "a writer waits for one reader only"
	refusesWhenFree  fault = "a try is refused on a free key"
	cancelMovesQueue fault = "who leaves the queue puts the next one last"
)

type toyKey struct{ holders, queue []*toyRequest }

type toyRequest struct {
	id      int
	shared  bool
	granted chan struct{}
}

func newToy(f fault) *toy { return &toy{keys: make(map[string]*toyKey), fault: f} }

func (t *toy) client(ctx context.Context, _ int) (context.Context, func()) { return ctx, func() {} }

func (t *toy) lock(ctx context.Context, id int, shared, try bool, maxWait time.Duration, keys []string, fn func()) error {
	for _, key := range keys {
		r := &toyRequest{id: id, shared: shared, granted: make(chan struct{})}
		defer t.release(key, r)
		if err := t.acquire(ctx, key, r, try, maxWait); err != nil {
			return err // what was taken or granted is given up
		}
	}
	fn()
	return nil
}

func (t *toy) at(key string) *toyKey {
	k := t.keys[key]
	if k == nil {
		k = &toyKey{}
		t.keys[key] = k
	}
	return k
}

func (t *toy) fits(k *toyKey, r *toyRequest) bool {
	switch {
	case t.fault == noExclusion, len(k.holders) == 0:
		return true
	case t.fault == writerAmongRead && !r.shared:
		return len(k.holders) == 1 && k.holders[0].shared
	}
	return r.shared && k.holders[0].shared
}

func (t *toy) acquire(ctx context.Context, key string, r *toyRequest, try bool, maxWait time.Duration) error {
	t.mu.Lock()
	k := t.at(key)
	ahead := len(k.queue) > 0
	switch {
	case t.fault == readerPasses && r.shared, t.fault == tryPasses && try:
		ahead = false
	case t.fault == barging:
		ahead = ahead && len(k.holders) > 0
	case t.fault == refusesWhenFree:
		ahead = ahead || try && r.id%4 == 0
	}
	if !ahead && t.fits(k, r) {
		k.holders = append(k.holders, r)
		t.mu.Unlock()
		return nil
	}
	if try {
		t.mu.Unlock()
		return processlock.ErrUnavailable
	}
	k.queue = append(k.queue, r)
	t.mu.Unlock()

	var expired <-chan time.Time
	if maxWait > 0 {
		expired = time.After(maxWait)
	}
	why := error(nil)
	select {
	case <-r.granted:
		return nil
	case <-ctx.Done():
		why = ctx.Err()
	case <-expired:
		why = processlock.ErrWaitTimeout
		if t.fault == timeoutLeaksKey {
			time.Sleep(20 * time.Microsecond) // so that a grant has time to meet it
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(k.queue, r); i >= 0 {
		k.queue = slices.Delete(k.queue, i, i+1)
		if t.fault == cancelMovesQueue && len(k.queue) > 1 {
			k.queue = append(k.queue[1:], k.queue[0])
		}
		if t.fault != lostWakeup {
			t.settle(k)
		}
		return why
	}
	if why == processlock.ErrWaitTimeout && t.fault != timeoutLeaksKey {
		return nil // the grant came first
	}
	return why
}

// release ends a hold, if there is one.
func (t *toy) release(key string, r *toyRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.at(key)
	i := slices.Index(k.holders, r)
	if i < 0 {
		return
	}
	k.holders = slices.Delete(k.holders, i, i+1)
	if t.fault == barging {
		t.mu.Unlock()
		runtime.Gosched()
		t.mu.Lock()
	}
	t.settle(k)
}

func (t *toy) settle(k *toyKey) {
	for len(k.queue) > 0 {
		next := 0
		if t.fault == lastComeFirst {
			next = len(k.queue) - 1
		}
		r := k.queue[next]
		if !t.fits(k, r) || t.fault == loneReaders && len(k.holders) > 0 {
			return
		}
		k.queue = slices.Delete(k.queue, next, next+1)
		k.holders = append(k.holders, r)
		close(r.granted)
	}
}

func (t *toy) rows() map[string]lockRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make(map[string]lockRow)
	for key, k := range t.keys {
		var r lockRow
		for _, h := range k.holders {
			r.holders = append(r.holders, h.id)
		}
		for _, q := range k.queue {
			r.queue = append(r.queue, q.id)
		}
		rows[key] = r
	}
	return rows
}
