// Package workload has what contenders are made to do. Each workload runs as a
// Go benchmark and in the report.
package workload

import (
	"context"
	"slices"
	"strings"

	"github.com/dbx-tools/processlock/bench/contender"
)

// Meter is what a run measures with. The clock runs when a run begins, unless
// the workload fixes Ops; a run that has to prepare something starts it anew.
type Meter interface {
	Start()
	Stop()
	Report(value float64, unit string)
}

// Workload is a task and those who do it, who take turns.
type Workload struct {
	Name     string // as of a benchmark: Hot/goroutines=8
	Entrants []Entrant

	Ops       int  // of a run; 0: as many as fill the time
	MinOps    int  // fewer would leave somebody without work
	MaxRounds int  // for what takes long; 0: no limit
	Procs     int  // GOMAXPROCS; 0: as it is
	Fresh     bool // set up anew for each run: too large to keep, or used up by it
}

// Entrant is a contender at one workload.
type Entrant struct {
	Name    string
	Variant string // k=v, where a contender enters more than once
	Kind    contender.Kind
	contender.Guarantees
	Setup func() Run
}

// Label is the entrant's part of a benchmark's name. There a slash ends a pair,
// so moby/locker has none.
func (e Entrant) Label() string { return Label(e.Name, e.Variant) }

// Label is that of the entrant of a name and variant.
func Label(name, variant string) string {
	label := "impl=" + strings.NewReplacer("/", "_", " ", "_").Replace(name)
	if variant != "" {
		label += "/" + variant
	}
	return label
}

// Run is an entrant that is ready.
type Run struct {
	Do    func(n int, m Meter) // n operations
	Close func()               // or nil
}

// Size scales what is too large for a quick look.
type Size struct {
	Burst   int // keys held at once
	Turns   int // of wait percentiles
	Crowd   int // waiters in the long queue
	Nested  int // waiters around a deadlock search
	Cancels int
	Tasks   int // of a pool
}

var (
	Full  = Size{Burst: 1_000_000, Turns: 16_000, Crowd: 100_000, Nested: 10_000, Cancels: 1000, Tasks: 50_000}
	Quick = Size{Burst: 100_000, Turns: 2_000, Crowd: 20_000, Nested: 2_000, Cancels: 500, Tasks: 10_000}
)

// All are the workloads, those that leave the largest heap last.
func All(s Size) []Workload {
	return slices.Concat(
		uncontended(),
		nested(),
		several(),
		clientLife(),
		hooks(),
		disjoint(),
		[]Workload{zipf()},
		hot(),
		shared(),
		[]Workload{storm(), percentiles(s.Turns)},
		pools(s.Tasks),
		cancelMiddle(s),
		[]Workload{search(s.Nested), disjointGrowth(), memory(s.Burst)},
	)
}

func nothing(context.Context) error { return nil }

func entrant[K any](c contender.Contender[K], variant string, setup func(l contender.Lock[K]) Run) Entrant {
	return Entrant{c.Name, variant, c.Kind, c.Guarantees, func() Run {
		l := c.New()
		r := setup(l)
		inner := r.Close
		r.Close = func() {
			if inner != nil {
				inner()
			}
			contender.Close(l)
		}
		return r
	}}
}

func entrants(cs []contender.Contender[string], variant string, setup func(l contender.Lock[string]) Run) []Entrant {
	var es []Entrant
	for _, c := range cs {
		es = append(es, entrant(c, variant, setup))
	}
	return es
}

func those(cs []contender.Contender[string], which func(contender.Contender[string]) bool) []contender.Contender[string] {
	return slices.DeleteFunc(slices.Clone(cs), func(c contender.Contender[string]) bool { return !which(c) })
}

func isExact(c contender.Contender[string]) bool { return c.Exact }
func hasCtx(c contender.Contender[string]) bool  { return c.Ctx }

// cancellable is what servers pass: a context that could end.
func cancellable() (context.Context, func()) {
	return context.WithCancel(context.Background())
}
