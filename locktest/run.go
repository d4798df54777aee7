package locktest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
)

// rule is one rule of the contract; its checks are its subtests.
type rule struct {
	number int
	name   string
	checks []check
}

// check is one thing that a rule says. It must end with all that it started,
// whatever the locker does; see kit.finish.
type check struct {
	name string
	need need
	run  func(k *kit)
}

// rules are in the order of their numbers, but for the one on which all others
// depend, and the one that looks at what the others have left.
func rules() []rule {
	return []rule{
		synctestRule,
		exclusionRule, keysRule, orderRule, sharedRule, leavingRule, goroutineRule, memoryRule,
		doneBeforeRule, doneWaitingRule, meetRule, runningRule, contextsRule,
		resultsRule, unwindingRule, misuseRule, badKeyRule, precedenceRule,
		tryRule, maxWaitRule, reentrantRule, allRule,
		clientRule, closeRule, lostRule,
		ownRule, cycleRule, alarmRule,
		entriesRule, nothingLeftRule, userCodeRule,
	}
}

// Run holds the lockers that newLocker returns to the contract of
// [processlock.Locker], each check in a subtest named with the number of its
// rule and with a locker of its own. Unless opts.RealTime is set, newLocker is
// called inside the check's synctest bubble.
//
// newLocker may use t.Cleanup. Other tests should not run in parallel with Run.
func Run(t *testing.T, newLocker func(t *testing.T) processlock.Locker, opts Options) {
	s := &suite{newLocker: newLocker, opts: opts}
	for _, r := range rules() {
		name := fmt.Sprintf("rule%02d_%s", r.number, r.name)
		ok := t.Run(name, func(t *testing.T) {
			for _, c := range r.checks {
				t.Run(c.name, func(t *testing.T) { s.check(t, r.number, c) })
			}
			if r.number == nothingLeftRule.number {
				t.Run("after_other_rules", func(t *testing.T) { s.reportLeftovers(t) })
			}
		})
		if r.number == synctestRule.number && !ok {
			t.Fatal("locktest: no other rule can be looked at in a bubble; see Options.RealTime")
		}
	}
	if len(s.skipped) > 0 {
		t.Logf("locktest: not looked at:\n\t%s", strings.Join(s.skipped, "\n\t"))
	}
}

// suite is one run.
type suite struct {
	newLocker func(t *testing.T) processlock.Locker
	opts      Options
	skipped   []string
	leftovers []string // checks in whose bubble goroutines stayed behind
}

func (s *suite) check(t *testing.T, number int, c check) {
	t.Helper()
	why, ok := s.opts.Skip[number]
	if ok {
		why = "Options.Skip: " + why
	} else {
		why = s.opts.missing(c.need)
	}
	if ok || why != "" {
		line := fmt.Sprintf("rule %d (%s): %s", number, c.name, why)
		s.skipped = append(s.skipped, line)
		t.Skip("locktest: " + line)
	}
	if s.opts.RealTime {
		s.body(t, number, c, new(bool))
		return
	}
	s.inBubble(t, number, c)
}

// body runs a check and cleans up after it.
func (s *suite) body(t *testing.T, number int, c check, settled *bool) {
	k := newKit(t, s, number)
	defer func() { *settled = k.finish() }()
	c.run(k)
}

// inBubble runs a check in a bubble. It makes a failure of that of two things
// that would end the process or hang it: goroutines that stay blocked for ever,
// and those that are blocked other than durably.
func (s *suite) inBubble(t *testing.T, number int, c check) {
	t.Helper()
	settled := false
	end := make(chan any, 1)
	go func() {
		// Test ends this goroutine with Goexit if the check has failed.
		defer func() { end <- recover() }()
		synctest.Test(t, func(t *testing.T) { s.body(t, number, c, &settled) })
	}()
	limit := time.NewTimer(bubblePatience(t))
	defer limit.Stop()
	select {
	case v := <-end:
		switch {
		case v == nil:
		case settled && number != nothingLeftRule.number:
			// All calls have returned: it is not this rule that is broken.
			s.leftovers = append(s.leftovers, t.Name())
		default:
			t.Errorf("rule %d: %v", number, v)
		}
	case <-limit.C:
		t.Errorf("rule %d: the bubble did not come to rest: a wait is not durably blocking (rule 37), or spins", number)
	}
}

// bubblePatience bounds the real time that a bubble may take, in which time
// costs nothing.
func bubblePatience(t *testing.T) time.Duration {
	limit := 20 * time.Second
	if deadline, ok := t.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/4)
	}
	return limit
}

func (s *suite) reportLeftovers(t *testing.T) {
	if s.opts.RealTime {
		why := "rule 35 (after_other_rules): " + s.opts.missing(bubble)
		s.skipped = append(s.skipped, why)
		t.Skip("locktest: " + why)
	}
	for _, name := range s.leftovers {
		t.Errorf("rule 35: goroutines stayed behind when all calls had returned: %s", name)
	}
}

// guarded is a list that several goroutines add to.
type guarded[T any] struct {
	mu   sync.Mutex
	list []T
}

func (g *guarded[T]) add(v T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, v)
}

func (g *guarded[T]) all() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]T(nil), g.list...)
}
