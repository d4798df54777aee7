package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dbx-tools/processlock/bench/contender"
	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
)

const ours = "processlock"

func (r *Report) writeTables(w io.Writer) {
	fmt.Fprintf(w, `# Results

Written by %s; don't edit.
%v.

Up to %d rounds of %v a run. Within a round contenders take turns; a ratio is
formed within its round; shown are medians over the rounds. A turn around which
the machine was slower than it can be is taken again, up to three times, unless the
workload takes long. raw.txt has every run that counts in the format that benchstat
reads, results.json the medians.

`, "`"+r.Machine.Command+"`", r.Machine, r.Options.Rounds, r.Options.Time)
	if r.Options.Time < 40*time.Millisecond {
		fmt.Fprint(w, "Runs as short as these end before the collector has to work, which flatters\nwho allocates. The default is long enough.\n\n")
	}
	r.writeBounds(w)
	for _, c := range charts {
		if c.has(r) {
			fmt.Fprintf(w, "![%s](%s)\n", c.title, c.file)
		}
	}
	fmt.Fprint(w, `
## Reading the tables

- exact: keys never wait for each other and can be nested. Without it a lock is
  striped: cheaper, but two keys may be one lock, and nesting them may hang.
- FIFO: grants in order of arrival. Without it the releaser may take the lock
  again at once; on a hot key that spares the switch to another goroutine, which
  makes it much cheaper, and lets others starve.
- ctx: a done context ends a wait. callback: the lock's own call runs a function.
- kind: a rival is a released module, a baseline the construction of one that
  can't be imported, a limit no keyed lock but what its parts cost alone.
- x ours: the time in terms of processlock's, so more than 1 is slower than ours.
  rounds: the least and the most of the rounds that this is the median of.
- half done: when half of a pool's tasks had run. B a queued task: heap and stacks
  of a task beyond the limit, while those that run don't end; empty for a pool that
  takes no more than it can run.
`)
	for _, wl := range r.Workloads {
		r.writeWorkload(w, wl)
	}
}

func (r *Report) writeBounds(w io.Writer) {
	fmt.Fprint(w, "## Bounds\n\n| what | bound | measured | met |\n|---|---|---|---|\n")
	for _, b := range r.Bounds {
		v, ok := b.Of(r.Results)
		if !ok || b.Limit == 0 {
			continue
		}
		word, met := "at most", "yes"
		if b.AtLeast {
			word = "at least"
		}
		if !b.Met(v) {
			met = "**no**"
		}
		fmt.Fprintf(w, "| %s | %s %v %s | %s | %s |\n", b.What, word, b.Limit, b.Than, figure(v), met)
	}
	fmt.Fprintln(w)
}

// column is what a table shows of an entrant beside its guarantees.
type column struct {
	head, unit string
	scale      float64
}

var timing = []column{
	{"ns/op", measure.NsPerOp, 1},
	{"allocs", measure.AllocsPerOp, 1},
	{"B", measure.BytesPerOp, 1},
}

var special = map[string][]column{
	"Waits": {
		{"p50 us", workload.P50, 1e-3},
		{"p99 us", workload.P99, 1e-3},
		{"max us", workload.Max, 1e-3},
		{"turns apart %", workload.Spread, 1},
	},
	"Pools": {
		{"us a task", measure.NsPerOp, 1e-3},
		{"half done ms", workload.HalfDone, 1e-6},
		{"goroutines at most", workload.Goroutines, 1},
		{"B a queued task", workload.QueuedPerTask, 1},
	},
	"Memory": {
		{"B a key held", workload.HeldPerKey, 1},
		{"kB kept", workload.Kept, 1e-3},
	},
}

func (r *Report) writeWorkload(w io.Writer, wl workload.Workload) {
	family, _, _ := strings.Cut(wl.Name, "/")
	columns := special[family]
	if columns == nil {
		columns = timing
	}
	timed := columns[0].unit == measure.NsPerOp
	fmt.Fprintf(w, "\n## %s\n\n| contender | kind | exact | FIFO | ctx | callback |", wl.Name)
	rule := "|---|---|---|---|---|---|"
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c.head)
		rule += "---:|"
	}
	if timed {
		fmt.Fprint(w, " x ours | rounds |")
		rule += "---:|---|"
	}
	fmt.Fprintf(w, " note |\n%s---|\n", rule)
	for _, e := range wl.Entrants {
		fmt.Fprintf(w, "| %s | %s | %s |", strings.TrimSpace(e.Name+" "+e.Variant), e.Kind, guarantees(e.Guarantees))
		for _, c := range columns {
			if v, ok := r.Results.Of(wl.Name, e.Name, e.Variant).Median(c.unit); ok {
				fmt.Fprintf(w, " %s |", figure(v*c.scale))
			} else {
				fmt.Fprint(w, " |")
			}
		}
		if timed {
			if all := r.ratios(wl, e); len(all) > 0 {
				v, _ := measure.Median(all)
				fmt.Fprintf(w, " %.2f | %.2f to %.2f |", v, slices.Min(all), slices.Max(all))
			} else {
				fmt.Fprint(w, " | |")
			}
		}
		fmt.Fprintf(w, " %s |\n", e.Note)
	}
}

func guarantees(g contender.Guarantees) string {
	var cells []string
	for _, has := range []bool{g.Exact, g.FIFO, g.Ctx, g.Callback} {
		cell := "-"
		if has {
			cell = "yes"
		}
		cells = append(cells, cell)
	}
	return strings.Join(cells, " | ")
}

// ratios are e's times, round by round, in terms of ours at the same variant, else
// of ours at the first.
func (r *Report) ratios(w workload.Workload, e workload.Entrant) []float64 {
	base := r.Results.Of(w.Name, ours, e.Variant)
	if base == nil {
		base = r.Results.Of(w.Name, ours, w.Entrants[0].Variant)
	}
	return r.Results.Of(w.Name, e.Name, e.Variant).Ratios(base, measure.NsPerOp)
}

func figure(v float64) string {
	switch a := max(v, -v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
