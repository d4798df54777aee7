package proof

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime/trace"
	"slices"
	"testing"
	"time"

	xtrace "golang.org/x/exp/trace"

	"github.com/dbx-tools/processlock"
)

// region is one that a trace shows.
type region struct {
	kind, task string
	logs       []string // with its kind as their category, while it lasted
	depth      int      // regions around it
}

// An execution trace has a region for every wait and every hold, in the task of
// the request's context, with the keys in its log. A region that isn't ended on
// its own goroutine, innermost first, is none: the reader below would not pair it.
func TestTraceShowsRegionsWithTheirKeys(t *testing.T) {
	var b bytes.Buffer
	if err := trace.Start(&b); err != nil {
		t.Fatal(err)
	}
	c := processlock.New(processlock.Options{})
	nothing := func(context.Context) error { return nil }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	do := func(name string, run func(ctx context.Context)) {
		ctx, task := trace.NewTask(context.Background(), name)
		defer task.End()
		run(ctx)
	}

	do("free", func(ctx context.Context) { check(c.WithLock(ctx, []any{"invoice", 7}, nothing)) })
	do("nested", func(ctx context.Context) {
		check(c.WithLock(ctx, "outer", func(ctx context.Context) error {
			check(c.WithLock(ctx, "outer", nothing, processlock.Reentrant)) // under the hold that is there
			return c.WithLock(ctx, "inner", nothing)
		}))
	})
	do("all", func(ctx context.Context) {
		check(c.WithLock(ctx, "b", func(ctx context.Context) error {
			return c.WithLock(ctx, processlock.All("a", "b", "c"), nothing, processlock.Reentrant)
		}))
	})
	held, over := make(chan struct{}), make(chan struct{})
	go do("holder", func(ctx context.Context) {
		check(c.WithLock(ctx, "k", func(context.Context) error { close(held); <-over; return nil }))
	})
	<-held
	do("gives up", func(ctx context.Context) {
		if err := c.WithLock(ctx, "k", nothing, processlock.MaxWait(time.Microsecond)); !errors.Is(err, processlock.ErrWaitTimeout) {
			t.Error(err)
		}
	})
	waited := make(chan struct{})
	go do("waits", func(ctx context.Context) {
		defer close(waited)
		check(c.WithLock(ctx, "k", nothing))
	})
	for c.Stats().Waiting == 0 {
		time.Sleep(time.Microsecond)
	}
	close(over)
	<-waited
	do("panics", func(ctx context.Context) {
		defer func() { _ = recover() }()
		_ = c.WithLock(ctx, "p", func(context.Context) error { panic("fn's") })
	})
	if err := c.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	trace.Stop()

	const wait, hold = "processlock.wait", "processlock.hold"
	got := readRegions(t, &b)
	for task, want := range map[string][]region{
		"free":     {{kind: hold, logs: []string{`["invoice",7]`}}},
		"nested":   {{kind: hold, logs: []string{`["outer"]`, `["inner"]`}}, {kind: hold, logs: []string{`["inner"]`}, depth: 1}},
		"all":      {{kind: hold, logs: []string{`["b"]`, `["a"]`, `["c"]`}}, {kind: hold, logs: []string{`["a"]`, `["c"]`}, depth: 1}},
		"holder":   {{kind: hold, logs: []string{`["k"]`}}},
		"gives up": {{kind: wait, logs: []string{`["k"]`}}},
		"waits":    {{kind: wait, logs: []string{`["k"]`}}, {kind: hold, logs: []string{`["k"]`}}},
		"panics":   {{kind: hold, logs: []string{`["p"]`}}},
	} {
		if !slices.EqualFunc(got[task], want, func(a, b region) bool {
			return a.kind == b.kind && a.depth == b.depth && slices.Equal(a.logs, b.logs)
		}) {
			t.Errorf("%s: %+v, want %+v", task, got[task], want)
		}
	}
}

// readRegions returns the regions of a trace that are ours and have ended, by
// task, in the order in which they began.
func readRegions(t *testing.T, r io.Reader) map[string][]region {
	t.Helper()
	reader, err := xtrace.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	tasks := make(map[xtrace.TaskID]string)
	open := make(map[xtrace.GoID][]*region)
	began := make(map[string][]*region)
	ended := make(map[*region]bool)
	for {
		e, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		g := e.Goroutine()
		switch e.Kind() {
		case xtrace.EventTaskBegin:
			tasks[e.Task().ID] = e.Task().Type
		case xtrace.EventRegionBegin:
			r := &region{kind: e.Region().Type, task: tasks[e.Region().Task], depth: len(open[g])}
			open[g] = append(open[g], r)
			began[r.task] = append(began[r.task], r)
		case xtrace.EventRegionEnd:
			n := len(open[g]) - 1
			if n < 0 || open[g][n].kind != e.Region().Type {
				t.Fatalf("%s ends, but is not the innermost", e.Region().Type)
			}
			ended[open[g][n]] = true
			open[g] = open[g][:n]
		case xtrace.EventLog:
			for _, r := range open[g] {
				if r.kind == e.Log().Category && r.task == tasks[e.Log().Task] {
					r.logs = append(r.logs, e.Log().Message)
				}
			}
		}
	}
	regions := make(map[string][]region)
	for task, rs := range began {
		for _, r := range rs {
			if !ended[r] {
				t.Errorf("%s of %s has not ended", r.kind, task)
			}
			regions[task] = append(regions[task], *r)
		}
	}
	return regions
}
