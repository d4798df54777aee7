package bench

import (
	"runtime"
	"testing"

	"github.com/dbx-tools/processlock/bench/workload"
)

// BenchmarkWorkloads runs every workload. Their names are k=v, so that
//
//	go test -run '^$' -bench 'Workloads/Hot/goroutines=128' .
//
// selects, and benchstat can pivot.
func BenchmarkWorkloads(b *testing.B) {
	size := workload.Full
	if testing.Short() {
		size = workload.Quick
	}
	for _, w := range workload.All(size) {
		for _, e := range w.Entrants {
			b.Run(w.Name+"/"+e.Label(), func(b *testing.B) {
				if w.Procs > 0 {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(w.Procs))
				}
				if w.Ops > 0 {
					runs(b, w, e)
					return
				}
				b.ReportAllocs()
				n := max(b.N, w.MinOps)
				run := e.Setup()
				if run.Close != nil {
					defer run.Close()
				}
				m := meter{b}
				m.Start()
				run.Do(n, m)
				m.Stop()
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/op")
			})
		}
	}
}

// runs measures what has a size of its own: b.N runs of w.Ops operations, of
// which the last tells its other figures.
func runs(b *testing.B, w workload.Workload, e workload.Entrant) {
	m := &running{B: b}
	for range b.N {
		b.StopTimer()
		run := e.Setup()
		run.Do(w.Ops, m)
		b.StopTimer()
		if run.Close != nil {
			run.Close()
		}
	}
	per := float64(b.N * w.Ops)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/per, "ns/op")
	b.ReportMetric(float64(m.bytes)/per, "B/op")
	b.ReportMetric(float64(m.allocs)/per, "allocs/op")
}

// meter measures with the benchmark's own timer.
type meter struct{ *testing.B }

func (m meter) Start()                            { m.ResetTimer(); m.StartTimer() }
func (m meter) Stop()                             { m.StopTimer() }
func (m meter) Report(value float64, unit string) { m.ReportMetric(value, unit) }

// running is a meter that adds up runs, each of which starts it once. What
// testing counts is per run, so it counts allocations itself.
type running struct {
	*testing.B
	from          runtime.MemStats
	bytes, allocs uint64
}

func (r *running) Start() {
	runtime.ReadMemStats(&r.from)
	r.StartTimer()
}

func (r *running) Stop() {
	r.StopTimer()
	var to runtime.MemStats
	runtime.ReadMemStats(&to)
	r.bytes += to.TotalAlloc - r.from.TotalAlloc
	r.allocs += to.Mallocs - r.from.Mallocs
}

func (r *running) Report(value float64, unit string) { r.ReportMetric(value, unit) }
