package measure

import "slices"

// Results are samples by what they are of.
type Results struct {
	Samples []Sample
	rounds  map[[3]string][]map[string]float64
}

// Add puts samples of a workload in.
func (r *Results) Add(samples []Sample) {
	r.Samples = append(r.Samples, samples...)
	if r.rounds == nil {
		r.rounds = make(map[[3]string][]map[string]float64)
	}
	for _, s := range samples {
		id := [3]string{s.Workload, s.Impl, s.Variant}
		r.rounds[id] = append(r.rounds[id], s.Values)
	}
}

// Of returns one entrant's figures.
func (r *Results) Of(workload, impl, variant string) Series {
	return r.rounds[[3]string{workload, impl, variant}]
}

// Series is what an entrant took, round by round.
type Series []map[string]float64

// Median is NaN-free: no rounds, or none with the unit, give false.
func (s Series) Median(unit string) (float64, bool) {
	var vs []float64
	for _, round := range s {
		if v, ok := round[unit]; ok {
			vs = append(vs, v)
		}
	}
	return Median(vs)
}

// Ratio is the median of Ratios.
func (s Series) Ratio(to Series, unit string) (float64, bool) { return Median(s.Ratios(to, unit)) }

// Ratios are those to another series, round by round.
func (s Series) Ratios(to Series, unit string) (all []float64) {
	for i := range min(len(s), len(to)) {
		a, ok := s[i][unit]
		b, ok2 := to[i][unit]
		if ok && ok2 && b != 0 {
			all = append(all, a/b)
		}
	}
	return all
}

// Median returns the middle of vs, if there is any.
func Median(vs []float64) (float64, bool) {
	if len(vs) == 0 {
		return 0, false
	}
	vs = slices.Sorted(slices.Values(vs))
	m := len(vs) / 2
	if len(vs)%2 == 1 {
		return vs[m], true
	}
	return (vs[m-1] + vs[m]) / 2, true
}
