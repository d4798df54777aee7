package pglock

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
)

// Deadlocks between processes. Each nested lock is held by another session than
// the one that waits, so the server sees no cycle. Therefore a request that holds
// something and must wait publishes what it holds: its waiting session takes,
// shared, locks whose ids are hashes of what is held and of what is wanted. Whoever
// waits for what is held finds by the hash, in pg_locks, which session its holder
// waits on, and for what, and so on. Only those who wait for more than a second look.
//
// A wait serves all requests of its entry, so it publishes for all of them, and
// for those that wait in this process for what they hold: none of it will be
// released before this wait ends.

const (
	firstLook = time.Second
	nextLooks = 2 * time.Second
	// nestedSlice is the longest slice of a wait that may have to look.
	nestedSlice = 500 * time.Millisecond
)

// detector is what a wait knows of the cycles that it may be on.
type detector struct {
	entry     *entry
	published []int64              // locks that stand for what is held
	roots     map[lockRef]*request // of what is held, the request here that waits
	lookAt    time.Duration
	seen      string // the cycle at the last look
	again     bool   // the next look is the second of a pair
}

// marker is the id of the lock that stands for r in one of two roles.
func (r lockRef) marker(role string) int64 {
	sum := sha256.Sum256([]byte("processlock " + role + "\x00" + r.mode.String() + strconv.FormatInt(r.id, 10)))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// forget notes that the session holds no markers, or is another.
func (d *detector) forget() { d.published, d.roots = nil, nil }

// keeping returns what the requests that wait for e hold, with the one of them
// that waits. Called under mu.
func (e *entry) keeping() map[lockRef]*request {
	if len(e.nested) == 0 {
		return nil
	}
	roots := make(map[lockRef]*request)
	type step struct{ r, root *request }
	var steps []step
	for r := range e.nested {
		steps = append(steps, step{r, r})
	}
	for len(steps) > 0 {
		s := steps[0]
		steps = steps[1:]
		for h := range s.r.outer.lineage {
			if h.l.target != e.l.target {
				continue // of a database that e's can't know of
			}
			if _, ok := roots[h.ref]; ok {
				continue
			}
			roots[h.ref] = s.root
			if h.l != e.l {
				continue
			}
			if o := e.l.entries[h.ref.id]; o != nil {
				for r := range o.nested {
					steps = append(steps, step{r, s.root})
				}
			}
		}
	}
	return roots
}

// publish returns the statements that bring what the session has published up to
// date. A hold that ended meanwhile is no reason to wait for anybody.
func (d *detector) publish(want lockRef) string {
	l := d.entry.l
	l.mu.Lock()
	d.roots = d.entry.keeping()
	l.mu.Unlock()
	var now []int64
	for r := range d.roots {
		now = append(now, r.marker("holds"))
	}
	if len(now) > 0 {
		// Between slices, where processes that began to wait together look
		// together, the wait itself doesn't show, and with Poll it never does.
		now = append(now, want.marker("wants"))
	}
	slices.Sort(now)
	if slices.Equal(now, d.published) {
		return ""
	}
	var q strings.Builder
	for _, id := range d.published {
		if !slices.Contains(now, id) {
			q.WriteString("select " + lockRef{id, processlock.ModeShared}.unlock() + "; ")
		}
	}
	for _, id := range now {
		if !slices.Contains(d.published, id) {
			q.WriteString("select " + lockRef{id, processlock.ModeShared}.try() + "; ")
		}
	}
	d.published = now
	return q.String()
}

// due returns the query that looks for a cycle, if it is time for one.
func (d *detector) due(waited time.Duration) string {
	switch {
	case len(d.roots) == 0: // the next who holds something begins anew
		d.lookAt, d.seen, d.again = 0, "", false
		return ""
	case d.lookAt == 0:
		// One who came to a wait that is old is not published yet.
		d.lookAt = waited + firstLook
		return ""
	case waited < d.lookAt:
		return ""
	}
	d.again = !d.again
	if d.again {
		d.lookAt = waited + min(d.entry.l.opts.Slice, nestedSlice)/2 // by then the next statement is on
	} else {
		d.lookAt = waited + nextLooks
	}
	return "with l as materialized (select pid, (classid::int8 << 32) | objid::int8 as id, mode, granted from pg_catalog.pg_locks" +
		" where locktype = 'advisory' and objsubid = 1 and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()))" +
		" select pid, id, mode, granted from l"
}

// sight is what pg_locks shows of waits and of what is published.
type sight struct {
	wants     map[int64]lockRef // by the waiting process of the server
	published map[int64][]int64 // by the marker
}

func read(rows [][]string) sight {
	s := sight{make(map[int64]lockRef), make(map[int64][]int64)}
	ids := make(map[int64]bool)
	type grant struct {
		pid int64
		ref lockRef
	}
	granted := make(map[grant]bool)
	for _, row := range rows {
		pid, err := strconv.ParseInt(row[0], 10, 64)
		id, err2 := strconv.ParseInt(row[1], 10, 64)
		if err != nil || err2 != nil {
			continue
		}
		ref := lockRef{id: id}
		if row[2] == "ShareLock" {
			ref.mode = processlock.ModeShared
		}
		ids[id] = true
		granted[grant{pid, ref}] = row[3] != "f"
		switch {
		case row[3] == "f":
			s.wants[pid] = ref
		case ref.mode == processlock.ModeShared:
			s.published[id] = append(s.published[id], pid)
		}
	}
	for id := range ids {
		for _, mode := range []processlock.Mode{processlock.ModeExclusive, processlock.ModeShared} {
			ref := lockRef{id, mode}
			for _, pid := range s.published[ref.marker("wants")] {
				// Who has what was wanted publishes on until the release, perhaps in
				// the turn of one who holds nothing of it.
				if !granted[grant{pid, ref}] {
					s.wants[pid] = ref
				}
			}
		}
	}
	return s
}

// hop is a step of a cycle: what is wanted, how it is held, and by whom.
type hop struct {
	want  int64
	held  lockRef
	owner int64
	from  int // index of the hop before, or -1
}

// cycle returns a shortest cycle through the server's process self, which wants
// ref, on which self is the highest: of each cycle one process gives up.
func (s sight) cycle(self int64, ref lockRef) []hop {
	s.wants[self] = ref
	hops := []hop{}
	seen := map[int64]bool{}
	expand := func(pid int64, from int) (end int) {
		want := s.wants[pid]
		for _, mode := range []processlock.Mode{processlock.ModeExclusive, processlock.ModeShared} {
			if mode == processlock.ModeShared && want.mode == processlock.ModeShared {
				continue
			}
			held := lockRef{want.id, mode}
			owners := slices.Clone(s.published[held.marker("holds")])
			slices.Sort(owners)
			for _, owner := range owners {
				if _, waits := s.wants[owner]; owner > self || seen[owner] || !waits {
					continue
				}
				seen[owner] = true
				hops = append(hops, hop{want.id, held, owner, from})
				if owner == self {
					return len(hops) - 1
				}
			}
		}
		return -1
	}
	end := expand(self, -1)
	for i := 0; i < len(hops) && end < 0; i++ {
		end = expand(hops[i].owner, i)
	}
	if end < 0 {
		return nil
	}
	var way []hop
	for i := end; i >= 0; i = hops[i].from {
		h := hops[i]
		h.from = 0 // it depends on what else there is to see
		way = append(way, h)
	}
	slices.Reverse(way)
	return way
}

// look reads what a look has brought. A cycle that is there at two looks, a slice
// apart, is a deadlock: between them all that was published was brought up to
// date.
func (d *detector) look(self int64, want lockRef, r reply) {
	if r.err != nil {
		return
	}
	way := read(r.rows).cycle(self, want)
	if way == nil {
		d.seen = ""
		return
	}
	seen := fmt.Sprint(way)
	if d.again || seen != d.seen {
		d.seen = seen
		return
	}
	d.refuse(way)
}

// refuse fails the request that waits here and whose lineage is on the cycle.
func (d *detector) refuse(way []hop) {
	l, e := d.entry.l, d.entry
	last := way[len(way)-1].held
	l.mu.Lock()
	r := d.roots[last]
	if r == nil || !r.pending || e.keeping()[last] == nil {
		l.mu.Unlock()
		return
	}
	err := &deadlockError{&processlock.DeadlockError{}, make(map[processlock.Key]int64)}
	for _, h := range way {
		w := processlock.Wait{Key: processlock.MustKey(localKey(h.held.id)), Mode: h.held.mode, Client: "backend/" + strconv.FormatInt(h.owner, 10)}
		if own := r.holding(h.held.id); own != nil {
			w = own.wait()
		}
		if h.want == r.ref.id {
			w.Key = r.key
		}
		err.Cycle = append(err.Cycle, w)
		err.ids[w.Key] = h.held.id
	}
	end := r.refuse(err)
	l.mu.Unlock()
	end()
}
