package main

import (
	"slices"
	"testing"

	"github.com/dbx-tools/processlock/bench/bound"
	"github.com/dbx-tools/processlock/bench/contender"
	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
)

func TestGuardedExist(t *testing.T) {
	found := 0
	for _, w := range workload.All(workload.Quick) {
		names, ok := guarded[w.Name]
		if !ok {
			continue
		}
		found++
		for _, name := range names {
			if !slices.ContainsFunc(w.Entrants, func(e workload.Entrant) bool { return e.Name == name }) {
				t.Errorf("%s: no %s", w.Name, name)
			}
		}
	}
	if found != len(guarded) {
		t.Errorf("%d of %d workloads exist", found, len(guarded))
	}
}

// Whatever leaves its bound is named, as is what was not measured.
func TestJudge(t *testing.T) {
	guarded := 0
	for _, b := range bound.All(workload.Quick) {
		if b.Guard > 0 {
			guarded++
		}
	}
	if got := judge(new(measure.Results)); len(got) != guarded {
		t.Errorf("%d of %d bounds miss their figures", len(got), guarded)
	}
	if got := judge(all(1, 1)); len(got) > 0 {
		t.Errorf("out of bounds where all are alike: %q", got)
	}
	// Ours alone is a thousand times what it was; ours by ours is not.
	got := judge(all(1000, 1))
	for _, what := range []string{"string key, uncontended", "its allocations (string key, uncontended)",
		"its bytes (string key, uncontended)", "disjoint keys, two processors",
		"hot key, 128 goroutines, context.Background", "p99 wait there, in the best round",
		"turns per goroutine, in the fairest round", "100000 keys held"} {
		if !slices.Contains(got, what) {
			t.Errorf("%s is within bounds", what)
		}
	}
}

// all are two rounds of everybody.
func all(ours, theirs float64) *measure.Results {
	r := new(measure.Results)
	for _, w := range workload.All(workload.Quick) {
		for round := range 2 {
			for _, e := range w.Entrants {
				v := theirs
				if e.Kind == contender.Ours {
					v = ours
				}
				s := measure.Sample{Workload: w.Name, Impl: e.Name, Variant: e.Variant, Round: round, Ops: 1, Values: make(map[string]float64)}
				for _, unit := range []string{measure.NsPerOp, measure.BytesPerOp, measure.AllocsPerOp, workload.P99,
					workload.Spread, workload.HeldPerKey, workload.Kept, workload.QueuedPerTask, workload.Goroutines} {
					s.Values[unit] = v
				}
				r.Add([]measure.Sample{s})
			}
		}
	}
	return r
}

// What fails once only was the machine.
func TestTwice(t *testing.T) {
	for _, c := range []struct {
		looks [][]string
		want  []string
	}{
		{[][]string{nil}, nil},
		{[][]string{{"a"}, nil}, nil},
		{[][]string{{"a", "b"}, {"b", "c"}}, []string{"b"}},
	} {
		n := 0
		got := twice(func() []string { n++; return c.looks[n-1] })
		if !slices.Equal(got, c.want) || n != len(c.looks) {
			t.Errorf("of %q: got %q in %d looks", c.looks, got, n)
		}
	}
}
