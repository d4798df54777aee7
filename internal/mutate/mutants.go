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
	{file: "queue.go", name: "grant one shared only", old: "\t\t\tw.port <- struct{}{}\n\t\t}\n\t}\n}\n\n// tell", new: "\t\t\tw.port <- struct{}{}\n\t\t}\n\t\treturn\n\t}\n}\n\n// tell"},
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
	{file: "wait.go", name: "don't clean up after a panic of the context", old: "\t\tif !resumed {\n", new: "\t\tif !resumed && err != nil {\n"},
	{file: "wait.go", name: "forget WaitDuration of ended waits", old: "\t\t\t\ts.addWait(elapsed(start, now))\n", new: ""},
	{file: "wait.go", name: "lose the context's reason when closed", old: "\tif err := ended(a.ctx); err != nil {\n\t\treturn err\n\t}\n\treturn ErrClosed\n", new: "\treturn ErrClosed\n"},

	{file: "acquire.go", name: "run under a done context", old: "\tif err := ended(q.ctx); err != nil {\n\t\treturn &AcquireError{k, err}\n\t}\n\tif q.coordinator.looked", new: "\tif q.coordinator.looked"},
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
	{file: "grant.go", name: "don't tell that a hold was lost", old: "\tif !g.release(nil) {\n\t\t*err = lost(*err)\n\t}\n", new: "\tg.release(nil)\n"},
	{file: "grant.go", name: "don't tell that a watched hold was lost", old: "\tif !g.release(t) {\n\t\t*err = lost(*err)\n\t}\n", new: "\tg.release(t)\n"},
	{file: "grant.go", name: "wrap the sum of waits", old: "sum+min(d, math.MaxInt64-sum)", new: "sum+d"},
	{file: "grant.go", name: "leave Shutdown waiting", old: "\ts.report(held)\n\treturn true\n", new: "\t_ = held\n\treturn true\n"},

	{file: "all.go", name: "keep what was taken on failure", old: "\tfor i := len(gs.list) - 1; i >= 0; i-- {\n\t\tif !gs.list[i].release(gs.sight(i)) {", new: "\tfor i := len(gs.list) - 1; i >= 0 && gs.running; i-- {\n\t\tif !gs.list[i].release(gs.sight(i)) {"},
	{file: "all.go", name: "release in the order of the grants", old: "\tfor i := len(gs.list) - 1; i >= 0; i-- {\n\t\tif !gs.list[i].release(gs.sight(i)) {", new: "\tfor i := range gs.list {\n\t\tif !gs.list[i].release(gs.sight(i)) {"},
	{file: "all.go", name: "run though Close took a key back", old: "if !a.all.CompareAndSwap(stateTaken, stateRunning) {", new: "if !a.all.CompareAndSwap(stateTaken, stateRunning) && false {"},
	{file: "all.go", name: "don't look at the context between keys", old: "if i > 0 { // lockAll", new: "if false && i > 0 { // lockAll"},
	{file: "all.go", name: "report a loss though fn did not run", old: "if !all && gs.running {", new: "if !all {"},

	{file: "client.go", name: "close without ending the waits", old: "c.coordinator.shards[i].dropWaits(c)", new: "_ = c.coordinator.shards[i].dropWaits"},
	{file: "client.go", name: "close without handing on", old: "lost = c.coordinator.shards[i].dropHolds(c, lost)", new: "_ = c.coordinator.shards[i].dropHolds"},
	{file: "client.go", name: "close without ending the context", old: "\tc.cancel(ErrClosed)\n", new: ""},
	{file: "client.go", name: "close the coordinator's every row", old: "w.client == c })", new: "true })"},
	{file: "client.go", name: "walk the shards for an idle client", old: "\tif rows != 0 {\n", new: "\tif true {\n"},
	{file: "client.go", name: "never leave", old: "func (c *Client) leave() {\n\tif c != nil {\n\t\tc.rows.Add(-1)\n\t}\n", new: "func (c *Client) leave() {\n"},
	{file: "client.go", name: "let a closed client in", old: "\t\tc.rows.Add(-1)\n\t\treturn false\n", new: "\t\treturn true\n"},
	{file: "client.go", name: "don't settle what was dropped", old: "\t\te.settle()\n\t}\n\ts.report(held)\n", new: "\t\t_ = e\n\t}\n\ts.report(held)\n"},
	{file: "client.go", name: "leave the worker's client open", old: "\t\tdefer c.Close()\n", new: "\t\t_ = c\n"},

	{file: "lineage.go", name: "detach nothing", old: "\td := s.with(scope{Context: ctx})\n", new: "\tif true {\n\t\treturn ctx\n\t}\n\td := s.with(scope{Context: ctx})\n"},
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

	{file: "sight.go", name: "count the wait of a deadlock", old: "\tif t.waiting {\n\t\te.Waited", new: "\tif t.start != 0 {\n\t\te.Waited"},
	{file: "sight.go", name: "tell the release of a lost hold", old: "if t == nil || t.lost {", new: "if t == nil {"},
	{file: "sight.go", name: "tell nobody of a wait that a panic ends", old: "\t\tif unwound {\n", new: "\t\tif unwound && a == nil {\n"},
	{file: "sight.go", name: "forget the wait at the release", old: "e.Waited, e.Held = t.waited, sinceThen(t.since, end)", new: "e.Held = sinceThen(t.since, end)"},
	{file: "hooks.go", name: "let a hook's panic keep others from it", old: "\t\tdefer tell(hooks[1:], kind, e)\n\t}\n", new: "\t\ttell(hooks[1:], kind, e)\n\t}\n"},
	{file: "hooks.go", name: "look for hooks that are all nil", old: "\tif !h.any() {\n\t\treturn func() {}\n\t}\n", new: ""},
	{file: "hooks.go", name: "go on looking when all hooks are gone", old: "c.observer.Store(o.orNil())", new: "c.observer.Store(&o)"},
	{file: "grant.go", name: "call what All gives back lost", old: "t.lost, t.view = st == stateLost, view{warned: w.slow}", new: "t.lost, t.view = true, view{warned: w.slow}"},
	{file: "client.go", name: "lose holds unseen", old: "\t\t\t\t\t\tlost = append(lost, w.sight.lose(w, clock()))\n", new: ""},
	{file: "wait.go", name: "put MaxWait off by a hook", old: "\tdone, expired := a.ctx.Done(), a.expired() // hooks don't put MaxWait off\n\tif a.sight != nil {\n\t\ta.sight.waits()\n", new: "\tif a.sight != nil {\n\t\ta.sight.waits()\n\t}\n\tdone, expired := a.ctx.Done(), a.expired()\n\tif a.sight != nil {\n"},
	{file: "wait.go", name: "judge no hold when MaxWait runs out", old: "\t\t\ta.sight.lookBack(s, w)\n\t\t\tif timedOut", new: "\t\t\tif timedOut"},
	{file: "wait.go", name: "judge no hold when giving up", old: "\t\t\ta.sight.lookBack(s, w)\n\t\t\ts.withdraw", new: "\t\t\ts.withdraw"},
	{file: "wait.go", name: "trace no wait", old: "\t\tregion = a.sight.region(waitRegion)\n", new: ""},
	{file: "acquire.go", name: "trace no hold", old: "\tdefer endRegion(t.region(holdRegion))\n", new: ""},
	{file: "acquire.go", name: "judge no hold on arrival", old: "\t\ta.sight.look(e)\n", new: ""},
	{file: "slow.go", name: "warn of a hold more than once", old: "\t\t\tw.slow = true\n", new: ""},
	{file: "slow.go", name: "warn of a hold that others have warned of", old: " || v.warned {", new: " {"},
	{file: "slow.go", name: "judge no hold of All that waits for more", old: "st != stateRunning && st != stateTaken &&", new: "st != stateRunning &&"},
	{file: "slow.go", name: "judge no hold that waits for a slot", old: "st != stateTaken && !w.noted {", new: "st != stateTaken {"},
	{file: "slow.go", name: "take a wait for a slot for one for a key", old: "w.noted { // it has waited", new: "false { // it has waited"},
	{file: "slow.go", name: "be just in time and slow", old: "held >= limit", new: "held > limit"},
	{file: "queue.go", name: "keep a warning for the next holder", old: "\tw.sight, w.slow = nil, false\n", new: "\tw.sight = nil\n"},
	{file: "queue.go", name: "keep who looked", old: "\tw.sight, w.slow = nil, false\n", new: "\tw.slow = false\n"},

	{file: "shutdown.go", name: "shut down without ending waits", old: "return w.wait == nil || strangers[w.hold]", new: "return false"},
	{file: "shutdown.go", name: "end the waits of running fns", old: "return w.wait == nil || strangers[w.hold]", new: "return true"},
	{file: "shutdown.go", name: "spare who waits under another coordinator", old: "if h.entry.shard.coordinator == c {", new: "if true {"},
	{file: "shutdown.go", name: "admit after the last holder", old: "\t\tif n == 0 {\n\t\t\treturn false\n\t\t}\n", new: "\t\tif n == 0 {\n\t\t\treturn true\n\t\t}\n"},
	{file: "shutdown.go", name: "wait for itself", old: "\tif c.holdsAny(lineage) {\n", new: "\tif false {\n"},

	{file: "snapshot.go", name: "show claims that wait as running", old: "r.running = w.running(st)", new: "r.running = true"},
	{file: "snapshot.go", name: "sort nothing", old: "return a.key.compareTo(b.key, a.head, b.head)", new: "return 0"},

	{file: "table.go", name: "never shrink", old: "if len(s.buckets) > 8 && int(s.tabled) < len(s.buckets)/8 {", new: "if false {"},
	{file: "table.go", name: "keep every entry", old: "if s.spares < s.tabled+8 {", new: "if true {"},
	{file: "table.go", name: "compare hashes only", old: "return e.hash == hash && e.kind == k.kind && e.n == k.n && e.s == k.s", new: "return e.hash == hash && e.kind == k.kind"},

	{file: "group.go", name: "let the group's context end without the error", old: "\tif first {\n\t\tg.cancel(err)\n", new: "\tif first {\n\t\tg.cancel(nil)\n"},
	{file: "group.go", name: "keep the slot while Wait waits", old: "\t\tg.base.slot.park()\n\t\tdefer g.base.slot.unpark()\n", new: ""},
	{file: "group.go", name: "trust the group's own context", old: "\treturn ended(g.parent)\n", new: "\treturn nil\n"},
	{file: "group.go", name: "forget that tasks were dropped", old: "\tif g.err == nil && g.dropped > 0 {\n", new: "\tif false {\n"},
	{file: "group.go", name: "let tasks in after Wait", old: "\tif g.waited {\n", new: "\tif false {\n"},
	{file: "task.go", name: "let a task in the graph lose its place for a slot", old: "\tif t.complete() {\n\t\tg.enlist(t)", new: "\tif t.several == nil && t.claim.wait == nil && t.complete() {\n\t\tg.enlist(t)"},
	{file: "task.go", name: "act on a grant before the task is told of it", old: "\ts := w.entry.shard\n\ts.mu.Lock()\n\tdefer s.mu.Unlock()\n\treturn w.state.Load()\n", new: "\treturn w.state.Load()\n"},
	{file: "task.go", name: "forget that a task is exempt from Shutdown", old: "\t\tv.exempt = a.exempt\n", new: ""},
	{file: "task.go", name: "ask for more keys under a done context", old: "len(v.got.list) > 0 && t.over()", new: "false"},
	{file: "task.go", name: "forget the holds of a task in the graph", old: "\tif !g.reentrant {\n\t\tv.taken", new: "\tif false {\n\t\tv.taken"},
	{file: "task.go", name: "a timer for each key", old: "a.maxWait > 0 && t.timer == nil", new: "a.maxWait > 0"},
	{file: "task.go", name: "judge no hold when a task's MaxWait runs out", old: "\t\t\tw.sight.lookBack(s, w)\n\t\t\tif s.leave(w)", new: "\t\t\tif s.leave(w)"},
	{file: "task.go", name: "keep silent of a task that a hook ended", old: "case v != nil && v.queued:", new: "case v == nil && false:"},
	{file: "task.go", name: "leave a task where a context panics", old: "\tdone := false\n\tdefer t.unlessDone(&done)\n\tover", new: "\tdone := false\n\t_ = done\n\tover"},
	{file: "taskmove.go", name: "let a hook stop those who move", old: "\tdefer g.moved() // also if a hook exits the goroutine\n", new: "\tdefer func() {\n\t\tif g.news.first == nil {\n\t\t\tg.moved()\n\t\t}\n\t}()\n"},
	{file: "taskrun.go", name: "return nil for a task that a hook ended", old: "\t*err = &AcquireError{t.key, errUnwound}\n", new: ""},
	{file: "taskrun.go", name: "tell one hook of All only if none exits", old: "\t\tdefer s.grantedTo(v.got", new: "\t\ts.grantedTo(v.got"},
	{file: "taskrun.go", name: "run under whatever labels", old: "\tg := t.group\n\tpprof.SetGoroutineLabels(g.ctx)\n", new: "\tg := t.group\n"},
	{file: "taskrun.go", name: "end a task that panics", old: "\tif panicked != nil {\n", new: "\tif panicked != nil && false {\n"},
	{file: "taskrun.go", name: "let others start before the group fails", old: "\t\tg.abandon() // before", new: "\t\t_ = g // before"},
	{file: "taskrun.go", name: "lose the clients of other coordinators in a task", old: "c.outer = g.scope.client", new: "c.outer = g.base.client"},
	{file: "taskrun.go", name: "leave a task's client open", old: "\tdefer c.Close()\n\tif *err", new: "\tif *err"},
	{file: "taskrun.go", name: "start a task though Close took its key back", old: "\tif w.state.Load() == stateRevoked {\n\t\treturn false\n\t}\n\tw.client.leave()", new: "\tw.client.leave()", equivalent: "shows only if Close falls between two looks of the task's goroutine: collect sees it before, and the step to running after"},
	{file: "taskrun.go", name: "start a task of a group that has ended", old: "\tif g.ended() != nil {\n\t\treturn nil, nil, nil\n\t}\n", new: ""},
	{file: "taskrun.go", name: "take any reason for a skip", old: "\tswitch err {\n\tcase ErrUnavailable,", new: "\tif e, ok := err.(*endedError); ok && sameError(e.cause, ErrWaitTimeout) {\n\t\terr = e.cause\n\t}\n\tswitch err {\n\tcase ErrUnavailable,"},
	{file: "taskrun.go", name: "drop what Close has ended", old: "if t.key != (Key{}) && g.closed() {", new: "if false {"},
	{file: "slot.go", name: "keep the slot while a call waits", old: "\tif s.held {\n\t\ts.held = false\n\t\tg.active--\n\t\tg.dispatch()\n", new: "\tif false {\n"},
	{file: "slot.go", name: "let new tasks pass those that come back", old: "case len(g.returning) > 0:", new: "case len(g.returning) > 0 && g.ready.first == nil:"},
	{file: "slot.go", name: "hold a slot while a call of the task waits", old: "\t\t\tif s.waits == 0 && !s.over {\n", new: "\t\t\tif !s.over {\n"},
	{file: "slot.go", name: "wait for the slot of a task that is over", old: "\tif s.held || s.over {\n", new: "\tif s.held {\n"},
	{file: "slot.go", name: "leave those without a slot who wait for it at the end", old: "\ts.over = true\n\ts.resume()\n", new: "\ts.over = true\n"},
	{file: "wait.go", name: "keep a key for want of a slot", old: "\t\t\t\tback = nil\n\t\t\tcase <-done:\n\t\t\t\tcanceled = true\n", new: "\t\t\t\tback = nil\n"},
	{file: "wait.go", name: "show a hold without a slot as new", old: "\t\t\ts.note(w, now)\n", new: ""},
	{file: "shutdown.go", name: "keep the slot while Shutdown waits", old: "\tif scope != nil { // what", new: "\tif false { // what"},
	{file: "queue.go", name: "count a grant to a task that is dropped", old: "\tif w.task.told() {\n", new: "\tif w.task.told() || true {\n"},
	{file: "lineage.go", name: "leave the slot in a detached context", old: "\td.slot = nil", new: "\t_ = d"},
}
