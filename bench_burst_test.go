package processlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
)

// BenchmarkBurst holds many keys at once and releases them one after the other.
// The table grows and shrinks with them, and some calls pay for it: what the
// longest take is reported, and the median for comparison.
func BenchmarkBurst(b *testing.B) {
	for _, keys := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			for b.Loop() {
				takes, releases := burst(keys)
				for _, what := range []struct {
					name string
					took []time.Duration
				}{{"take", takes}, {"release", releases}} {
					slices.Sort(what.took)
					b.ReportMetric(float64(what.took[keys/2]), "median-"+what.name+"-ns")
					b.ReportMetric(float64(what.took[keys-1]), "longest-"+what.name+"-ns")
				}
			}
		})
	}
}

// burst returns how long each call took until its fn ran, and after it.
func burst(keys int) (takes, releases []time.Duration) {
	c := processlock.New(processlock.Options{})
	takes, releases = make([]time.Duration, keys), make([]time.Duration, keys)
	gates, step := make([]chan struct{}, keys), make(chan struct{})
	for i := range keys {
		gates[i] = make(chan struct{})
		go func() {
			begin := time.Now()
			_ = c.WithLock(context.Background(), i, func(context.Context) error {
				takes[i] = time.Since(begin)
				step <- struct{}{}
				<-gates[i]
				begin = time.Now()
				return nil
			})
			releases[i] = time.Since(begin)
			step <- struct{}{}
		}()
		<-step
	}
	for _, gate := range gates {
		close(gate)
		<-step
	}
	return takes, releases
}
