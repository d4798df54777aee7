package processlock

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"
)

// task is one call of Go or GoLocked. Until it starts it is in one of its
// group's lists, or it is owned: by the goroutine that works on it, outside all
// locks. What happens to it meanwhile waits until the owner lets go.
type task struct {
	group   *Group
	fn      func(context.Context) error
	number  int
	several *severalKeys // nil: one key at most
	key     Key          // the last asked for
	timer   *time.Timer  // of MaxWait, from the first wait on
	claim   claim        // of the key, or the first asked for of several

	// Guarded by group.mu.
	prev, next *task
	waits      bool // it is in group.waiting
	owned      bool
	news       bool // its claim was granted or ended since the owner looked
	late       bool // MaxWait has run out

	// apart is the owner's, which is a goroutine of the group, no caller's.
	apart bool
}

// severalKeys is what a task needs that asks for several keys, or with
// Reentrant, where what is there may be another's hold.
type severalKeys struct {
	settings // maxWait is what is left of it, once its time has stopped
	keys     []Key
	got      grants
	taken    []*hold // of got, without what was there
	claim    *claim  // the last asked for, if it isn't got yet
	timed    int64   // since when MaxWait's time runs

	all    atomic.Uint32
	exempt bool // from Shutdown, until it asks again
	queued bool // for one of keys, or asks again; so GoLocked has returned, or is about to
}

// name is that of the task's client.
func (t *task) name() string { return t.group.name + "-" + strconv.Itoa(t.number) }

// ask asks for the one key of t. Here and below, the caller owns t and gives it
// up.
func (t *task) ask(k Key, s settings) {
	a := attempt{call: t.group.base, own: &t.claim}
	a.settings = s
	t.key, t.claim.task = k, t
	g := grant{hold: &hold{Context: a.ctx}}
	switch queued, err := t.request(&a, k, &g); {
	case err != nil:
		t.refuse(err)
	case queued:
		t.settle()
	default:
		t.getReady()
	}
}

// askAll asks for keys one after the other.
func (t *task) askAll(keys []Key, s settings) {
	t.several = &severalKeys{keys: keys, settings: s}
	t.several.all.Store(stateTaken)
	if t.askOn() {
		t.settle()
	}
}

// askOn goes on with that until a key has to be waited for, and reports whether
// one has; if not, t has been given up.
func (t *task) askOn() (queued bool) {
	v := t.several
	for len(v.got.list) < len(v.keys) {
		k := v.keys[len(v.got.list)]
		t.key = k
		if len(v.got.list) > 0 && t.over() { // GoLocked has asked before the first
			t.drop()
			return false
		}
		if v.claim = &t.claim; v.claim.task != nil { // it is another key's
			v.claim = &claim{}
		}
		v.claim.task = t
		a := attempt{call: t.group.base, own: v.claim, all: &v.all, taken: v.taken}
		a.settings, a.exempt = v.settings, v.exempt
		g := grant{hold: &hold{Context: v.got.context(a.ctx)}}
		queued, err := t.request(&a, k, &g)
		v.exempt = a.exempt
		if err != nil {
			t.refuse(err)
			return false
		}
		if queued {
			v.queued = true
			return true
		}
		t.add(g)
	}
	t.getReady()
	return false
}

// add adds g to what t has got.
func (t *task) add(g grant) {
	v := t.several
	v.got.add(g, v.claim.sight)
	v.claim = nil
	if !g.reentrant {
		v.taken = append(v.taken, g.hold)
	}
}

// request makes one request and reports whether it waits.
func (t *task) request(a *attempt, k Key, g *grant) (queued bool, err error) {
	a.fn = funcAddr(t.fn)
	if a.coordinator.looked() {
		a.own.sight = t.sight(a, k)
		a.sight = a.own.sight
	}
	done := false
	defer t.unlessDone(&done) // it asks contexts, of the lineage and on a cycle, and calls hooks
	hash := k.hash()
	s := a.coordinator.shardOf(hash)
	w, err := a.ask(s, &k, hash, g)
	if w != nil && w.wait != nil {
		if err = w.wait.search(); err != nil {
			waits.remove(w.wait)
			s.count(&s.stats.deadlocks)
			w = nil
		} else {
			s.count(&s.stats.waited)
		}
	}
	if w != nil && a.maxWait > 0 && t.timer == nil {
		if v := t.several; v != nil {
			v.timed = clock()
		}
		t.timer = time.AfterFunc(a.maxWait, t.expire)
	}
	if w != nil {
		a.sight.waits()
	}
	done = true
	return w != nil, err
}

