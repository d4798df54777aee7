// Command report measures the suite and writes tables, raw figures and charts.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/dbx-tools/processlock/bench/bound"
	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/report"
	"github.com/dbx-tools/processlock/bench/workload"
)

func main() {
	var (
		quick  = flag.Bool("quick", false, "coarse figures and small crowds, in under a minute")
		rounds = flag.Int("rounds", 0, "rounds of each workload (default 7, quick 5)")
		length = flag.Duration("time", 0, "time of a run (default 40ms, quick 2ms)")
		which  = flag.String("workloads", "", "run only those whose name this regular expression matches")
		procs  = flag.Int("procs", 2, "GOMAXPROCS of workloads that don't set it")
		out    = flag.String("out", "", "directory to write to (default results; of -quick or -workloads a temporary one)")
		list   = flag.Bool("list", false, "list the workloads and stop")
	)
	flag.Parse()
	if flag.NArg() > 0 {
		fail(fmt.Errorf("%q is no flag; see -help", flag.Arg(0)))
	}
	// Long enough for several collections, so that who allocates pays for it.
	size, o := workload.Full, measure.Options{Rounds: 7, Time: 40 * time.Millisecond}
	if *quick {
		size, o = workload.Quick, measure.Options{Rounds: 5, Time: 2 * time.Millisecond}
	}
	if *rounds > 0 {
		o.Rounds = *rounds
	}
	if *length > 0 {
		o.Time = *length
	}
	wanted, err := regexp.Compile(*which)
	if err != nil {
		fail(err)
	}
	runtime.GOMAXPROCS(*procs)

	r := &report.Report{Machine: report.ThisMachine(), Options: o, Bounds: bound.All(size), Results: new(measure.Results)}
	for _, w := range workload.All(size) {
		if !wanted.MatchString(w.Name) {
			continue
		}
		if *list {
			fmt.Println(w.Name)
			continue
		}
		start := time.Now()
		r.Results.Add(measure.Run(w, o))
		r.Workloads = append(r.Workloads, w)
		fmt.Fprintf(os.Stderr, "%-40s %2d contenders %6.1fs\n", w.Name, len(w.Entrants), time.Since(start).Seconds())
	}
	if *list {
		return
	}
	if len(r.Workloads) == 0 {
		fail(fmt.Errorf("no workload's name matches %q; -list shows them", *which))
	}
	// The committed results are of a full run.
	if *out == "" && !*quick && *which == "" {
		*out = "results"
	}
	if *out == "" {
		if *out, err = os.MkdirTemp("", "bench-results-"); err != nil {
			fail(err)
		}
	}
	r.Machine.Load += " before, " + report.Load() + " after"
	if err := r.Write(*out); err != nil {
		fail(err)
	}
	fmt.Printf("written to %s\n\n", *out)
	for _, b := range r.Bounds {
		if v, ok := b.Of(r.Results); ok && b.Limit > 0 {
			met := "met"
			if !b.Met(v) {
				met = "MISSED"
			}
			fmt.Printf("%-45s %10.2f %s (bound %v) %s\n", b.What, v, b.Than, b.Limit, met)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "report:", err)
	os.Exit(1)
}
