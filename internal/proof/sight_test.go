package proof

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
)

// What is seen from outside when everybody is at rest, and what the model
// expects to be seen, are the same text, line by line.

// tick is the unit of all times in a program.
const tick = time.Millisecond

// expect describes a quiet state.
func (w *world) expect(s *state) string {
	var b strings.Builder
	for i, c := range s.calls {
		if w.asks[i].task != nil {
			fmt.Fprintf(&b, "call %d%s\n", i, w.taskState(c))
			continue
		}
		switch c.phase {
		case running:
			fmt.Fprintf(&b, "call %d runs\n", i)
		case over:
			line := fmt.Sprintf("call %d: %v", i, c.result)
			if c.result&isRefusal != 0 {
				line += " of " + keyName(c.refused%w.keys)
			}
			fmt.Fprintln(&b, line)
		default:
			fmt.Fprintf(&b, "call %d waits\n", i)
		}
	}
	for i, d := range s.shuts {
		fmt.Fprintf(&b, "shutdown %d: over=%t %v\n", i, d.over, d.result)
	}
	for i, g := range s.groups {
		fmt.Fprintf(&b, "group %d: skipped=%d over=%t %v\n", i, g.skipped, g.over, g.result)
	}
	for on, t := range s.stats {
		held, waiting := 0, 0
		for key, r := range s.rows {
			if w.coordinator(key) != on || len(r.holders) == 0 {
				continue
			}
			held += len(r.holders)
			waiting += len(r.queue)
			fmt.Fprintf(&b, "%d/%s held:", on, keyName(key%w.keys))
			for _, h := range r.holders {
				fmt.Fprintf(&b, " (%s since=%d running=%t)", w.who(h.call), h.since, s.calls[h.call].phase == running)
			}
			b.WriteString(" waits:")
			for _, q := range r.queue {
				names := []string{}
				for _, key := range w.holding(s, q) {
					names = append(names, keyName(key%w.keys))
				}
				slices.Sort(names) // of two coordinators
				fmt.Fprintf(&b, " (%s since=%d holding=%v)", w.who(q), s.calls[q].since, slices.Compact(names))
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%d held=%d waiting=%d %+v\n", on, held, waiting, t)
	}
	return b.String()
}

// who is how a call shows in a snapshot.
func (w *world) who(call int) string {
	a := w.asks[call]
	name, mode := "", processlock.ModeExclusive
	switch {
	case a.task != nil:
		name = w.names[a.task.client]
	case a.client >= 0:
		name = w.names[a.client]
	}
	if a.shared {
		mode = processlock.ModeShared
	}
	return fmt.Sprintf("%q %v", name, mode)
}

func clientName(client int) string { return fmt.Sprint("client-", client) }

func keyName(key int) string { return string(rune('a' + key)) }

// shortKey is keyName for what the library shows.
func shortKey(k processlock.Key) string { return strings.TrimPrefix(k.Canonical(), "string:1:") }

// seen describes what the library shows, as expect does for the model.
func (d *driver) seen() string {
	var b strings.Builder
	for i, x := range d.calls {
		fmt.Fprintln(&b, "call", fmt.Sprint(i)+x.state())
	}
	for i, x := range d.shuts {
		fmt.Fprintf(&b, "shutdown %d: over=%t %v\n", i, x.over.Load(), x.result())
	}
	for i, x := range d.groups {
		fmt.Fprintf(&b, "group %d: skipped=%d over=%t %v\n", i, x.g.Skipped(), x.over.Load(), x.result())
	}
	for on, c := range d.cs {
		snap := c.Snapshot()
		for _, l := range snap.Locks {
			fmt.Fprintf(&b, "%d/%s held:", on, shortKey(l.Key))
			for _, h := range l.Holders {
				fmt.Fprintf(&b, " (%q %v since=%d running=%t)%s", h.Client, h.Mode, d.ticks(h.Since), h.Running, misplaced(h.File))
			}
			b.WriteString(" waits:")
			for _, h := range l.Waiters {
				names := []string{}
				for _, k := range h.Holding {
					names = append(names, shortKey(k))
				}
				fmt.Fprintf(&b, " (%q %v since=%d holding=%v)%s", h.Client, h.Mode, d.ticks(h.Since), names, misplaced(h.File))
			}
			b.WriteString("\n")
		}
		t := c.Stats()
		fmt.Fprintf(&b, "%d held=%d waiting=%d %+v\n", on, t.Held, t.Waiting, stats{
			int(t.Acquired), int(t.Waited), int(t.Canceled), int(t.Unavailable), int(t.Deadlocks),
			int(t.Closed), int(t.Lost), int(t.WaitDuration / tick),
		})
	}
	return b.String()
}

// misplaced complains of a row that doesn't say where its fn is.
func misplaced(file string) string {
	if path.Base(file) == "call_test.go" {
		return ""
	}
	return " in " + file
}

// ticks is when t was, or -1 if that is not known.
func (d *driver) ticks(t time.Time) int {
	if t.IsZero() {
		return -1
	}
	return int(t.Sub(d.start) / tick)
}
