package workload

import (
	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/bench/contender"
)

// Unhooked and Hooked are the names of those that have had hooks, and have them.
const Unhooked, Hooked = "processlock.unhooked", "processlock.hooked"

// hooks locks a free key where nobody looks, where somebody did and has gone, and
// where somebody looks.
func hooks() []Workload {
	none := func(processlock.Event) {}
	all := processlock.Hooks{Waiting: none, Acquired: none, Released: none, Failed: none}
	entry := func(name, note string, prepare func(c *processlock.Coordinator)) Entrant {
		promises := contender.Processlock[string]().Guarantees
		promises.Note = note
		return Entrant{name, "", contender.Ours, promises, func() Run {
			c := processlock.New(processlock.Options{})
			prepare(c)
			ctx, cancel := cancellable()
			ctx = processlock.WithCoordinator(ctx, c)
			return Run{func(n int, _ Meter) {
				for range n {
					_ = processlock.WithLock(ctx, "tenant-0", nothing)
				}
			}, cancel}
		}}
	}
	return []Workload{{Name: "Hooks", Entrants: []Entrant{
		entry("processlock", "without hooks", func(*processlock.Coordinator) {}),
		entry(Unhooked, "hooks were added, and removed", func(c *processlock.Coordinator) { c.AddHooks(all)() }),
		entry(Hooked, "four hooks that do nothing", func(c *processlock.Coordinator) { c.AddHooks(all) }),
	}}}
}
