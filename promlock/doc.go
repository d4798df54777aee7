// Package promlock shows the locks of a processlock Coordinator to Prometheus:
//
//	locks := promlock.NewCollector(processlock.Default(), nil)
//	prometheus.MustRegister(locks)
//
// The metrics are named in [NewCollector]. No key is ever a label, since keys
// are without number; [Class] sorts them into few classes, which are.
// dashboard.json, beside this package's source, shows the metrics in Grafana.
package promlock
