package bound_test

import (
	"testing"

	"github.com/dbx-tools/processlock/bench/bound"
	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
)

// A bound whose workload was renamed would silently be left out of the tables.
func TestEveryBoundFindsItsFigures(t *testing.T) {
	for _, size := range []workload.Size{workload.Full, workload.Quick} {
		r := everything(size)
		for _, b := range bound.All(size) {
			if _, ok := b.Of(r); !ok {
				t.Errorf("%s: nothing measured", b.What)
			}
		}
	}
}

func everything(size workload.Size) *measure.Results {
	r := new(measure.Results)
	for _, w := range workload.All(size) {
		for _, e := range w.Entrants {
			r.Add([]measure.Sample{{Workload: w.Name, Impl: e.Name, Variant: e.Variant, Ops: 1, Values: map[string]float64{
				measure.NsPerOp: 1, measure.BytesPerOp: 1, measure.AllocsPerOp: 1,
				workload.P99: 1, workload.Spread: 1, workload.HeldPerKey: 1, workload.Kept: 1,
				workload.QueuedPerTask: 1, workload.Goroutines: 1,
			}}})
		}
	}
	return r
}

func TestMet(t *testing.T) {
	for _, c := range []struct {
		b    bound.Bound
		v    float64
		want bool
	}{
		{bound.Bound{Limit: 1}, 0.9, true},
		{bound.Bound{Limit: 1}, 1, true},
		{bound.Bound{Limit: 1}, 1.1, false},
		{bound.Bound{Limit: 1, AtLeast: true}, 0.9, false},
		{bound.Bound{Limit: 1, AtLeast: true}, 1, true},
		{bound.Bound{Limit: 1, AtLeast: true}, 1.1, true},
	} {
		if got := c.b.Met(c.v); got != c.want {
			t.Errorf("%v of at least=%t %v: met=%t", c.v, c.b.AtLeast, c.b.Limit, got)
		}
	}
}
