package locktest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
)

var entriesRule = rule{34, "no_entries", []check{
	// Keys so long that whoever keeps their text is found out. Their memory is
	// compared, so that nothing else may run beside this check.
	{"a_burst_of_keys", 0, func(k *kit) {
		const burst, size = 256, 4096
		tail := strings.Repeat("x", size)
		before := heap()
		c := k.startThen(k.ctx, k.key("driver"), func(context.Context) error {
			for i := range burst {
				if err := k.l.WithLock(k.ctx, fmt.Sprint(k.key("burst"), i, tail), nop); err != nil {
					return err
				}
			}
			return nil
		}).open()
		k.closesWithin(c.over, time.Minute)
		k.served(c)
		if grown := heap() - before; grown > burst*size/2 {
			k.fail("after %d keys of %d B each the heap has grown by %d B", burst, size, grown)
		}
	}},
}}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// In a bubble nothing has to be counted: one that goroutines stay behind in
// fails its check.
var nothingLeftRule = rule{35, "nothing_left", []check{
	{"served", noGoroutines, func(k *kit) {
		k.leaves(func() {
			k.served(k.do(k.ctx, k.key("a"), nop))
			a := k.hold(k.key("a"))
			b := k.waits(k.start(k.ctx, k.key("a")).open())
			a.open()
			k.served(a)
			k.served(b)
		})
	}},
	{"canceled", noGoroutines, func(k *kit) {
		k.leaves(func() {
			ctx, cancel := context.WithCancel(k.ctx)
			a := k.hold(k.key("a"))
			b := k.waits(k.start(ctx, k.key("a")))
			cancel()
			k.refused(b)
			a.open()
			k.served(a)
		})
	}},
	{"refused", noGoroutines, func(k *kit) {
		k.leaves(func() {
			a := k.hold(k.key("a"))
			k.held(k.key("a"))
			b := k.start(k.ctx, k.key("a"), processlock.MaxWait(k.timeout()))
			k.closesWithin(b.over, time.Hour)
			k.refused(b)
			k.refused(k.do(k.ctx, make(chan int), nop))
			a.open()
			k.served(a)
		})
	}},
	{"unwound", noGoroutines, func(k *kit) {
		k.leaves(func() {
			k.do(k.ctx, k.key("a"), func(context.Context) error { panic(errCause) })
			k.do(k.ctx, k.key("a"), func(context.Context) error { runtime.Goexit(); return nil })
		})
	}},
	{"granted_under_max_wait", noGoroutines, func(k *kit) {
		k.leaves(func() {
			ctx, cancel := context.WithTimeout(k.ctx, time.Hour)
			defer cancel()
			a := k.hold(k.key("a"))
			b := k.waits(k.start(ctx, k.key("a"), processlock.MaxWait(time.Hour)).open())
			a.open()
			k.served(a)
			k.served(b)
		})
	}},
	{"all", noGoroutines | all, func(k *kit) {
		k.leaves(func() {
			a := k.hold(processlock.All(k.key("a"), k.key("b")))
			b := k.waits(k.start(k.ctx, processlock.All(k.key("b"), k.key("c"))).open())
			a.open()
			k.served(a)
			k.served(b)
		})
	}},
	{"nested", noGoroutines | lineage, func(k *kit) {
		k.leaves(func() {
			a := k.hold(k.key("a"))
			k.refused(k.start(a.ctx, k.key("a")))
			a.open()
			k.served(a)
		})
	}},
}}

// leaves runs do until it has brought up no new goroutine, on real time.
func (k *kit) leaves(do func()) {
	k.Helper()
	if !k.opts.RealTime {
		do()
		return
	}
	do() // what is made once and for all
	before := runtime.NumGoroutine()
	for range 5 {
		do()
	}
	if !k.until(func() bool { return runtime.NumGoroutine() < before+5 }) {
		k.fail("%d goroutines before, %d after", before, runtime.NumGoroutine())
	}
}
