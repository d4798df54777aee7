// Package measure has entrants take turns at a workload.
package measure

import (
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/dbx-tools/processlock/bench/workload"
)

// Units that every run has.
const (
	NsPerOp     = "ns/op"
	BytesPerOp  = "B/op"
	AllocsPerOp = "allocs/op"
)

// Options say how much to measure.
type Options struct {
	Rounds int
	Time   time.Duration // that a run should take
}

// Sample is one run of one entrant.
type Sample struct {
	Workload string
	Impl     string
	Variant  string
	Round    int
	Ops      int
	Values   map[string]float64 // by unit
}

// Run measures w: in each round every entrant once, in another order each round,
// so that what disturbs the machine for a while hits all alike. If the machine was
// slower around a turn than it can be the turn is taken again, up to three times,
// unless the workload takes long.
func Run(w workload.Workload, o Options) []Sample {
	if w.Procs > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(w.Procs))
	}
	kept := make([]workload.Run, len(w.Entrants))
	ops := make([]int, len(w.Entrants))
	turn := func(i, n int) map[string]float64 {
		run := kept[i]
		if run.Do == nil {
			run = w.Entrants[i].Setup()
			if !w.Fresh {
				kept[i] = run
			}
		}
		values := once(run, n)
		if w.Fresh && run.Close != nil {
			run.Close()
		}
		return values
	}
	defer func() {
		for _, run := range kept {
			if run.Close != nil {
				run.Close()
			}
		}
	}()

	for i := range w.Entrants {
		if ops[i] = w.Ops; w.Ops == 0 {
			ops[i] = calibrate(max(1, w.MinOps), o.Time, func(n int) float64 { return turn(i, n)[NsPerOp] })
		}
	}
	rounds := o.Rounds
	if w.MaxRounds > 0 {
		rounds = min(rounds, w.MaxRounds)
	}
	var samples []Sample
	p := new(pace)
	for r := range rounds {
		for _, i := range rand.New(rand.NewPCG(uint64(r), 1)).Perm(len(w.Entrants)) {
			e := w.Entrants[i]
			calm := p.calm
			if w.MaxRounds > 0 { // it takes long
				calm = func() bool { return true }
			}
			values := calmly(calm, func() map[string]float64 { return turn(i, ops[i]) })
			samples = append(samples, Sample{w.Name, e.Name, e.Variant, r, ops[i], values})
		}
	}
	return samples
}

// tries is how often a turn is taken until the machine is calm before and after.
const tries = 4

func calmly(calm func() bool, turn func() map[string]float64) (values map[string]float64) {
	for range tries {
		before := calm()
		values = turn()
		runtime.GC() // or who allocates would find his own collection in the way
		if after := calm(); before && after {
			break
		}
	}
	return values
}

// calibrate returns how many operations fill the time: at least so many. A run
// that was long is repeated before it is believed: if only the machine had been
// away, too few operations would be measured in all the rounds to come.
func calibrate(least int, fill time.Duration, nsPerOp func(n int) float64) int {
	want := float64(fill)
	for n := least; ; {
		took := math.Inf(1)
		for range 3 {
			took = min(took, nsPerOp(n)*float64(n))
			if took < want/4 || took >= want && n == least && least > 1 {
				break
			}
		}
		took = max(took, 1)
		if took >= want/4 || n >= 1e9 {
			return max(least, int(float64(n)*want/took))
		}
		n = int(float64(n) * min(50, want/took))
	}
}

func once(run workload.Run, n int) map[string]float64 {
	m := &meter{values: make(map[string]float64)}
	runtime.GC() // of what others have left
	m.Start()
	run.Do(n, m)
	m.Stop()
	per := float64(n)
	m.values[NsPerOp] = float64(m.took) / per
	m.values[BytesPerOp] = float64(m.to.TotalAlloc-m.from.TotalAlloc) / per
	m.values[AllocsPerOp] = float64(m.to.Mallocs-m.from.Mallocs) / per
	return m.values
}

type meter struct {
	values   map[string]float64
	started  time.Time
	took     time.Duration
	from, to runtime.MemStats
	running  bool
}

func (m *meter) Start() {
	runtime.ReadMemStats(&m.from)
	m.running = true
	m.started = time.Now()
}

func (m *meter) Stop() {
	if !m.running {
		return
	}
	m.took = time.Since(m.started)
	m.running = false
	runtime.ReadMemStats(&m.to)
}

func (m *meter) Report(value float64, unit string) { m.values[unit] = value }
