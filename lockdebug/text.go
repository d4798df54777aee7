package lockdebug

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// writeText writes a table for a terminal. No byte of a key or a name reaches
// the terminal as a control.
func writeText(w *bytes.Buffer, r *report, _ query) error {
	fmt.Fprintf(w, "processlock at %s\n\n", r.Taken.Format("2006-01-02 15:04:05.000 UTC"))
	now, n := r.Now, r.Counters
	fmt.Fprintf(w, "keys %s, holders %s, waiting %s", count(now.Keys), count(now.Holders), count(now.Waiters))
	if now.LongestWait.known {
		fmt.Fprintf(w, ", longest wait %s for %s", now.LongestWait, now.WaitKey.Text)
	}
	if now.LongestHold.known {
		fmt.Fprintf(w, ", longest hold %s of %s", now.LongestHold, now.HoldKey.Text)
	}
	fmt.Fprintf(w, "\nso far: acquired %s, waited %s (%s), canceled %s, unavailable %s, deadlocks %s, closed %s, lost %s\n",
		count(n.Acquired), count(n.Waited), n.WaitTime, count(n.Canceled), count(n.Unavailable), count(n.Deadlocks), count(n.Closed), count(n.Lost))
	if r.Filter != "" {
		fmt.Fprintf(w, "filter: %s of %s with %s\n", count(r.Matching), plural(now.Keys, "key"), printable(r.Filter, maxName))
	}
	if len(r.Keys) > 0 {
		w.WriteByte('\n')
		writeTable(w, r)
	}
	if r.KeysCut > 0 {
		fmt.Fprintf(w, "%s cut: ?key=text lists those that contain it\n", plural(r.KeysCut, "key"))
	}
	for _, c := range r.Chains {
		if c.Prone {
			behind := "in a circle"
			if len(c.Roots) > 0 {
				behind = "behind " + list(c.Roots, 0)
			}
			fmt.Fprintf(w, "\nchain of %s, %s waiting %s: %s\n", plural(c.KeyCount(), "key"), count(c.Waiters), behind, list(c.Keys, c.KeysCut))
		}
	}
	return nil
}

// textColumns are the columns of the table, without the keys, which are lines
// of their own since they may be long.
var textColumns = []string{"", "CLIENT", "MODE", "FOR", "FUNCTION", "AT", "HOLDS"}

// textLine is a line of the table: a key, or the cells of a request.
type textLine struct {
	key   string
	cells []string
}

func writeTable(w *bytes.Buffer, r *report) {
	lines := []textLine{{cells: textColumns}}
	for _, k := range r.Keys {
		lines = append(lines, textLine{key: k.Text})
		for _, h := range k.Holders {
			state := "held"
			if !h.Running {
				state = "granted"
			}
			lines = append(lines, textLine{cells: append([]string{state}, h.caller.cells(h.Held)...)})
		}
		lines = append(lines, more(k.HoldersCut, "hold it")...)
		for _, o := range k.Waiters {
			cells := append([]string{"wait " + strconv.Itoa(o.Position)}, o.caller.cells(o.Waited)...)
			lines = append(lines, textLine{cells: append(cells, list(o.Holding, o.HoldingCut))})
		}
		lines = append(lines, more(k.WaitersCut, "wait")...)
	}
	widths := make([]int, len(textColumns))
	for _, l := range lines {
		for i, c := range l.cells {
			widths[i] = max(widths[i], width(c))
		}
	}
	for _, l := range lines {
		if l.cells == nil {
			w.WriteString(l.key + "\n")
			continue
		}
		var b strings.Builder
		for i, c := range l.cells {
			b.WriteString("  " + c + strings.Repeat(" ", widths[i]-width(c)))
		}
		w.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
}

func more(n int, what string) []textLine {
	if n == 0 {
		return nil
	}
	return []textLine{{key: "  " + count(n) + " more " + what}}
}

func (c caller) cells(lasted span) []string {
	client := c.Client
	if client == "" {
		client = "-"
	}
	return []string{client, c.Mode, lasted.String(), c.ShortFunc(), c.Place()}
}

// list writes keys, and how many are cut, on one line.
func list(keys []keyRef, cut int) string {
	texts := make([]string, len(keys), len(keys)+1)
	for i, k := range keys {
		texts[i] = k.Text
	}
	if cut > 0 {
		texts = append(texts, "and "+count(cut)+" more")
	}
	return strings.Join(texts, " ")
}
