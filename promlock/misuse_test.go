package promlock_test

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/promlock"
)

func TestMisusePanics(t *testing.T) {
	var c processlock.Coordinator
	class := promlock.Class(firstPart)
	for want, do := range map[string]func(){
		"promlock: nil *Coordinator":                                          func() { promlock.NewCollector(nil, nil) },
		"promlock: nil Option":                                                func() { promlock.NewCollector(&c, nil, class, nil) },
		"promlock: nil func for Class":                                        func() { promlock.Class(nil) },
		"promlock: no bounds for Buckets":                                     func() { promlock.Buckets() },
		"promlock: bounds for Buckets that don't ascend":                      func() { promlock.Buckets(1, 1) },
		"promlock: labels have class, which is Class's; name yours otherwise": func() { promlock.NewCollector(&c, prometheus.Labels{"class": "x"}, class) },
		"promlock: labels have le, which is the histograms'; name yours otherwise": func() {
			promlock.NewCollector(&c, prometheus.Labels{"le": "x"}, class)
		},
	} {
		assert.PanicsWithValue(t, want, do)
	}
	assert.Panics(t, func() { promlock.Buckets(math.NaN()) })
}

// What Prometheus doesn't accept is for Register to say, and for no lock to
// suffer from.
func TestBadLabelsAreAnErrorOfRegister(t *testing.T) {
	for _, opts := range [][]promlock.Option{nil, {promlock.Class(func(processlock.Key) string { return "\xff\x00" })}} {
		c := processlock.New(processlock.Options{})
		bad := promlock.NewCollector(c, prometheus.Labels{"pool": "\xff"}, opts...)
		require.NoError(t, c.WithLock(t.Context(), "k", nothing))
		assert.Error(t, prometheus.NewRegistry().Register(bad))
		bad.Close()
	}
}
