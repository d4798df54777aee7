package measure

import (
	"testing"
	"time"

	"github.com/dbx-tools/processlock/bench/workload"
)

func TestRatiosAreFormedWithinTheirRound(t *testing.T) {
	// The machine is ten times slower in the second round; the ratio isn't.
	a := Series{{NsPerOp: 2}, {NsPerOp: 20}, {NsPerOp: 3}}
	b := Series{{NsPerOp: 1}, {NsPerOp: 10}, {NsPerOp: 1}}
	if got, ok := a.Ratio(b, NsPerOp); !ok || got != 2 {
		t.Errorf("got %v, %v", got, ok)
	}
	if _, ok := a.Ratio(nil, NsPerOp); ok {
		t.Error("a ratio to nothing")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{7}, 7}} {
		if got, ok := Median(c.of); !ok || got != c.want {
			t.Errorf("of %v: got %v, %v", c.of, got, ok)
		}
	}
	if _, ok := Median(nil); ok {
		t.Error("a median of nothing")
	}
}

func TestEntrantsTakeTurns(t *testing.T) {
	var order []string
	open := 0
	entrant := func(name string) workload.Entrant {
		return workload.Entrant{Name: name, Setup: func() workload.Run {
			open++
			return workload.Run{
				Do:    func(int, workload.Meter) { order = append(order, name) },
				Close: func() { open-- },
			}
		}}
	}
	w := workload.Workload{Name: "W", Ops: 1, MaxRounds: 100, Entrants: []workload.Entrant{entrant("a"), entrant("b")}}
	const rounds = 20
	samples := Run(w, Options{Rounds: rounds, Time: time.Millisecond})
	if got, want := len(samples), 2*rounds; got != want {
		t.Errorf("%d samples, want %d", got, want)
	}
	firsts := 0
	for i := range rounds {
		turn := order[2*i] + order[2*i+1]
		if turn != "ab" && turn != "ba" {
			t.Errorf("round %d was %s", i, turn)
		}
		if turn == "ab" {
			firsts++
		}
	}
	if firsts == 0 || firsts == rounds {
		t.Errorf("one is always first: %v", order)
	}
	if open != 0 {
		t.Errorf("%d are left open", open)
	}
}

func TestCalibrationFillsTheTime(t *testing.T) {
	got := calibrate(1, time.Millisecond, func(int) float64 { return 100 })
	if got < 9_000 || got > 11_000 {
		t.Errorf("%d operations of 100 ns fill a millisecond", got)
	}
	if got := calibrate(64, time.Nanosecond, func(int) float64 { return 100 }); got < 64 {
		t.Errorf("%d operations are fewer than asked for", got)
	}
}

func TestCalibrationSurvivesAPause(t *testing.T) {
	runs := 0
	got := calibrate(1, time.Millisecond, func(n int) float64 {
		if runs++; runs == 1 {
			return 1e7 // the machine was away
		}
		return 100
	})
	if got < 9_000 || got > 11_000 {
		t.Errorf("%d operations of 100 ns fill a millisecond", got)
	}
}
