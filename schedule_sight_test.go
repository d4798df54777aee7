package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/require"
)

// check compares everything that is seen from outside with the model.
func (d *scDriver) check() {
	d.t.Helper()
	seen, want := d.seen(), d.want()
	if seen != want {
		require.Equal(d.t, want, seen, strings.Join(d.trace, "\n"))
	}
}

func (d *scDriver) want() string {
	var b strings.Builder
	for i, c := range d.m.calls {
		fmt.Fprintf(&b, "call %d %s %s\n", i, c.state, c.err)
	}
	waiting := 0
	for key, k := range d.m.keys {
		if len(k.holders) == 0 {
			continue
		}
		fmt.Fprintf(&b, "key [%d] held:", key)
		for _, h := range k.holders {
			fmt.Fprintf(&b, " %d running=%t", h, d.m.calls[h].state == "runs")
		}
		for _, q := range k.queue {
			fmt.Fprintf(&b, " | %d holding=", q)
			for _, key := range d.m.holding(append([]int{q}, d.m.calls[q].above...)...) {
				fmt.Fprintf(&b, "[%d]", key)
			}
		}
		waiting += len(k.queue)
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "held=%d waiting=%d %+v\n", d.m.held(), waiting, d.m.stats)
	fmt.Fprintf(&b, "shut down: %t\n", d.m.down && d.m.held() == 0)
	return b.String()
}

func (d *scDriver) seen() string {
	var b strings.Builder
	for i, x := range d.calls {
		err := ""
		if x.state() == "over" {
			err = scErr(x.err)
		}
		fmt.Fprintf(&b, "call %d %s %s\n", i, x.state(), err)
	}
	for _, l := range d.c.Snapshot().Locks {
		fmt.Fprintf(&b, "key %v held:", l.Key)
		for _, h := range l.Holders {
			fmt.Fprintf(&b, " %s running=%t", h.Client, h.Running)
		}
		for _, w := range l.Waiters {
			fmt.Fprintf(&b, " | %s holding=", w.Client)
			for _, key := range w.Holding {
				b.WriteString(key.String())
			}
		}
		b.WriteString("\n")
	}
	s := d.c.Stats()
	fmt.Fprintf(&b, "held=%d waiting=%d %+v\n", s.Held, s.Waiting,
		scStats{s.Acquired, s.Waited, s.Canceled, s.Unavailable, s.Deadlocks, s.Closed, s.Lost})
	over := false
	select {
	case <-d.down:
		over = d.down != nil
	default:
	}
	fmt.Fprintf(&b, "shut down: %t\n", over)
	return b.String()
}

// scErr lists what errors.Is finds in err.
func scErr(err error) string {
	var names []string
	for _, is := range []struct {
		name   string
		target error
	}{
		{"closed", processlock.ErrClosed}, {"unavailable", processlock.ErrUnavailable},
		{"timeout", processlock.ErrWaitTimeout}, {"full", processlock.ErrQueueFull},
		{"deadlock", processlock.ErrDeadlock}, {"lost", processlock.ErrLost},
		{"canceled", context.Canceled}, {"deadline", context.DeadlineExceeded}, {"fn", errScFn},
	} {
		if errors.Is(err, is.target) {
			names = append(names, is.name)
		}
	}
	return strings.Join(names, "+")
}
