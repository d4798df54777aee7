package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/bench/bound"
	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
)

// The whole way, with figures of no worth.
func TestWrite(t *testing.T) {
	size := workload.Size{Burst: 2_000, Turns: 100, Crowd: 300, Nested: 50, Cancels: 20, Tasks: 500}
	o := measure.Options{Rounds: 1, Time: time.Microsecond}
	r := &Report{Machine: ThisMachine(), Options: o, Bounds: bound.All(size), Results: new(measure.Results)}
	for _, w := range workload.All(size) {
		switch family, _, _ := strings.Cut(w.Name, "/"); {
		case w.Name == "Uncontended/keys=1", w.Name == "Hooks", w.Name == "Hot/goroutines=2", family == "Waits", family == "Memory", family == "Pools":
			r.Results.Add(measure.Run(w, o))
			r.Workloads = append(r.Workloads, w)
		}
	}
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string][]string{
		"README.md": {
			"| string key, uncontended | at most 0.8 x map+Mutex |",
			"| contender | kind | exact | FIFO | ctx | callback |",
			"| processlock key=string | ours | yes | yes | yes | yes |",
			"| map+Mutex key=string | baseline | yes | - | - | - |",
			"| us a task | half done ms | goroutines at most | B a queued task | x ours |",
			"| string key, hooks added and removed | at most 1.1 x without hooks (nothing, read as 1.1) |",
			"| processlock.unhooked | ours | yes | yes | yes | yes |",
			"| ants+WithLock | rival | yes | - | yes | yes |",
			"![Memory of a burst of keys](memory.svg)",
		},
		"raw.txt":      {"BenchmarkWaits/goroutines=16/hold=20µs/impl=ideal_queue-", " p99-ns"},
		"results.json": {`"Commit"`, `"Met"`},
		"waits.svg":    {"<svg"},
		"memory.svg":   {"<svg"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
	}
	// What was not run is not drawn.
	if _, err := os.Stat(filepath.Join(dir, "goroutines.svg")); err == nil {
		t.Error("a chart without its figures")
	}
}

// A chart whose workload was renamed would silently be left out.
func TestChartsNameWorkloads(t *testing.T) {
	known := make(map[[2]string]bool)
	for _, w := range workload.All(workload.Full) {
		for _, e := range w.Entrants {
			if e.Name == ours {
				known[[2]string{w.Name, e.Variant}] = true
			}
		}
	}
	for _, c := range charts {
		for _, p := range c.points {
			if !known[[2]string{p.workload, p.variant}] {
				t.Errorf("%s: no %s %s", c.file, p.workload, p.variant)
			}
		}
	}
}