// over is the group's over.
func (t *task) over() bool {
	done := false
	defer t.unlessDone(&done)
	over := t.group.over()
	done = true
	return over
}

// unlessDone gives t up where user code has panicked or exited the goroutine.
func (t *task) unlessDone(done *bool) {
	if *done {
		return
	}
	if t.apart {
		goOn(recover())
	}
	switch v := t.several; {
	case t.apart, v != nil && v.queued: // no caller of GoLocked learns of it
		t.fail(&AcquireError{t.key, errUnwound})
	default:
		defer t.end(nil)
		t.giveUp(errUnwound)
	}
}

// sight returns that of t's request for k.
func (t *task) sight(a *attempt, k Key) *sight {
	s := a.call.sight(k)
	if s != nil {
		s.event.Client = t.name()
	}
	return s
}

// told is called when t's claim was granted or ended, under its shard's mutex.
// It reports whether anything will come of a grant.
func (t *task) told() bool {
	g := t.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.owned {
		t.news = true
		return !g.canceled
	}
	g.take(t)
	if t.complete() {
		g.enlist(t) // here and now: slots go to the first granted first
		return true
	}
	t.owned, t.apart, t.news = true, true, true // there is more to do than can be done here
	g.news.push(t)
	g.summon()
	return true
}

// current returns w's state, once t has been told of it: that is done in the
// critical section in which it changes. w may be nil.
func (w *claim) current() uint32 {
	if w == nil {
		return stateQueued
	}
	s := w.entry.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.state.Load()
}

// complete reports whether t has got all its keys with the one that it asked
// for last, which it need not wait for any more.
func (t *task) complete() bool {
	w := t.asked()
	if w.state.Load() != stateGranted {
		return false
	}
	v := t.several
	return v == nil || len(v.got.list)+1 == len(v.keys)
}

// collect adds the key asked for last, which was granted, to what t has got, or
// reports that Client.Close has taken it back.
func (t *task) collect() bool {
	w := t.asked()
	if w == nil {
		return true // granted on arrival, or no key
	}
	if w.wait != nil {
		waits.remove(w.wait)
	}
	if t.several == nil {
		return w.state.Load() == stateGranted
	}
	if !w.state.CompareAndSwap(stateGranted, stateTaken) {
		return false
	}
	w.entry.shard.recount(w)
	t.add(grant{hold: w.hold, claim: w})
	return true
}

// expire is called when MaxWait has run out.
func (t *task) expire() {
	g := t.group
	g.mu.Lock()
	t.late = true
	mine := t.waits
	if mine {
		g.take(t)
		t.owned, t.apart = true, true
	}
	g.mu.Unlock()
	if mine {
		t.settle()
	}
}

// settle does what has become due, until t waits on or has been given up.
func (t *task) settle() {
	for {
		late, canceled, left := t.letGo()
		if left {
			return
		}
		w := t.asked()
		st := w.current()
		switch {
		case st == stateEnded:
			t.refuse(t.group.closedReason())
			return
		case canceled:
			t.drop()
			return
		case st != stateQueued && t.complete():
			t.getReady()
			return
		case st != stateQueued:
			if !t.collect() {
				t.refuse(t.group.closedReason())
				return
			}
			if !t.askOn() {
				return
			}
		case late:
			s := w.entry.shard
			w.sight.lookBack(s, w)
			if s.leave(w) { // else the grant came first
				s.addWait(elapsed(w.since.Load(), clock()))
				s.count(&s.stats.unavailable)
				t.refuse(ErrWaitTimeout)
				return
			}
		}
	}
}

// letGo leaves t to whoever has news of it, if it waits, or tells what there is
// to do.
func (t *task) letGo() (late, canceled, left bool) {
	g := t.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.news || t.late || g.canceled {
		t.news = false
		return t.late, g.canceled, false
	}
	t.owned, t.waits = false, true
	g.waiting.push(t)
	return false, false, true
}

// asked returns the claim of the key asked for last, if there is one that is
// not among those got.
func (t *task) asked() *claim {
	if w := t.last(); w != nil && w.entry != nil {
		return w
	}
	return nil
}

// last returns the claim of the key asked for last, unless that is among those
// got.
func (t *task) last() *claim {
	if t.several != nil {
		return t.several.claim
	}
	return &t.claim
}
