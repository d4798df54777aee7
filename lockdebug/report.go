package lockdebug

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
)

// The bounds of a report. Who looks for a stuck key looks at the longest waits;
// the rest is counted, and found with the filter.
const (
	maxKeys   = 200  // keys listed
	maxPeople = 50   // holders, and waiters, listed of one key
	maxRows   = 2000 // holders and waiters after which no further key is listed
	maxHeld   = 10   // keys listed that a waiter holds
	maxName   = 120  // bytes of a client's name
	maxFunc   = 200  // bytes of a function's name
	maxFile   = 400  // bytes of a file's
	maxWhole  = 2000 // bytes of a canonical text
)

// report is what one look at a coordinator found. Every form is made from it,
// and its fields are the JSON form; the names are documented and fixed.
type report struct {
	Taken     time.Time `json:"taken"`
	Filter    string    `json:"filter"`
	Now       now       `json:"now"`
	Counters  counters  `json:"counters"`
	Matching  int       `json:"keys_matching"`
	KeysCut   int       `json:"keys_cut"`
	Keys      []keyRow  `json:"keys"`
	Chains    []*chain  `json:"chains"`
	ChainsCut int       `json:"chains_cut"`
}

// now is what the snapshot adds up to, over all keys, whatever the filter.
type now struct {
	Keys        int  `json:"keys"`
	WaitedFor   int  `json:"keys_waited_for"`
	Holders     int  `json:"holders"`
	Waiters     int  `json:"waiters"`
	LongestWait span `json:"longest_wait_seconds,omitzero"`
	LongestHold span `json:"longest_hold_seconds,omitzero"`

	// WaitKey and HoldKey are the keys with those, listed or not: nil for none.
	WaitKey *keyRef `json:"longest_wait_key,omitempty"`
	HoldKey *keyRef `json:"longest_hold_key,omitempty"`

	// Unknown counts the holders of which it isn't known since when.
	Unknown int `json:"holders_since_unknown"`

	waitedFor, held processlock.Key // the longest
}

// counters are Stats without what now has.
type counters struct {
	Acquired    int64 `json:"acquired"`
	Waited      int64 `json:"waited"`
	WaitTime    span  `json:"wait_seconds"`
	Canceled    int64 `json:"canceled"`
	Unavailable int64 `json:"unavailable"`
	Deadlocks   int64 `json:"deadlocks"`
	Closed      int64 `json:"closed"`
	Lost        int64 `json:"lost"`
}

// keyRef names a key. Keys may have the same Text, which is cut, but not the
// same ID, even if somebody tries: that needs 2^64 attempts.
type keyRef struct {
	Text string `json:"key"`
	ID   string `json:"id"`
}

func refOf(k processlock.Key) keyRef {
	sum := sha256.Sum256([]byte(k.Canonical()))
	return keyRef{k.String(), hex.EncodeToString(sum[:16])}
}

// Anchor is the fragment of the key's row.
func (r keyRef) Anchor() string { return "k" + r.ID }

// keyRow is one key that is held or waited for.
type keyRow struct {
	keyRef
	Whole       string   `json:"canonical,omitempty"` // if Text is cut
	WholeBytes  int      `json:"canonical_bytes,omitempty"`
	LongestWait span     `json:"longest_wait_seconds,omitzero"`
	Holders     []holder `json:"holders"`
	HoldersCut  int      `json:"holders_cut"`
	Waiters     []waiter `json:"waiters"`
	WaitersCut  int      `json:"waiters_cut"`
}

// Rest counts the waiters after the i'th.
func (k keyRow) Rest(i int) int { return len(k.Waiters) + k.WaitersCut - i }

// WaiterCount and HolderCount count those that are cut, too.
func (k keyRow) WaiterCount() int { return len(k.Waiters) + k.WaitersCut }
func (k keyRow) HolderCount() int { return len(k.Holders) + k.HoldersCut }

// listed reports whether a key has a row.
func (r *report) listed(ref keyRef) bool {
	return slices.ContainsFunc(r.Keys, func(k keyRow) bool { return k.keyRef == ref })
}

