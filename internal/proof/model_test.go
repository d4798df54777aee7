package proof

import "slices"

// This is the lock as one would explain it: calls, keys with holders and a
// queue, and plain data all of it. Calls, keys, contexts, clients and
// coordinators are numbers.
//
// What was asked for is known for certain (world). In which order the calls get
// to the locks is not, where several move at once; so a state says where they
// are, moves_test.go where they may get from there, and a program is in one of
// a set of states.

// world is what the program has asked for so far.
type world struct {
	keys       int // of each coordinator
	maxWaiters int
	track      bool
	now        int // in ticks

	asks     []ask
	contexts []lifetime
	clients  []int    // their coordinators
	names    []string // of the clients
	shuts    []shutAsk
	groups   []groupAsk
}

// ask is what a call asks for.
type ask struct {
	keys                   []int // in the order in which they are taken
	shared, try, reentrant bool
	maxWait                int   // in ticks; 0: no bound
	above                  []int // calls in whose fns it was made, innermost first
	context                int
	client                 int // the innermost of the coordinator asked; -1: none
	task                   *taskAsk
}

// lifetime is a context.
type lifetime struct {
	parent   int // whose end is this one's too; -1: none
	deadline int // 0: none
}

// shutAsk is a call of Shutdown.
type shutAsk struct {
	coordinator, context int
	above                []int
}

func (w *world) coordinator(key int) int { return key / w.keys }

// state is one of the states that the calls may be in.
type state struct {
	calls  []call
	rows   []row    // by key
	ends   []reason // by context; 0: it is not done
	cut    []reason // by context: what it is being canceled with
	closed []bool   // by client
	down   []bool   // by coordinator
	swept  []int    // calls that Shutdown is about to expel
	shuts  []shut
	groups []group
	stats  []stats // by coordinator
}

// row is a key.
type row struct {
	holders []holder
	queue   []int
}

type holder struct{ call, since int } // since -1: not known

type shut struct {
	over   bool
	result reason
}

type stats struct{ acquired, waited, canceled, unavailable, deadlocks, closed, lost, ticks int }

type phase byte

const (
	asking   phase = iota // about to look at keys[next], or to run if it has all
	waiting               // in the queue of keys[next]
	expelled              // was taken out of it, and doesn't know yet
	granted               // holds keys[next], and doesn't know yet
	ready                 // a task that has all its keys, and no slot
	starting              // a task that has a slot
	giving                // a task that gives back what it has taken, to ask again
	running
	ending // gives up what it has taken, the last first
	over
)

type call struct {
	phase    phase
	next     int
	under    []int // for each key taken, the call that holds it: itself or (Reentrant) one above
	told     outcome
	exempt   bool // from Shutdown
	doomed   bool // waits for a moment, since it will be told of a deadlock
	ran      bool
	asked    bool // a task that has asked for a key
	slot     bool // a task that has one
	again    int  // how often a task has asked again
	own      bool // and is about to, in the goroutine that has found it must
	owed     int  // slots of such goroutines
	deadline int  // of MaxWait, from the first wait on; 0: none
	left     int  // to deadline, when a task got its keys
	since    int  // of the wait
	result   reason
	refused  int // the key of a refusal
}

// outcome is how an fn is told to end.
type outcome byte

const (
	untold outcome = iota
	returnsNil
	returnsError
	panics
	exits
)

func (s state) clone() state {
	s.calls = slices.Clone(s.calls)
	for i := range s.calls {
		s.calls[i].under = slices.Clone(s.calls[i].under)
	}
	s.rows = slices.Clone(s.rows)
	for i, r := range s.rows {
		s.rows[i] = row{slices.Clone(r.holders), slices.Clone(r.queue)}
	}
	s.cut = slices.Clone(s.cut)
	s.ends, s.closed, s.down = slices.Clone(s.ends), slices.Clone(s.closed), slices.Clone(s.down)
	s.swept, s.shuts, s.stats = slices.Clone(s.swept), slices.Clone(s.shuts), slices.Clone(s.stats)
	s.groups = slices.Clone(s.groups)
	for i := range s.groups {
		s.groups[i].ready = slices.Clone(s.groups[i].ready)
	}
	return s
}

func (s *state) holds(call, key int) bool {
	return slices.ContainsFunc(s.rows[key].holders, func(h holder) bool { return h.call == call })
}

// held counts the holders of a coordinator.
func (w *world) held(s *state, coordinator int) (n int) {
	for key, r := range s.rows {
		if w.coordinator(key) == coordinator {
			n += len(r.holders)
		}
	}
	return n
}

// admits reports whether a call is granted key at once.
func (w *world) admits(s *state, call, key int) bool {
	r := s.rows[key]
	if len(r.queue) > 0 {
		return false
	}
	return len(r.holders) == 0 || w.asks[call].shared && w.asks[r.holders[0].call].shared
}

// grantNext grants what key's queue may have now.
func (w *world) grantNext(s *state, key int) {
	r := &s.rows[key]
	for len(r.queue) > 0 {
		first := r.queue[0]
		if len(r.holders) > 0 && (!w.asks[first].shared || !w.asks[r.holders[0].call].shared) {
			return
		}
		r.queue = r.queue[1:]
		r.holders = append(r.holders, holder{first, w.now})
		c := &s.calls[first]
		if w.asks[first].task != nil {
			w.grantTask(s, first)
			continue
		}
		c.phase = granted
		c.under = append(c.under, first)
		w.settleSearch(s, first)
	}
}

// settleSearch notes that a wait is none that ends as a deadlock.
func (w *world) settleSearch(s *state, call int) {
	if c := &s.calls[call]; c.doomed {
		c.doomed = false
		w.statsOf(s, call).waited++
	}
}

func (w *world) statsOf(s *state, call int) *stats {
	return &s.stats[w.coordinator(w.asks[call].keys[0])]
}

// drop ends a hold.
func (w *world) drop(s *state, call, key int) {
	r := &s.rows[key]
	r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return h.call == call })
	w.grantNext(s, key)
}

// leave takes the calls out of key's queue.
func (w *world) leave(s *state, key int, calls ...int) {
	r := &s.rows[key]
	r.queue = slices.DeleteFunc(r.queue, func(q int) bool { return slices.Contains(calls, q) })
	w.grantNext(s, key)
}

// wants is the key that a call is about to take or waits for.
func (w *world) wants(s *state, call int) int { return w.asks[call].keys[s.calls[call].next] }

// ownIn is the innermost call above that holds key, or -1.
func (w *world) ownIn(s *state, call, key int) int {
	for _, above := range w.asks[call].above {
		if s.holds(above, key) {
			return above
		}
	}
	return -1
}

// holding lists what a call, and those above it, hold.
func (w *world) holding(s *state, call int) (keys []int) {
	for key := range s.rows {
		if s.holds(call, key) || w.ownIn(s, call, key) >= 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// belongs reports whether one of the calls holds a key of coordinator.
func (w *world) belongs(s *state, calls []int, coordinator int) bool {
	for key := range s.rows {
		for _, c := range calls {
			if w.coordinator(key) == coordinator && s.holds(c, key) {
				return true
			}
		}
	}
	return false
}
