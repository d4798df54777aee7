package main

import (
	"fmt"
	"strings"
)

// mutant is one small change. It is written as a text that has to be found in
// the file exactly once, so that a mutant that no longer fits the code says so
// instead of changing something else.
type mutant struct {
	file, name string
	old, new   string

	// equivalent says why no test can tell the mutant from the original.
	equivalent string
}

func (m mutant) apply(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("found %d times in %s: %q", n, m.file, m.old)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}

var mutants = []mutant{
	{file: "queue.go", name: "drop the hand-off", old: "func (e *entry) settle() {\n\te.grantNext()", new: "func (e *entry) settle() {"},
	{file: "queue.go", name: "grant from the back", old: "for w := c.queue.first; w != nil; w = c.queue.first {", new: "for w := c.queue.last; w != nil; w = c.queue.last {"},
	{file: "queue.go", name: "grant one shared only", old: "\t\tw.state.Store(stateGranted)\n\t\tw.port <- struct{}{}\n", new: "\t\tw.state.Store(stateGranted)\n\t\tw.port <- struct{}{}\n\t\treturn\n"},
	{file: "queue.go", name: "grant exclusive beside a holder", old: "if held && (w.mode == ModeExclusive || e.mode == ModeExclusive) {", new: "if held && e.mode == ModeExclusive {"},
	{file: "queue.go", name: "grant shared beside exclusive", old: "if held && (w.mode == ModeExclusive || e.mode == ModeExclusive) {", new: "if held && w.mode == ModeExclusive {"},
	{file: "queue.go", name: "let shared pass the queue", old: "return m == ModeShared && e.mode == ModeShared && (e.crowd == nil || e.crowd.waiting == 0)", new: "return m == ModeShared && e.mode == ModeShared"},
	{file: "queue.go", name: "admit shared beside exclusive", old: "return m == ModeShared && e.mode == ModeShared && (", new: "return m == ModeShared && ("},
	{file: "queue.go", name: "admit exclusive beside shared", old: "return m == ModeShared && e.mode == ModeShared && (", new: "return e.mode == ModeShared && ("},
	{file: "queue.go", name: "forget to remove a free entry", old: "\tif !e.held() {\n\t\te.shard.remove(e)\n\t}\n", new: ""},
	{file: "queue.go", name: "keep spares across a shared join", old: "\tc.dropSpares()\n\tc.gen++\n", new: "\tc.gen++\n"},
	{file: "queue.go", name: "pool claims made in bubbles", old: "\tif !w.bubbled {\n\t\tclaimPool.Put(w)\n\t}\n", new: "\tclaimPool.Put(w)\n"},
	{file: "queue.go", name: "take pooled claims in bubbles", old: "bubbled := t == t.Round(0)", new: "bubbled := false && t == t.Round(0)"},
	{file: "queue.go", name: "forget the mode of a grant", old: "e.mode, held = w.mode, true", new: "held = true"},
	{file: "queue.go", name: "forget the mode of a join", old: "\tc.holders.push(w)\n\te.mode = w.mode\n\te.shard.held++\n", new: "\tc.holders.push(w)\n\te.shard.held++\n"},
	{file: "queue.go", name: "forget to count a granted holder", old: "\t\te.mode, held = w.mode, true\n\t\te.shard.held++\n", new: "\t\te.mode, held = w.mode, true\n"},
	{file: "queue.go", name: "forget to count a waiter out", old: "\te.crowd.waiting--\n", new: ""},
	{file: "queue.go", name: "revoke a running claim as if it had not resumed", old: "\tw.state.Store(stateLost)\n\treturn true\n", new: "\tw.state.Store(stateLost)\n\treturn false\n"},
	{file: "queue.go", name: "push to the front of the queue", old: "\tw.prev = l.last\n\tif l.last == nil {\n\t\tl.first = w\n\t} else {\n\t\tl.last.next = w\n\t}\n\tl.last = w\n", new: "\tw.next = l.first\n\tif l.first == nil {\n\t\tl.last = w\n\t} else {\n\t\tl.first.prev = w\n\t}\n\tl.first = w\n"},
	{file: "queue.go", name: "leave the expelled without a successor", old: "\t\te.grantNext()\n\t}\n}\n\n// grantNext", new: "\t}\n}\n\n// grantNext"},

	{file: "wait.go", name: "skip the recheck of the context", old: "\terr = ended(a.ctx)\n\tif err == nil && canceled {", new: "\tif err == nil && canceled {"},
	{file: "wait.go", name: "leave without granting to the next", old: "\tw.entry.grantNext()\n\ts.report(held)\n\treturn true\n", new: "\ts.report(held)\n\treturn true\n"},
	{file: "wait.go", name: "keep a grant that was canceled", old: "\tif w.state.Load() == stateGranted {\n", new: "\tif w.state.Load() == stateGranted && w.port == nil {\n"},
	{file: "wait.go", name: "keep the token of a canceled grant", old: "\tselect { // a token that nobody waited for\n\tcase <-w.port:\n\tdefault:\n\t}\n", new: ""},
	{file: "wait.go", name: "let MaxWait win over the grant", old: "if timedOut = s.leave(w); !timedOut {", new: "timedOut = true\n\t\t\tif !s.leave(w) {"},
	{file: "wait.go", name: "let MaxWait bound one wait of All only", old: "\t\t\t\ta.timer.Reset(0)\n", new: ""},
	{file: "wait.go", name: "never stop the timer", old: "\t\ta.timer.Stop()\n", new: "\t\t_ = a.timer\n"},
	{file: "wait.go", name: "run though Close took the key back", old: "if !w.state.CompareAndSwap(stateGranted, a.resumed()) {", new: "if w.state.CompareAndSwap(stateGranted, a.resumed()); false {"},
	{file: "wait.go", name: "skip the deadlock search", old: "if err := w.wait.search(); err != nil {", new: "waits.mu.Unlock()\n\t\tif false {"},
	{file: "wait.go", name: "leave the graph entry of a granted request", old: "\tif w.wait != nil {\n\t\twaits.remove(w.wait)\n\t}\n\tg.claim = w\n", new: "\tg.claim = w\n"},
	{file: "wait.go", name: "leave the graph entry of a failed request", old: "\t\twaits.remove(w.wait) // while w still is what the graph takes it for\n", new: ""},
	{file: "wait.go", name: "forget the client of who leaves", old: "\tw.entry.dequeue(w)\n\tw.client.leave()\n\tw.state.Store(stateLeft)\n", new: "\tw.entry.dequeue(w)\n\tw.state.Store(stateLeft)\n"},
	{file: "wait.go", name: "don't clean up after a panic of the context", old: "\t\tif !resumed {\n\t\t\ts.withdraw(w, count)", new: "\t\tif !resumed && err != nil {\n\t\t\ts.withdraw(w, count)"},
	{file: "wait.go", name: "forget WaitDuration of ended waits", old: "\t\t\t\ts.addWait(elapsed(start, clock()))\n", new: ""},
	{file: "wait.go", name: "lose the context's reason when closed", old: "\tif err := ended(a.ctx); err != nil {\n\t\treturn err\n\t}\n\treturn ErrClosed\n", new: "\treturn ErrClosed\n"},

	{file: "acquire.go", name: "run under a done context", old: "\tif err := ended(q.ctx); err != nil {\n\t\treturn &AcquireError{k, err}\n\t}\n\tg := grant", new: "\tg := grant"},
	{file: "acquire.go", name: "take a closed shard's key", old: "if s.closed || s.held != 0", new: "if s.held != 0"},
	{file: "acquire.go", name: "take without looking", old: "s.held != 0 && s.find(k, hash) != nil ||", new: "s.held != 0 && s.find(k, hash) != nil && s.tabled > 0 ||"},
	{file: "acquire.go", name: "look past a closed client", old: "\tif a.client.closed() {\n\t\treturn isRefused, nil, ErrClosed\n\t}\n", new: ""},
	{file: "acquire.go", name: "exempt everybody from Shutdown", old: "if s.closed && !a.exempt {", new: "if s.closed && !a.exempt && a.hold == nil {"},
	{file: "acquire.go", name: "exempt nobody from Shutdown", old: "a.exempt, a.asked = a.coordinator.holdsAny(a.lineage), true", new: "a.exempt, a.asked = false, true"},
	{file: "acquire.go", name: "be reentrant without being asked", old: "if e != nil && a.reentrant {", new: "if e != nil {"},
	{file: "acquire.go", name: "upgrade a shared hold", old: "own != nil && (e.mode == ModeExclusive || a.mode == ModeShared)", new: "own != nil"},
	{file: "acquire.go", name: "wait though IfAvailable", old: "\tcase a.ifAvailable:\n\t\ts.stats.unavailable++\n\t\treturn isRefused, e, ErrUnavailable\n", new: ""},
	{file: "acquire.go", name: "wait for the own lineage", old: "case !a.passing && a.waitsForOwn(e):", new: "case false && a.waitsForOwn(e):"},
	{file: "acquire.go", name: "accuse readers behind writers about to leave", old: "if passes && allEnded(ahead) {", new: "if passes && allEnded(ahead) && false {"},
	{file: "acquire.go", name: "one waiter too many", old: "e.crowd.waiting >= most", new: "e.crowd.waiting > most"},
	{file: "acquire.go", name: "keep dead holds in the lineage", old: "if _, ok := h.live(); ok {", new: "if _, ok := h.live(); ok || true {"},
	{file: "acquire.go", name: "forget the holds of All in the graph", old: "slices.Concat(a.lineage, a.taken)", new: "slices.Clone(a.lineage)"},
	{file: "acquire.go", name: "count a request twice", old: "\te.join(w)\n\ts.taken++\n", new: "\te.join(w)\n\ts.taken += 2\n"},
	{file: "acquire.go", name: "forget since when with TrackHolds", old: "\t\tw.since.Store(clock())\n", new: ""},

	{file: "grant.go", name: "release the hold of somebody else", old: "\t\tif e.hold != h {\n\t\t\treturn false\n\t\t}\n", new: ""},
	{file: "grant.go", name: "release a lost claim", old: "st != stateRunning && st != stateTaken", new: "st == stateQueued"},
	{file: "grant.go", name: "release under a reentrant call", old: "\tif g.reentrant {\n\t\treturn e.heldBy(h)\n\t}\n", new: ""},
	{file: "grant.go", name: "don't tell that a hold was lost", old: "\tif !g.release() {\n\t\t*err = lost(*err)\n\t}\n", new: "\tg.release()\n"},
	{file: "grant.go", name: "wrap the sum of waits", old: "sum+min(d, math.MaxInt64-sum)", new: "sum+d"},
	{file: "grant.go", name: "leave Shutdown waiting", old: "\ts.report(held)\n\treturn true\n", new: "\t_ = held\n\treturn true\n"},

	{file: "all.go", name: "keep what was taken on failure", old: "\tfor i := len(gs.list) - 1; i >= 0; i-- {\n\t\tif !gs.list[i].release() {", new: "\tfor i := len(gs.list) - 1; i >= 0 && gs.running; i-- {\n\t\tif !gs.list[i].release() {"},
	{file: "all.go", name: "release in the order of the grants", old: "\tfor i := len(gs.list) - 1; i >= 0; i-- {\n\t\tif !gs.list[i].release() {", new: "\tfor i := range gs.list {\n\t\tif !gs.list[i].release() {"},
	{file: "all.go", name: "run though Close took a key back", old: "if !a.all.CompareAndSwap(stateTaken, stateRunning) {", new: "if !a.all.CompareAndSwap(stateTaken, stateRunning) && false {", equivalent: "shows only if Close falls into the some 100 ns between the last grant and the start of fn; the call returns ErrLost then, as if Close had come a moment later, and only Stats.Lost differs"},
	{file: "all.go", name: "don't look at the context between keys", old: "if i > 0 { // lockAll", new: "if false && i > 0 { // lockAll"},
	{file: "all.go", name: "report a loss though fn did not run", old: "if !all && gs.running {", new: "if !all {"},

	{file: "client.go", name: "close without ending the waits", old: "c.coordinator.shards[i].dropWaits(c)", new: "_ = c.coordinator.shards[i].dropWaits"},
	{file: "client.go", name: "close without handing on", old: "c.coordinator.shards[i].dropHolds(c)", new: "_ = c.coordinator.shards[i].dropHolds"},
	{file: "client.go", name: "close without ending the context", old: "\tc.cancel(ErrClosed)\n", new: ""},
	{file: "client.go", name: "close the coordinator's every row", old: "w.client == c })", new: "true })"},
	{file: "client.go", name: "walk the shards for an idle client", old: "\tif rows != 0 {\n", new: "\tif true {\n"},
	{file: "client.go", name: "never leave", old: "func (c *Client) leave() {\n\tif c != nil {\n\t\tc.rows.Add(-1)\n\t}\n", new: "func (c *Client) leave() {\n"},
	{file: "client.go", name: "let a closed client in", old: "\t\tc.rows.Add(-1)\n\t\treturn false\n", new: "\t\treturn true\n"},
	{file: "client.go", name: "don't settle what was dropped", old: "\t\te.settle()\n\t}\n\ts.report(held)\n", new: "\t\t_ = e\n\t}\n\ts.report(held)\n"},
	{file: "client.go", name: "leave the worker's client open", old: "\t\tdefer c.Close()\n", new: "\t\t_ = c\n"},

	{file: "lineage.go", name: "detach nothing", old: "\treturn s.with(scope{Context: ctx})\n}", new: "\t_ = s\n\treturn ctx\n}"},
	{file: "lineage.go", name: "lose the client in Detach", old: "\t\tif n.client == nil {\n\t\t\tn.client = s.client\n\t\t}\n", new: ""},
	{file: "coordinator.go", name: "lose the lineage in WithCoordinator", old: "scope{Context: ctx, coordinator: c, hold: h}", new: "scope{Context: ctx, coordinator: c, hold: func(*hold) *hold { return nil }(h)}"},
	{file: "coordinator.go", name: "accept a copy", old: "self != nil && self != c", new: "self != nil && self != c && false"},
	{file: "coordinator.go", name: "configure after use", old: "if c.self.Load() != nil {\n\t\tmisuse(\"Configure", new: "if false {\n\t\tmisuse(\"Configure"},

	{file: "deadlock.go", name: "believe a cycle without confirming it", old: "\t\tif !ok {\n\t\t\treturn false\n\t\t}\n", new: "\t\t_ = ok\n"},
	{file: "deadlock.go", name: "count waits that are over", old: "over[i] = n.wait.ended() || n.passes && allEnded(n.ahead)", new: "over[i] = n.wait == nil"},
	{file: "deadlock.go", name: "count readers behind writers about to leave", old: "n.wait.ended() || n.passes && allEnded(n.ahead)", new: "n.wait.ended()"},
	{file: "deadlock.go", name: "look one step only", old: "\t\t\t\t\treached = append(reached, next)\n", new: ""},
	{file: "deadlock.go", name: "look at the first holder only", old: "\t\tfor _, s := range steps {\n", new: "\t\tfor _, s := range steps[:min(1, len(steps))] {\n"},
	{file: "deadlock.go", name: "look at requests that wait no more", old: "\tif w.claim.state.Load() == stateQueued {\n\t\tfor s := range", new: "\tif true {\n\t\tfor s := range"},
	{file: "deadlock.go", name: "keep the map of the graph", old: "\tif len(g.under) == 0 {\n\t\tg.under = nil\n\t}\n", new: ""},
	{file: "deadlock.go", name: "keep the links of a wait that is gone", old: "w.gone, w.links = true, nil", new: "w.gone = true"},
	{file: "deadlock.go", name: "keep the way of a search", old: "\t\t\tr.from, r.via = nil, step{}\n", new: "\t\t\t_ = r\n"},
	{file: "deadlock.go", name: "ask contexts of calls that have returned", old: "\tif w.asked > 0 {\n", new: "\tif false {\n"},
	{file: "deadlock.go", name: "accuse over a client that is being closed", old: "\t\t\tif !s.client.closed() {\n", new: "\t\t\tif true {\n"},
	{file: "queue.go", name: "take claims of an earlier generation back", old: "case c != nil && c.gen == gen && c.spares < maxSpares:", new: "case c != nil && gen == gen && c.spares < maxSpares:"},
	{file: "table.go", name: "chain dropped entries", old: "s.free, drop.next = drop.next, nil", new: "s.free = drop.next"},
	{file: "client.go", name: "forget the rows if cancel panics", old: "\t\tdefer c.drop() // a hand-written parent may panic in cancel\n\t}\n\tc.cancel(ErrClosed)\n", new: "\t}\n\tc.cancel(ErrClosed)\n\tif rows != 0 {\n\t\tc.drop()\n\t}\n"},
	{file: "acquire.go", name: "count no call whose context panics", old: "\t\t\ts.count(&s.stats.canceled)\n", new: ""},

	{file: "shutdown.go", name: "shut down without ending waits", old: "return w.wait == nil || strangers[w.hold]", new: "return false"},
	{file: "shutdown.go", name: "end the waits of running fns", old: "return w.wait == nil || strangers[w.hold]", new: "return true"},
	{file: "shutdown.go", name: "spare who waits under another coordinator", old: "if h.entry.shard.coordinator == c {", new: "if true {"},
	{file: "shutdown.go", name: "admit after the last holder", old: "\t\tif n == 0 {\n\t\t\treturn false\n\t\t}\n", new: "\t\tif n == 0 {\n\t\t\treturn true\n\t\t}\n"},
	{file: "shutdown.go", name: "wait for itself", old: "\tif c.holdsAny(lineage) {\n", new: "\tif false {\n"},

	{file: "snapshot.go", name: "show claims that wait as running", old: "r.running = w.running(st)", new: "r.running = true"},
	{file: "snapshot.go", name: "sort nothing", old: "return a.Key.compare(b.Key)", new: "return 0"},

	{file: "table.go", name: "never shrink", old: "if len(s.buckets) > 8 && int(s.tabled) < len(s.buckets)/8 {", new: "if false {"},
	{file: "table.go", name: "keep every entry", old: "if s.spares < s.tabled+8 {", new: "if true {"},
	{file: "table.go", name: "compare hashes only", old: "return e.hash == hash && e.kind == k.kind && e.n == k.n && e.s == k.s", new: "return e.hash == hash && e.kind == k.kind"},
}
