// Command guard fails when the library has become much slower, or hungrier,
// than what it is measured against in the same run.
//
// Its bounds are ratios, far enough out for a machine whose processors are
// shared. What leaves one is measured again, once.
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dbx-tools/processlock/bench/bound"
	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
)

// guarded are the entrants of the workloads that the guard runs: those that
// its bounds name.
var guarded = map[string][]string{
	"Uncontended/keys=1":            {"processlock", "processlock.method", "processlock.client", "map+Mutex"},
	"Hooks":                         {"processlock", workload.Unhooked},
	"Disjoint/procs=2":              {"processlock", "map+Mutex"},
	"Hot/goroutines=128":            {"processlock", "map+Weighted"},
	"Waits/goroutines=16/hold=20µs": {"processlock", "ideal queue"},
	"Search/others=2000":            {"processlock"},
	"Memory/keys=100000":            {"processlock"},
	"CancelMiddle/queue=1000":       {"processlock"},
	"CancelMiddle/queue=20000":      {"processlock"},
	pools:                           {"processlock"},
}

var pools, _ = workload.PoolNames()

func main() {
	runtime.GOMAXPROCS(2)
	if failed := twice(func() []string { return judge(measured()) }); len(failed) > 0 {
		fmt.Println("\nout of bounds twice: " + strings.Join(failed, "; "))
		os.Exit(1)
	}
}

// twice returns what fails, and fails again.
func twice(look func() []string) []string {
	failed := look()
	if len(failed) == 0 {
		return nil
	}
	fmt.Println("\nonce more, in case it was the machine")
	again := look()
	return slices.DeleteFunc(failed, func(what string) bool { return !slices.Contains(again, what) })
}

func measured() *measure.Results {
	r := new(measure.Results)
	for _, w := range workload.All(workload.Quick) {
		names := guarded[w.Name]
		if names == nil {
			continue
		}
		w.Entrants = slices.DeleteFunc(w.Entrants, func(e workload.Entrant) bool { return !slices.Contains(names, e.Name) })
		// Many short rounds: what disturbs the machine meets few of them, or all
		// the entrants of one. They are too short to meet the collector; the bounds
		// are set for that, and allocations have bounds of their own.
		r.Add(measure.Run(w, measure.Options{Rounds: 41, Time: 2 * time.Millisecond}))
	}
	return r
}

// judge prints and returns what is out of bounds.
func judge(r *measure.Results) (failed []string) {
	subject := ""
	for _, b := range bound.All(workload.Quick) {
		if b.What != "its allocations" && b.What != "its bytes" {
			subject = b.What
		}
		if b.Guard == 0 {
			continue
		}
		what := b.What
		if what != subject {
			what += " (" + subject + ")"
		}
		v, ok := b.Of(r)
		word := "ok"
		if !ok || v > b.Guard { // what isn't measured isn't guarded
			word = "OUT OF BOUNDS"
			failed = append(failed, what)
		}
		fmt.Printf("%-62s %8.2f %s, guard at %v: %s\n", what, v, b.Than, b.Guard, word)
	}
	return failed
}
