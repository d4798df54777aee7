package workload

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/dbx-tools/processlock/bench/contender"
)

// Units of what memory reports: per key while all are held, and in total when
// all have been released and the collector has run.
const (
	HeldPerKey = "held-B/key"
	Kept       = "kept-B"
)

// memory holds very many keys at once, and releases them. One round does: bytes
// are the same each time, and the time is mostly the collector's.
//
// A key is held by each level of a recursion, whose stack is not part of the
// heap, in not so many goroutines.
func memory(keys int) Workload {
	return Workload{Name: fmt.Sprintf("Memory/keys=%d", keys), Ops: keys, MaxRounds: 1, Fresh: true,
		Entrants: entrants(those(contender.Strings(), isExact), "", func(l contender.Lock[string]) Run {
			ks := names(keys)
			return Run{func(n int, m Meter) { burst(l, ks, m) }, nil}
		})}
}

func burst(l contender.Lock[string], keys []string, m Meter) {
	const goroutines = 100
	each := len(keys) / goroutines
	var here, held, released, done sync.WaitGroup
	begin, end, leave := make(chan struct{}), make(chan struct{}), make(chan struct{})
	here.Add(goroutines)
	held.Add(goroutines)
	released.Add(goroutines)
	for g := range goroutines {
		d := &diver{l: l, keys: keys[g*each : (g+1)*each], bottom: func() {
			held.Done()
			<-end
		}}
		d.fn = d.dive
		done.Go(func() {
			here.Done()
			<-begin
			_ = d.dive(background)
			released.Done()
			<-leave
		})
	}
	here.Wait()
	// What a table keeps for reuse anyway is not what the burst leaves behind.
	for _, k := range keys[:min(1000, len(keys))] {
		_ = l.Do(background, k, nothing)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // deep stacks are slow to scan
	before := heap()
	m.Start()
	close(begin)
	held.Wait()
	during := heap()
	close(end)
	released.Wait()
	after := heap()
	m.Stop()
	runtime.KeepAlive(l)
	close(leave)
	done.Wait()
	m.Report(float64(during-before)/float64(len(keys)), HeldPerKey)
	m.Report(float64(after-before), Kept)
}

// diver locks its keys inside each other. They are no lineage, so that depth is
// not what is measured: each is locked with a context of no descent.
type diver struct {
	l      contender.Lock[string]
	keys   []string
	bottom func()
	fn     func(context.Context) error
}

func (d *diver) dive(context.Context) error {
	if len(d.keys) == 0 {
		d.bottom()
		return nil
	}
	key := d.keys[0]
	d.keys = d.keys[1:]
	return d.l.Do(background, key, d.fn)
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools keep survives one collection
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
