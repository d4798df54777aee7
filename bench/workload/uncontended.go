package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/bench/contender"
)

// uncontended locks free keys from one goroutine.
func uncontended() []Workload {
	var ws []Workload
	for _, n := range []int{1, 1024, 65536} {
		strings := func() []string { return names(n) }
		ints := keysOf(n, func(i int) int { return i })
		structs := keysOf(n, func(i int) Tenant { return Tenant{"eu", i} })
		prebuilt := keysOf(n, func(i int) processlock.Key { return processlock.MustKey("tenant-" + fmt.Sprint(i)) })

		var es []Entrant
		for _, c := range slices.Concat(contender.Strings(), []contender.Contender[string]{contender.Method, contender.UnderClient}, contender.Limits()) {
			es = append(es, serial(c, "key=string", strings))
		}
		for _, c := range few(contender.Keyed[int]()) {
			es = append(es, serial(c, "key=int", ints))
		}
		for _, c := range few(contender.Keyed[Tenant]()) {
			es = append(es, serial(c, "key=struct", structs))
		}
		for _, c := range few(contender.Keyed[processlock.Key]()) {
			es = append(es, serial(c, "key=Key", prebuilt))
		}
		es = append(es, serial(lists, "key=list", ints))
		ws = append(ws, Workload{Name: fmt.Sprintf("Uncontended/keys=%d", n), Entrants: es})
	}
	return ws
}

// few are those worth a row for keys of other types.
func few[K comparable](cs []contender.Contender[K]) []contender.Contender[K] {
	return slices.DeleteFunc(cs, func(c contender.Contender[K]) bool {
		return c.Name != "processlock" && c.Name != "map+Mutex" && c.Name != "map+Weighted"
	})
}

// lists makes the key where it is used, as callers do.
var lists = contender.Contender[int]{Name: "processlock", Kind: contender.Ours,
	Guarantees: contender.Processlock[any]().Guarantees,
	New:        func() contender.Lock[int] { return listLock{} }}

type listLock struct{}

func (listLock) Do(ctx context.Context, k int, fn func(context.Context) error) error {
	return processlock.WithLock(ctx, []any{"invoice", k}, fn)
}

func serial[K any](c contender.Contender[K], variant string, keys func() []K) Entrant {
	return entrant(c, variant, func(l contender.Lock[K]) Run {
		ks := keys()
		ctx, cancel := cancellable()
		next := 0 // a run goes on where the last one stopped
		return Run{func(n int, _ Meter) {
			i := next
			for range n {
				_ = l.Do(ctx, ks[i], nothing)
				if i++; i == len(ks) {
					i = 0
				}
			}
			next = i
		}, cancel}
	})
}
