package proof

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
)

// Everything exported, at random, from many goroutines, for as long as -soak
// says. In the end nothing is held, nothing is left in memory, no goroutine is
// left, and the counters are what the callers saw.
func TestSoak(t *testing.T) {
	for _, opts := range []processlock.Options{{}, {TrackHolds: true, MaxWaiters: 4}} {
		s := &soaker{c: processlock.New(opts)}
		s.run(t, *soak/2)
		s.tally.check(t, s.c)
		st := s.c.Stats()
		t.Logf("%+v", st)
		for what, n := range map[string]int64{
			"Waited": st.Waited, "Canceled": st.Canceled, "Unavailable": st.Unavailable, "Deadlocks": st.Deadlocks, "Closed": st.Closed, "Lost": st.Lost,
		} {
			if n == 0 {
				t.Errorf("the soak tests nothing: %s is 0", what)
			}
		}
		if err := s.c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// rounds is how often the soak comes to rest to look at what is left.
const rounds = 8

func (s *soaker) run(t *testing.T, d time.Duration) {
	goroutines := runtime.NumGoroutine()
	var heaps [rounds]uint64
	for round := range rounds {
		end := time.Now().Add(d / rounds)
		var wg sync.WaitGroup
		for range 12 {
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			wg.Go(func() {
				for time.Now().Before(end) {
					s.action(context.Background(), r, 0)
				}
			})
		}
		wg.Go(func() {
			for time.Now().Before(end) {
				runtime.GC()
				time.Sleep(10 * time.Millisecond)
			}
		})
		wg.Wait()
		heaps[round] = settledHeap()
		if left := s.c.Snapshot().Locks; len(left) > 0 {
			t.Fatalf("left over after round %d: %+v", round, left)
		}
	}
	// Timers that were about to fire may still run.
	for wait := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(wait); {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d at the start", n, goroutines)
	}
	// The first rounds fill the pools; what grows later is a leak.
	const slack = 256 << 10
	if early, late := max(heaps[0], heaps[1], heaps[2]), heaps[rounds-1]; late > early+slack {
		t.Errorf("the heap grows: %v", heaps)
	}
}

// settledHeap is what is alive.
func settledHeap() uint64 {
	runtime.GC()
	runtime.GC() // the pools' victims
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The soak names every exported function and method of the library.
func TestSoakCoversTheAPI(t *testing.T) {
	used := make(map[string]bool)
	eachFile(t, ".", "soak_*_test.go", func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				used[s.Sel.Name] = true
			}
			return true
		})
	})
	exported := 0
	eachFile(t, filepath.Join("..", ".."), "*.go", func(f *ast.File) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || fn.Recv != nil && !ast.IsExported(receiver(fn)) {
				continue
			}
			exported++
			if !used[fn.Name.Name] {
				t.Errorf("%s %s is not part of the soak", receiver(fn), fn.Name.Name)
			}
		}
	})
	if exported < 25 {
		t.Errorf("only %d exported functions were found", exported)
	}
}

// receiver is the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	typ := fn.Recv.List[0].Type
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func eachFile(t *testing.T, dir, pattern string, do func(*ast.File)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(pattern, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		do(f)
	}
}
