package promlock

import (
	"math"
	"slices"

	"github.com/dbx-tools/processlock"
)

// An Option of [NewCollector] is [Class] or [Buckets].
type Option interface{ apply(*settings) }

type settings struct {
	class   func(processlock.Key) string
	buckets []float64
}

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// Class gives each metric a label class, with the class that of returns for the
// key: the kind of thing that it locks, such as "invoice". Each class is a
// series of every metric for as long as the process runs, so return few, never
// what is part of a key without number.
//
// of is called by the goroutines that lock, for each event, and by those that
// scrape, at once. If it panics, so does the call that locks, as with a hook of
// [processlock.Hooks], and a scrape fails. It must not wait for locks of the same
// Coordinator. Bytes that are not UTF-8 are replaced in what it returns. Class
// panics if of is nil.
func Class(of func(processlock.Key) string) Option {
	if of == nil {
		misuse("nil func for Class")
	}
	return optionFunc(func(s *settings) { s.class = of })
}

// Buckets sets the upper bounds, in seconds and ascending, of both histograms.
// The default, 10 us to 42 s by factors of 4, serves locks of unknown use; a
// quantile is as exact as its bucket, so put bounds where your objectives are.
// It panics if there are none or they don't ascend.
func Buckets(seconds ...float64) Option {
	if len(seconds) == 0 {
		misuse("no bounds for Buckets")
	}
	for i, b := range seconds {
		if math.IsNaN(b) || i > 0 && b <= seconds[i-1] {
			misuse("bounds for Buckets that don't ascend")
		}
	}
	seconds = slices.Clone(seconds)
	return optionFunc(func(s *settings) { s.buckets = seconds })
}
