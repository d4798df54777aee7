package main

import "time"

// result is what the run came to.
type result struct {
	folders []string
	found   []bool // by folder: an earlier run's artifact was right
	corrupt int    // how many artifacts of an earlier run were not
	builds  []int64
	wrong   []string // the folders whose artifact is not right at the end

	requests int64
	peak     int64
	waits    int64
	waited   time.Duration
	longest  wait
	took     time.Duration
}

// tally takes over what the crowd has counted; the crowd must be done.
func (r *result) tally(c *crowd) {
	r.requests = c.requests.Load()
	r.peak = c.peak.Load()
	for i := range c.builds {
		r.builds = append(r.builds, c.builds[i].Load())
	}
	for _, w := range c.longest {
		if w.time > r.longest.time {
			r.longest = w
		}
	}
}

// times is how often the i-th folder's artifact was built, by an earlier run
// too; once is right.
func (r *result) times(i int) int64 {
	if r.found[i] {
		return 1 + r.builds[i]
	}
	return r.builds[i]
}

// totals returns how many builds there were, and how many artifacts of an
// earlier run that made one needless.
func (r *result) totals() (builds, found int64) {
	for _, n := range r.builds {
		builds += n
	}
	for _, f := range r.found {
		if f {
			found++
		}
	}
	return builds, found
}

// finished is how many of the folders have their artifact.
func (r *result) finished() (n int64) {
	for i := range r.builds {
		if r.times(i) > 0 {
			n++
		}
	}
	return n
}

// notOnce returns the indexes of the folders that were built more than once,
// and of those that were not built at all: somebody else must have done it.
func (r *result) notOnce() (more, never []int) {
	for i := range r.folders {
		switch n := r.times(i); {
		case n > 1:
			more = append(more, i)
		case n < 1:
			never = append(never, i)
		}
	}
	return more, never
}

func (r *result) good() bool {
	more, never := r.notOnce()
	return len(more) == 0 && len(never) == 0 && len(r.wrong) == 0
}
