package promlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/promlock"
)

// A known course of events is all there to see.
func TestCollectorCountsEverything(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(promlock.NewCollector(s.c, nil, promlock.Buckets(0, 1.5, 10)))
		n, err := testutil.GatherAndCount(r)
		require.NoError(t, err)
		assert.Equal(t, 11, n, "all shows before anything happens")
		s.every("k")
		compare(t, r, everything, "")

		// The package's own Stats agree, but for what they say they count.
		st := s.c.Stats()
		assert.EqualValues(t, 5+1, st.Acquired, "Reentrant too")
		assert.EqualValues(t, 6, st.Waited)
		assert.EqualValues(t, 3, st.Canceled)
		assert.EqualValues(t, 2, st.Unavailable)
		assert.EqualValues(t, 1, st.Deadlocks)
		assert.EqualValues(t, 1, st.Closed, "not what was refused on arrival")
		assert.EqualValues(t, 2, st.Lost)
		assert.Equal(t, 7*time.Second, st.WaitDuration)
	})
}

// A wait that took no time which the clock can tell is in the histogram too, else
// it would have fewer than waited.
func TestCollectorCountsWaitsOfNoTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(promlock.NewCollector(s.c, nil, promlock.Buckets(0, 1)))
		first, second := s.hold(t.Context(), "k"), s.hold(t.Context(), "k")
		ctx, cancel := context.WithCancel(t.Context())
		third := s.hold(ctx, "k")
		cancel()
		assert.ErrorIs(t, third(), context.Canceled)
		assert.NoError(t, first())
		assert.NoError(t, second())
		compare(t, r, `
# HELP processlock_waited_total Requests that had to wait.
# TYPE processlock_waited_total counter
processlock_waited_total{LABELS} 2
# HELP processlock_wait_seconds How long the waits took that have ended, in whatever way.
# TYPE processlock_wait_seconds histogram
processlock_wait_seconds_bucket{LABELS,le="0"} 0
processlock_wait_seconds_bucket{LABELS,le="1"} 2
processlock_wait_seconds_bucket{LABELS,le="+Inf"} 2
processlock_wait_seconds_sum{LABELS} 2e-09
processlock_wait_seconds_count{LABELS} 2
`, "", "processlock_waited_total", "processlock_wait_seconds")
	})
}

// The gauges show what is now.
func TestCollectorReadsGaugesAtTheScrape(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(promlock.NewCollector(s.c, nil))
		gauge := func(held, waiting string) {
			t.Helper()
			compare(t, r, strings.NewReplacer("_held{LABELS} 0", "_held{LABELS} "+held, "_waiting{LABELS} 0", "_waiting{LABELS} "+waiting).Replace(everyGauge), "",
				"processlock_held", "processlock_waiting")
		}
		gauge("0", "0")
		one := s.hold(t.Context(), "k")
		two, three := s.hold(t.Context(), "k"), s.hold(t.Context(), processlock.All("j", "k", "l"))
		gauge("2", "2")
		assert.NoError(t, one())
		assert.NoError(t, two())
		gauge("3", "0")
		assert.NoError(t, three())
		gauge("0", "0")
	})
}

// Coordinators with labels of their own share a registry.
func TestCollectorsShareARegistry(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		r := prometheus.NewPedanticRegistry()
		idle := processlock.New(processlock.Options{})
		r.MustRegister(promlock.NewCollector(s.c, prometheus.Labels{"pool": "a"}, promlock.Buckets(0, 1.5, 10)))
		r.MustRegister(promlock.NewCollector(idle, prometheus.Labels{"pool": "b"}, promlock.Buckets(0, 1.5, 10)))
		again := promlock.NewCollector(s.c, prometheus.Labels{"pool": "a"}, promlock.Buckets(0, 1.5, 10))
		assert.ErrorAs(t, r.Register(again), new(prometheus.AlreadyRegisteredError))
		again.Close()
		s.every("k")
		n, err := testutil.GatherAndCount(r)
		require.NoError(t, err)
		assert.Equal(t, 2*11, n)
		compare(t, labeled(r, "pool", "a"), everything, `pool="a"`)
		st := idle.Stats()
		assert.Zero(t, st.Acquired)
	})
}

// After Close nothing more is counted, and the Coordinator is as it was.
func TestCloseLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		r := prometheus.NewPedanticRegistry()
		locks := promlock.NewCollector(s.c, nil, promlock.Buckets(0, 1.5, 10))
		r.MustRegister(locks)
		s.every("k")
		under := s.hold(t.Context(), "under way") // to its end
		time.Sleep(time.Second)
		locks.Close()
		locks.Close()
		assert.NoError(t, under())
		s.every("not counted")
		want := strings.NewReplacer("processlock_acquired_total{LABELS} 5", "processlock_acquired_total{LABELS} 6",
			`hold_seconds_bucket{LABELS,le="1.5"} 1`, `hold_seconds_bucket{LABELS,le="1.5"} 2`,
			`hold_seconds_bucket{LABELS,le="10"} 3`, `hold_seconds_bucket{LABELS,le="10"} 4`,
			`hold_seconds_bucket{LABELS,le="+Inf"} 5`, `hold_seconds_bucket{LABELS,le="+Inf"} 6`,
			`hold_seconds_sum{LABELS} 68`, `hold_seconds_sum{LABELS} 69`,
			`hold_seconds_count{LABELS} 5`, `hold_seconds_count{LABELS} 6`).Replace(everything)
		compare(t, r, want, "")
		assert.NoError(t, s.c.WithLock(t.Context(), "k", func(context.Context) error {
			assert.True(t, s.c.Snapshot().Locks[0].Holders[0].Since.IsZero(), "the clock is still read for somebody who looks")
			return nil
		}))
		assert.True(t, r.Unregister(locks))
	})
}

// The linter of promtool finds nothing, with classes and without.
func TestNamesAreClean(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(promlock.NewCollector(s.c, prometheus.Labels{"pool": "a"}))
		r.MustRegister(promlock.NewCollector(processlock.New(processlock.Options{}), prometheus.Labels{"pool": "b"}))
		classes := prometheus.NewPedanticRegistry()
		classes.MustRegister(promlock.NewCollector(s.c, nil, promlock.Class(firstPart)))
		s.every("k")
		for _, g := range []prometheus.Gatherer{r, classes} {
			problems, err := testutil.GatherAndLint(g)
			require.NoError(t, err)
			assert.Empty(t, problems)
			n, err := testutil.GatherAndCount(g)
			require.NoError(t, err)
			assert.NotZero(t, n)
		}
	})
}