// newReport looks at c. Only keys whose text contains filter are listed.
func newReport(c *processlock.Coordinator, filter string) *report {
	stats, snap := c.Stats(), c.Snapshot()
	r := &report{
		Taken:    snap.Taken.UTC(),
		Filter:   filter,
		Counters: countersOf(stats),
		Keys:     []keyRow{},
	}
	lower := strings.ToLower(filter)
	states := make([]*lockState, len(snap.Locks))
	for i := range snap.Locks {
		states[i] = measure(&snap.Locks[i], snap.Taken)
		states[i].matching = matches(states[i].Key, lower)
		r.Now.add(states[i])
	}
	r.Now.name()
	// Stable, so that equals stay in order of their canonical texts.
	slices.SortStableFunc(states, func(a, b *lockState) int {
		if n := a.wait.compare(b.wait); n != 0 {
			return n
		}
		return a.hold.compare(b.hold)
	})
	r.addChains(states, snap.Taken)

	rows := 0
	for _, s := range states {
		if !s.matching {
			continue
		}
		r.Matching++
		if r.KeysCut > 0 || len(r.Keys) == maxKeys || rows >= maxRows {
			r.KeysCut++
			continue
		}
		k := s.row(snap.Taken)
		rows += len(k.Holders) + len(k.Waiters)
		r.Keys = append(r.Keys, k)
	}
	return r
}

func countersOf(s processlock.Stats) counters {
	return counters{
		Acquired: s.Acquired, Waited: s.Waited, WaitTime: spanOf(s.WaitDuration), Canceled: s.Canceled,
		Unavailable: s.Unavailable, Deadlocks: s.Deadlocks, Closed: s.Closed, Lost: s.Lost,
	}
}

// lockState is a key's state with its longest wait and hold.
type lockState struct {
	*processlock.LockState
	wait, hold span
	unknown    int  // holders of which it isn't known since when
	matching   bool // the filter
}

func measure(l *processlock.LockState, taken time.Time) *lockState {
	s := &lockState{LockState: l}
	for _, h := range l.Holders {
		held := since(h.Since, taken)
		if held.longer(s.hold) {
			s.hold = held
		}
		if !held.known {
			s.unknown++
		}
	}
	for _, w := range l.Waiters {
		if waited := since(w.Since, taken); waited.longer(s.wait) {
			s.wait = waited
		}
	}
	return s
}

func (n *now) add(s *lockState) {
	n.Keys++
	n.Holders += len(s.Holders)
	n.Waiters += len(s.Waiters)
	n.Unknown += s.unknown
	if len(s.Waiters) > 0 {
		n.WaitedFor++
	}
	if s.wait.longer(n.LongestWait) {
		n.LongestWait, n.waitedFor = s.wait, s.Key
	}
	if s.hold.longer(n.LongestHold) {
		n.LongestHold, n.held = s.hold, s.Key
	}
}

func (n *now) name() {
	if n.LongestWait.known {
		ref := refOf(n.waitedFor)
		n.WaitKey = &ref
	}
	if n.LongestHold.known {
		ref := refOf(n.held)
		n.HoldKey = &ref
	}
}

// matches reports whether the text of k, as shown or in full, contains filter,
// which is in lower case, in upper or lower case.
func matches(k processlock.Key, filter string) bool {
	if filter == "" {
		return true
	}
	shown := k.String()
	if strings.Contains(strings.ToLower(shown), filter) {
		return true
	}
	return strings.HasSuffix(shown, cutMark) && strings.Contains(strings.ToLower(k.Canonical()), filter)
}

// row lists s.
func (s *lockState) row(taken time.Time) keyRow {
	k := keyRow{keyRef: refOf(s.Key), LongestWait: s.wait, Holders: []holder{}, Waiters: []waiter{}}
	if strings.HasSuffix(k.Text, cutMark) {
		whole := s.Key.Canonical()
		k.Whole, k.WholeBytes = printable(whole, maxWhole), len(whole)
	}
	for _, h := range s.Holders[:min(len(s.Holders), maxPeople)] {
		k.Holders = append(k.Holders, holderOf(h, taken))
	}
	for i, w := range s.Waiters[:min(len(s.Waiters), maxPeople)] {
		k.Waiters = append(k.Waiters, waiterOf(w, i+1, taken))
	}
	k.HoldersCut = len(s.Holders) - len(k.Holders)
	k.WaitersCut = len(s.Waiters) - len(k.Waiters)
	return k
}

func writeJSON(w *bytes.Buffer, r *report, _ query) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
