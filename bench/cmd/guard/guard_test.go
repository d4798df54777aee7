package main

import (
	"slices"
	"testing"

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
