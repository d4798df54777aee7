package promlock

import "github.com/prometheus/client_golang/prometheus"

// parts are the collectors that the Collector is made of.
func (l *Collector) parts() []prometheus.Collector {
	return []prometheus.Collector{
		l.acquired, l.waited, l.canceled, l.unavailable, l.deadlocks, l.closed, l.lost, l.waits, l.holds,
	}
}

// Describe implements [prometheus.Collector].
func (l *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- l.held
	ch <- l.waiting
	for _, p := range l.parts() {
		p.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (l *Collector) Collect(ch chan<- prometheus.Metric) {
	for class, n := range l.now() {
		values := l.values(class)
		ch <- prometheus.MustNewConstMetric(l.held, prometheus.GaugeValue, float64(n.held), values...)
		ch <- prometheus.MustNewConstMetric(l.waiting, prometheus.GaugeValue, float64(n.waiting), values...)
	}
	for _, p := range l.parts() {
		p.Collect(ch)
	}
}

type gauges struct{ held, waiting int64 }

// now reads the gauges by class. A class that was seen before shows as 0, not as
// gone.
func (l *Collector) now() map[string]gauges {
	if l.class == nil {
		s := l.coordinator.Stats()
		return map[string]gauges{"": {s.Held, s.Waiting}}
	}
	by := make(map[string]gauges)
	l.series.Range(func(class, _ any) bool {
		by[class.(string)] = gauges{}
		return true
	})
	for _, lock := range l.coordinator.Snapshot().Locks {
		class := l.className(lock.Key)
		n := by[class]
		n.held += int64(len(lock.Holders))
		n.waiting += int64(len(lock.Waiters))
		by[class] = n
	}
	return by
}
