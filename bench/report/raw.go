package report

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
)

// writeRaw writes every run in the format of Go benchmarks, which benchstat
// reads.
func (r *Report) writeRaw(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/dbx-tools/processlock/bench\ncpu: %s\n", m.OS, m.Arch, m.CPU)
	fmt.Fprintf(w, "go: %s\ncommit: %s\n", m.Go, m.Commit)
	procs := make(map[string]int)
	for _, wl := range r.Workloads {
		if procs[wl.Name] = wl.Procs; wl.Procs == 0 {
			procs[wl.Name] = m.Procs
		}
	}
	for _, s := range r.Results.Samples {
		fmt.Fprintf(w, "Benchmark%s/%s-%d\t%d", s.Workload, workload.Label(s.Impl, s.Variant), procs[s.Workload], s.Ops)
		for _, unit := range units(s.Values) {
			fmt.Fprintf(w, "\t%.6g %s", s.Values[unit], unit)
		}
		fmt.Fprintln(w)
	}
}

// units are the units of a run, the time first.
func units(values map[string]float64) []string {
	us := slices.Sorted(maps.Keys(values))
	us = slices.DeleteFunc(us, func(u string) bool { return u == measure.NsPerOp })
	return append([]string{measure.NsPerOp}, us...)
}

// digest is what others compute with: medians and bounds.
func (r *Report) digest() any {
	type row struct {
		Workload, Impl string
		Variant        string             `json:",omitempty"`
		Medians        map[string]float64 // by unit
		Ratio          float64            // of the time to processlock's
	}
	type met struct {
		What, Than      string
		Limit, Measured float64
		Met             bool
	}
	var rows []row
	for _, w := range r.Workloads {
		for _, e := range w.Entrants {
			series := r.Results.Of(w.Name, e.Name, e.Variant)
			medians := make(map[string]float64)
			for unit := range series[0] {
				medians[unit], _ = series.Median(unit)
			}
			ratio, _ := measure.Median(r.ratios(w, e))
			rows = append(rows, row{w.Name, e.Name, e.Variant, medians, ratio})
		}
	}
	var bounds []met
	for _, b := range r.Bounds {
		if v, ok := b.Of(r.Results); ok && b.Limit > 0 {
			bounds = append(bounds, met{b.What, b.Than, b.Limit, v, b.Met(v)})
		}
	}
	return struct {
		Machine Machine
		Rounds  int
		RunTime string
		Bounds  []met
		Rows    []row
	}{r.Machine, r.Options.Rounds, r.Options.Time.String(), bounds, rows}
}
