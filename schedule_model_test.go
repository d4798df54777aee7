package processlock_test

import "slices"

// scModel is a coordinator written to be obvious: keys with their holders and
// queues, calls by number, one thing after the other. That does as long as the
// program that is compared with it leaves nothing to chance, see scDriver.
type scModel struct {
	maxWaiters int
	now        int // in nanoseconds
	down       bool
	calls      []scCall
	keys       [scKeys]scKey
	stats      scStats
}

const scKeys = 3

type scKey struct{ holders, queue []int }

type scStats struct{ acquired, waited, canceled, unavailable, deadlocks, closed, lost int64 }

type scCall struct {
	keys                   []int // ascending
	shared, try, reentrant bool
	maxWait                int
	above                  []int // calls in whose fns it was made, innermost first

	next     int
	under    []int // for each key taken, the call that holds it
	exempt   bool  // from Shutdown
	state    string
	err      string // as scErr tells it
	deadline int    // of MaxWait; 0: none
}

func (m *scModel) holds(i, key int) bool { return slices.Contains(m.keys[key].holders, i) }

func (m *scModel) held() (n int) {
	for _, k := range m.keys {
		n += len(k.holders)
	}
	return n
}

// holding lists the keys that some of the calls hold.
func (m *scModel) holding(calls ...int) (keys []int) {
	for key := range m.keys {
		if slices.ContainsFunc(calls, func(i int) bool { return m.holds(i, key) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// proceed takes the keys that a call lacks, until it waits, runs or fails.
func (m *scModel) proceed(i int) {
	c := &m.calls[i]
	for c.next < len(c.keys) {
		if !m.take(i) {
			return
		}
		c.next++
	}
	c.state = "runs"
}

// take takes one key, or has the call wait or fail.
func (m *scModel) take(i int) bool {
	c := &m.calls[i]
	k := &m.keys[c.keys[c.next]]
	if m.down && !c.exempt {
		if c.exempt = len(m.holding(c.above...)) > 0; !c.exempt {
			return m.fail(i, "closed", nil)
		}
	}
	own := slices.IndexFunc(c.above, func(a int) bool { return slices.Contains(k.holders, a) })
	switch {
	case c.reentrant && own >= 0 && (c.shared || !m.calls[c.above[own]].shared):
		c.under = append(c.under, c.above[own])
		m.stats.acquired++
		return true
	case len(k.queue) == 0 && m.fits(i, k):
		k.holders = append(k.holders, i)
		c.under = append(c.under, i)
		m.stats.acquired++
		return true
	case c.try:
		return m.fail(i, "unavailable", &m.stats.unavailable)
	case own >= 0:
		return m.fail(i, "deadlock", &m.stats.deadlocks)
	case m.maxWaiters > 0 && len(k.queue) >= m.maxWaiters:
		return m.fail(i, "unavailable+full", &m.stats.unavailable)
	case m.stuck(i):
		return m.fail(i, "deadlock", &m.stats.deadlocks)
	}
	c.state = "waits"
	k.queue = append(k.queue, i)
	m.stats.waited++
	if c.maxWait > 0 && c.deadline == 0 {
		c.deadline = m.now + c.maxWait
	}
	return false
}

func (m *scModel) fits(i int, k *scKey) bool {
	return len(k.holders) == 0 || m.calls[i].shared && m.calls[k.holders[0]].shared
}

func (m *scModel) fail(i int, why string, count *int64) bool {
	m.calls[i].err = why
	if count != nil {
		*count++
	}
	m.release(i)
	return false
}

// release gives up what a call has, the last first, and reports whether all of
// it was still there.
func (m *scModel) release(i int) bool {
	c, all := &m.calls[i], true
	c.state = "over"
	for j, holder := range slices.Backward(c.under) {
		key := c.keys[j]
		if !m.holds(holder, key) {
			all = false
		} else if holder == i {
			m.drop(i, key)
		}
	}
	return all
}

// drop ends a hold.
func (m *scModel) drop(i, key int) {
	k := &m.keys[key]
	k.holders = slices.DeleteFunc(k.holders, func(h int) bool { return h == i })
	m.grantNext(key)
}

// leave takes a call out of its queue.
func (m *scModel) leave(i int) {
	c := &m.calls[i]
	k := &m.keys[c.keys[c.next]]
	k.queue = slices.DeleteFunc(k.queue, func(q int) bool { return q == i })
	m.grantNext(c.keys[c.next])
}

// grantNext grants what the front of the queue may have now. All of it is
// granted before any of it goes on.
func (m *scModel) grantNext(key int) {
	k, granted := &m.keys[key], []int{}
	for len(k.queue) > 0 && m.fits(k.queue[0], k) {
		granted = append(granted, k.queue[0])
		k.holders, k.queue = append(k.holders, k.queue[0]), k.queue[1:]
	}
	for _, i := range granted {
		m.stats.acquired++
		m.calls[i].under = append(m.calls[i].under, i)
		m.calls[i].next++
		m.proceed(i)
	}
}

// stuck reports whether a call would wait for ever: it queues, and then whoever
// waits for nothing, and has nobody under it who waits, finishes.
func (m *scModel) stuck(i int) bool {
	waits := make([]bool, len(m.calls))
	var keys [scKeys]scKey
	for key, k := range m.keys {
		keys[key] = scKey{slices.Clone(k.holders), slices.Clone(k.queue)}
	}
	wanted := m.calls[i].keys[m.calls[i].next]
	keys[wanted].queue = append(keys[wanted].queue, i)
	for progress := true; progress; {
		progress = false
		clear(waits)
		for _, k := range keys {
			for _, q := range k.queue {
				waits[q] = true
				for _, above := range m.calls[q].above {
					waits[above] = true
				}
			}
		}
		for key := range keys {
			k := &keys[key]
			before := len(k.holders)
			k.holders = slices.DeleteFunc(k.holders, func(h int) bool { return !waits[h] })
			progress = progress || len(k.holders) != before
			for len(k.queue) > 0 && m.fits(k.queue[0], k) {
				k.holders, k.queue = append(k.holders, k.queue[0]), k.queue[1:]
				progress = true
			}
		}
	}
	return slices.Contains(keys[wanted].queue, i)
}

// What may happen to a call from outside. Each follows what WithLock promises.

func (m *scModel) cancel(i int) {
	if m.calls[i].state == "waits" {
		m.leave(i)
		m.fail(i, "canceled", &m.stats.canceled)
	}
}

// closeClient closes the client of one call.
func (m *scModel) closeClient(i int) {
	switch c := &m.calls[i]; c.state {
	case "waits":
		m.leave(i)
		m.fail(i, "closed+canceled", &m.stats.closed)
	case "runs":
		for _, key := range m.holding(i) {
			m.stats.lost++
			m.drop(i, key)
		}
	}
}

// tick lets time pass, and ends the waits whose MaxWait runs out, one by one.
func (m *scModel) tick(d int) {
	end := m.now + d
	for {
		first := -1
		for i, c := range m.calls {
			if c.state == "waits" && c.deadline != 0 && c.deadline < end && (first < 0 || c.deadline < m.calls[first].deadline) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		m.now = m.calls[first].deadline
		m.leave(first)
		m.fail(first, "unavailable+timeout", &m.stats.unavailable)
	}
	m.now = end
}

// shutdown ends the waits that belong to no running fn: which these are is
// asked before any of them ends.
func (m *scModel) shutdown() {
	m.down = true
	var strangers [scKeys][]int
	for key, k := range m.keys {
		for _, q := range k.queue {
			if len(m.holding(m.calls[q].above...)) == 0 {
				strangers[key] = append(strangers[key], q)
			}
		}
	}
	for key := range m.keys {
		k := &m.keys[key]
		k.queue = slices.DeleteFunc(k.queue, func(q int) bool { return slices.Contains(strangers[key], q) })
		for _, i := range strangers[key] {
			m.fail(i, "closed", &m.stats.closed)
		}
		m.grantNext(key)
	}
}
