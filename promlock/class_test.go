package promlock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/promlock"
)

// Each class has its own series of each metric, as soon as one of its keys was
// seen, and keeps them.
func TestCollectorSortsByClass(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		early := s.hold(t.Context(), processlock.MustKey("early", 1)) // before anybody looks
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(promlock.NewCollector(s.c, prometheus.Labels{"app": "x"}, promlock.Buckets(0, 1.5, 10), promlock.Class(firstPart)))
		gauges := func(class string, held, waiting int) string {
			text := strings.NewReplacer("_held{LABELS} 0", "_held{LABELS} "+itoa(held), "_waiting{LABELS} 0", "_waiting{LABELS} "+itoa(waiting)).Replace(everyGauge)
			return strings.ReplaceAll(text, "LABELS", `app="x",class="`+class+`"`)
		}
		compare(t, r, gauges("early", 1, 0), "")
		assert.NoError(t, early())
		n, err := testutil.GatherAndCount(r)
		require.NoError(t, err)
		assert.Zero(t, n, "a class of which nothing was seen but in a gauge")

		s.every("orders")
		s.every("users")
		both := ""
		for line := range strings.Lines(everything) {
			if strings.HasPrefix(line, "#") {
				both += line
				continue
			}
			for _, class := range []string{"orders", "users"} {
				both += strings.Replace(line, "LABELS", `app="x",class="`+class+`"`, 1)
			}
		}
		compare(t, r, both, "")

		end, last := s.hold(t.Context(), processlock.MustKey("orders", 1), processlock.Shared), s.hold(t.Context(), processlock.MustKey("orders", 1))
		other := s.hold(t.Context(), processlock.MustKey("users", 1))
		want := strings.Split(gauges("orders", 1, 1), "# HELP processlock_waiting")
		users := strings.Split(gauges("users", 1, 0), "# HELP processlock_waiting")
		line := func(block string) string { return block[strings.LastIndex(strings.TrimSpace(block), "\n")+1:] }
		compare(t, r, want[0]+line(users[0])+"# HELP processlock_waiting"+want[1]+line(users[1]), "", "processlock_held", "processlock_waiting")
		assert.NoError(t, end())
		assert.NoError(t, last())
		assert.NoError(t, other())
	})
}

func itoa(n int) string { return string(rune('0' + n)) }

// firstPart is the first part of keys whose first part is a short word.
func firstPart(k processlock.Key) string {
	_, rest, _ := strings.Cut(k.String(), `"`)
	word, _, _ := strings.Cut(rest, `"`)
	return word
}

// A class that is no UTF-8 is shown as far as it is.
func TestClassThatIsNoTextIsReplaced(t *testing.T) {
	c := processlock.New(processlock.Options{})
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promlock.NewCollector(c, nil, promlock.Class(func(processlock.Key) string { return "a\xff" })))
	require.NoError(t, c.WithLock(t.Context(), "k", nothing))
	compare(t, r, `
# HELP processlock_acquired_total Locks that were obtained.
# TYPE processlock_acquired_total counter
processlock_acquired_total{class="a`+"\uFFFD"+`"} 1
`, "", "processlock_acquired_total")
}

// A class func that panics does so out of the call that locks, with the key
// released, and fails the scrape.
func TestClassThatPanics(t *testing.T) {
	c := processlock.New(processlock.Options{})
	ill := true
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(promlock.NewCollector(c, nil, promlock.Class(func(processlock.Key) string {
		if ill {
			panic("class's")
		}
		return "k"
	})))
	assert.PanicsWithValue(t, "class's", func() { _ = c.WithLock(t.Context(), "k", nothing) })
	ill = false
	require.NoError(t, c.WithLock(t.Context(), "k", func(context.Context) error {
		ill = true
		_, err := r.Gather()
		assert.ErrorContains(t, err, "class's")
		ill = false
		return nil
	}, processlock.IfAvailable))
}
