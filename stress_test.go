package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// ctHouse is a coordinator with the floors of its keys and what its calls have
// come to. Only calls for one key are counted, so that the sums are exact.
type ctHouse struct {
	c      *processlock.Coordinator
	start  processlock.Stats
	floors [5]ctFloor

	entered, lost, unavailable, deadlocks, ended atomic.Int64
}

func ctNewHouse(c *processlock.Coordinator) *ctHouse {
	return &ctHouse{c: c, start: c.Stats()}
}

// check compares the counters with what the callers saw, once all is over.
func (h *ctHouse) check(t *testing.T) {
	t.Helper()
	for i := range h.floors {
		require.Zero(t, h.floors[i].bad.Load(), "two ran at once under one live hold")
		require.Zero(t, h.floors[i].exclusive.Load()+h.floors[i].shared.Load())
	}
	s := h.c.Stats()
	require.Equal(t, h.entered.Load(), s.Acquired-h.start.Acquired, "Acquired")
	require.Equal(t, h.lost.Load(), s.Lost-h.start.Lost, "Lost")
	require.Equal(t, h.unavailable.Load(), s.Unavailable-h.start.Unavailable, "Unavailable")
	require.Equal(t, h.deadlocks.Load(), s.Deadlocks-h.start.Deadlocks, "Deadlocks")
	// Some calls fail before the table, and are counted nowhere; and where a
	// client of another coordinator is closed, it is its context that ends.
	ended := s.Closed - h.start.Closed + s.Canceled - h.start.Canceled
	require.LessOrEqual(t, ended, h.ended.Load(), "Closed and Canceled")
	ctRequireIdle(t, h.c)
}

// count files a call by what it came to.
func (h *ctHouse) count(err error, entered, reentrant bool) {
	switch {
	case entered:
		h.entered.Add(1)
		if errors.Is(err, processlock.ErrLost) && !reentrant {
			h.lost.Add(1)
		}
	case errors.Is(err, processlock.ErrUnavailable):
		h.unavailable.Add(1)
	case errors.Is(err, processlock.ErrDeadlock):
		h.deadlocks.Add(1)
	default:
		h.ended.Add(1)
	}
}

// ctActor is one goroutine of the stress, with the worker that it is now.
type ctActor struct {
	t      *testing.T
	rnd    *rand.Rand
	worker *ctWorker
	houses []*ctHouse // the last is Default's
	victim *atomic.Pointer[ctHouse]
	calm   bool // its fns don't panic, so that what is lost can be counted
}

// Every exported function and method in random order from many goroutines, with
// the collector running now and then. In the end nothing is held, waits, runs
// or is missing from the counters. PROCESSLOCK_STRESS sets how long it takes.
//
// Rules 1, 16, 31, 32, 34, 35, 38 and 41.
func TestStressEverything(t *testing.T) {
	d := time.Second
	if s := os.Getenv("PROCESSLOCK_STRESS"); s != "" {
		var err error
		d, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	base := runtime.NumGoroutine()
	houses := []*ctHouse{
		ctNewHouse(processlock.New(processlock.Options{MaxWaiters: 6})),
		ctNewHouse(processlock.New(processlock.Options{TrackHolds: true})),
		ctNewHouse(processlock.Default()),
	}
	var victim atomic.Pointer[ctHouse]
	victim.Store(ctNewHouse(&processlock.Coordinator{}))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	until := time.Now().Add(d)
	var steps [64]atomic.Int64
	var all sync.WaitGroup
	for g := range uint64(8) {
		all.Go(func() {
			a := &ctActor{t: t, rnd: rand.New(rand.NewPCG(seed, g)), houses: houses, victim: &victim}
			for time.Now().Before(until) && !t.Failed() {
				if a.worker == nil {
					a.worker = ctNewWorker(a.house().c, context.Background())
				}
				i := a.rnd.IntN(len(ctActions))
				ctActions[i].run(a)
				steps[i].Add(1)
				if a.rnd.IntN(2000) == 0 {
					runtime.GC()
				}
			}
			if a.worker != nil {
				a.worker.kill()
			}
		})
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(d + 20*time.Second):
		for _, h := range append(houses, victim.Load()) {
			t.Logf("%+v", h.c.Snapshot())
		}
		t.Fatal("somebody waits for ever")
	}
	for i, a := range ctActions {
		require.NotZero(t, steps[i].Load(), "%s was never done", a.name)
	}
	require.NoError(t, victim.Load().c.Shutdown(t.Context()))
	for _, h := range append(houses, victim.Load()) {
		h.check(t)
	}
	for end := time.Now().Add(ctBound(t)); runtime.NumGoroutine() > base; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d at the start", runtime.NumGoroutine(), base)
		}
	}
	t.Logf("%d fns ran", houses[0].entered.Load()+houses[1].entered.Load()+houses[2].entered.Load())
}

// The stress does everything that the package exports: what is new has to be
// added to its list.
//
// Rule 16.
func TestStressKnowsEveryExportedFunction(t *testing.T) {
	var want, got []string
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() {
				if name := ctFuncName(fn); name != "" {
					want = append(want, name)
				}
			}
		}
	}
	for _, a := range ctActions {
		got = append(got, a.name)
	}
	require.Greater(t, len(want), 25)
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got, "what the package exports, and the stress's actions")
}

// ctFuncName is T.Method, or Func; empty if T is not exported.
func ctFuncName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	name := typ.(*ast.Ident)
	if !name.IsExported() {
		return ""
	}
	return name.Name + "." + fn.Name.Name
}

// What one fn writes, in many steps, the next sees whole, whichever way the key
// came to it.
//
// Rules 7 and 38.
func TestValueWrittenUnderOneHoldIsSeenWholeUnderTheNext(t *testing.T) {
	var c processlock.Coordinator
	type record struct {
		n    int
		text string
		list []int
		m    map[int]int
	}
	r := record{m: make(map[int]int)}
	whole := func() error {
		if r.text != fmt.Sprint(r.n) || len(r.list) != r.n%16 || len(r.m) != r.n%16 {
			return fmt.Errorf("torn: %d %q %v %v", r.n, r.text, r.list, r.m)
		}
		return nil
	}
	r.text = "0"
	var writes atomic.Int64
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			ctx, client := c.WithClient(context.Background(), "w")
			defer client.Close()
			for i := range 400 {
				var opts []processlock.Option
				write := (g+i)%3 == 0
				if !write {
					opts = append(opts, processlock.Shared)
				}
				var key any = "k"
				if (g+i)%7 == 0 {
					key = processlock.All("k", i)
				}
				err := c.WithLock(ctx, key, func(context.Context) error {
					if err := whole(); err != nil || !write {
						return err
					}
					writes.Add(1)
					r.n++
					if r.n%16 == 0 {
						r.list, r.m = nil, make(map[int]int)
					} else {
						r.list = append(r.list, r.n)
						r.m[r.n] = r.n
					}
					ctYield(i % 2)
					r.text = fmt.Sprint(r.n)
					return nil
				}, opts...)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, writes.Load(), r.n)
	ctRequireIdle(t, &c)
}
