package promlock_test

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// labeled is what g gathers that has the label.
func labeled(g prometheus.Gatherer, name, value string) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := g.Gather()
		for _, f := range families {
			var kept []*dto.Metric
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if l.GetName() == name && l.GetValue() == value {
						kept = append(kept, m)
					}
				}
			}
			f.Metric = kept
		}
		return families, err
	})
}
