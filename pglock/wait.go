package pglock

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dbx-tools/processlock"
)

// wait is a wait for a lock that another process has. It belongs to an entry and
// serves whoever is next there, or to the one claim of a WithConn. Its goroutine
// is there as long as it waits.
type wait struct {
	e     *entry
	claim *claim // nil: the entry's
	kick  chan struct{}

	ref   lockRef
	asked lockRef // by the last statement on sess
	key   processlock.Key
	give  *tenure // to be given up first
	sess  *session

	began    time.Time
	pause    time.Duration
	failures int  // sessions that ended under it, in a row
	counted  bool // claim: in Locker.keys
	yielded  bool // has just left its session to another
	retried  bool // after it was refused a session while others were idle
	detector detector
}

const (
	firstPause = 2 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// startWait starts a wait for c, or for the entry. Called under mu.
func (e *entry) startWait(c *claim, give *tenure) {
	w := &wait{e: e, claim: c, give: give, kick: make(chan struct{}, 1), ref: lockRef{id: e.id}, began: time.Now(), pause: firstPause}
	w.detector.entry = e
	if c == nil {
		e.waiting = true
	}
	e.waits = append(e.waits, w)
	w.aim()
	go w.run()
}

func (w *wait) nudge() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// aim looks for whom to wait, and in which mode. It reports false if there is
// nobody. Called under mu.
func (w *wait) aim() bool {
	e := w.e
	if w.claim != nil {
		w.ref.mode, w.key = w.claim.hold.ref.mode, w.claim.r.key
		return !w.claim.settled
	}
	if len(e.claims) > 0 {
		// Else the next to come is as likely to want it as the last was.
		w.ref.mode, w.key = e.claims[0].hold.ref.mode, e.claims[0].r.key
		return true
	}
	return e.pending > 0 && !e.inTheWay(&tenure{ref: w.ref})
}

func (w *wait) run() {
	l, e := w.e.l, w.e
	if w.give != nil && (w.claim != nil || w.give.sess.kind == kindHub || l.opts.Wait == Poll) {
		w.surrender()
	}
	for {
		l.mu.Lock()
		if !w.aim() {
			l.mu.Unlock()
			w.end(nil)
			return
		}
		if w.give != nil { // its session is the one to wait on
			w.sess = w.give.sess
			w.sess.letGo(w.give)
		}
		kind, force := kindWait, len(e.nested) > 0 || e.onHub()
		if force && l.full() { // who can do without polls, or waits for the hub to be free
			force = len(e.needy()) > 0
		}
		if w.claim != nil {
			// Others would hold the session for as long as their fn runs.
			kind, force = kindOwn, true
			if !w.counted && !l.hasRoom(e) {
				l.starving[w] = struct{}{}
				try := w.claim.try
				l.mu.Unlock()
				if try {
					w.end(errMaxKeys)
					return
				}
				w.rest(time.Second)
				continue
			}
			if !w.counted {
				w.counted = true
				l.keys++
			}
		}
		if w.sess == nil && (w.claim != nil || l.opts.Wait == Queue && !w.yielded || force) {
			w.sess = l.take(kind, force)
		}
		w.yielded = false
		if delete(l.poor, w); w.sess == nil && l.opts.Wait == Queue {
			l.poor[w] = struct{}{}
		}
		l.mu.Unlock()

		var over bool
		switch {
		case w.sess != nil && l.opts.Wait == Queue && (w.claim == nil || !w.claim.try):
			if over = w.slice(); !over {
				w.yield()
			}
		case w.sess != nil:
			over = w.ask()
			if !over {
				w.pauseOnce(l.opts.Slice)
			}
		default:
			w.pauseOnce(0)
			over = w.poll()
		}
		if over {
			return
		}
	}
}

// surrender gives up what this process holds of the lock, where that is not on
// the session to wait on.
func (w *wait) surrender() {
	answer := make(chan bool, 1)
	w.e.l.mu.Lock()
	w.give.sess.release(w.give, func(ok bool) { answer <- ok })
	w.e.l.mu.Unlock()
	<-answer
	w.give = nil
}

// yield leaves the session, whose place in the server's queue is gone with the
// slice, to a wait that has none. Who polls beside a process that always has
// somebody waiting would never have a turn.
func (w *wait) yield() {
	l := w.e.l
	l.mu.Lock()
	yields := w.sess != nil && w.claim == nil && len(l.poor) > 0 && len(w.e.nested) == 0 && !w.e.onHub()
	l.mu.Unlock()
	if !yields {
		return
	}
	w.sess.clean()
	w.sess, w.asked, w.yielded = nil, lockRef{}, true
	w.detector.forget()
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.poor {
		other.nudge()
		return
	}
}

// rest waits for d or a nudge.
func (w *wait) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.kick:
	}
}

// pauseOnce waits between two tries: longer each time, and by chance, so that
// the processes that poll don't do it in step.
func (w *wait) pauseOnce(most time.Duration) {
	limit := lastPause
	if most > 0 {
		limit = min(limit, most)
	}
	w.rest(w.pause/2 + rand.N(w.pause))
	w.pause = min(2*w.pause, limit)
}

// remove takes the wait out of its entry. Called under mu.
func (w *wait) remove() {
	w.e.waits = slices.DeleteFunc(w.e.waits, func(o *wait) bool { return o == w })
	delete(w.e.l.starving, w)
	delete(w.e.l.poor, w)
}

// won hands over what was waited for.
func (w *wait) won() {
	l, e := w.e.l, w.e
	l.mu.Lock()
	defer l.mu.Unlock()
	w.remove()
	if w.claim == nil {
		e.won(w.sess, w.ref)
		return
	}
	t := &tenure{e: e, sess: w.sess, ref: w.ref, since: time.Now(), turns: 1, own: true, over: make(chan struct{})}
	w.sess.hold(t)
	if t.lost {
		l.leaveRoom()
		e.startWait(w.claim, nil)
		return
	}
	if w.claim.settled {
		e.endOwn(t, nil)
		return
	}
	t.users = append(t.users, w.claim.hold)
	w.claim.hold.lease = t
	e.lent = append(e.lent, t)
	w.sess.lend(t)
	w.claim.settle(nil)
	e.progress()
}

// end ends the wait without the lock. A session on which a lock statement failed
// may hold the lock all the same.
func (w *wait) end(err error) {
	l, e := w.e.l, w.e
	if w.give != nil {
		w.surrender()
	} else if w.sess != nil {
		w.sess.clean()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.remove()
	if w.claim == nil {
		e.over(err)
		return
	}
	if !w.claim.settled {
		w.claim.settle(err)
	}
	e.own--
	if w.counted {
		l.leaveRoom()
	}
	e.progress()
}
