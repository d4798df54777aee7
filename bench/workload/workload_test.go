package workload

import (
	"strings"
	"testing"
)

type noMeter struct{ reported map[string]float64 }

func (noMeter) Start()                              {}
func (noMeter) Stop()                               {}
func (m noMeter) Report(value float64, unit string) { m.reported[unit] = value }

// Every entrant of every workload does its task: none hangs, and with the race
// detector none races.
func TestEverybodyWorks(t *testing.T) {
	tiny := Size{Burst: 2_000, Turns: 100, Crowd: 300, Nested: 50, Cancels: 20, Tasks: 500}
	seen := make(map[string]bool)
	for _, w := range All(tiny) {
		for _, e := range w.Entrants {
			name := w.Name + "/" + e.Label()
			if seen[name] {
				t.Errorf("two are called %s", name)
			}
			seen[name] = true
			if skipped(w.Name) {
				continue
			}
			run := e.Setup()
			run.Do(max(1, w.Ops, w.MinOps), noMeter{make(map[string]float64)})
			if run.Close != nil {
				run.Close()
			}
		}
	}
}

// skipped are those whose size is their point; the report runs them.
func skipped(name string) bool {
	for _, large := range []string{"Hot/goroutines=10000", "DisjointGrowth/", "Uncontended/keys=65536"} {
		if strings.HasPrefix(name, large) {
			return true
		}
	}
	return false
}
