package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// The command runs itself again as one of several processes, which these tell
// what to do.
const (
	taskVariable = "BENCH_TASK"
	dsnVariable  = "BENCH_DSN"
)

func isWorker() bool { return os.Getenv(taskVariable) != "" }

// task is what one process does.
type task struct {
	Way        string
	Goroutines int
	OwnKeys    bool // a key for each goroutine, which nobody else wants
	Span       time.Duration
	Hold       time.Duration // how long fn takes; 0: nothing
}

// result is what one process has done.
type result struct {
	Turns int64
	// Gap is the longest time between two turns of the process.
	Gap time.Duration
}

// worker does a task between the line that tells it to begin and the end of its
// span.
func worker(ctx context.Context) error {
	var t task
	if err := json.Unmarshal([]byte(os.Getenv(taskVariable)), &t); err != nil {
		return err
	}
	w, err := open(ctx, os.Getenv(dsnVariable), t.Way, t.Goroutines)
	if err != nil {
		return err
	}
	defer w.stop()
	if err := warm(ctx, w, t); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	r, err := t.run(ctx, w)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// warm opens the connections.
func warm(ctx context.Context, w *way, t task) error {
	var wg sync.WaitGroup
	errs := make([]error, t.Goroutines)
	for i := range t.Goroutines {
		wg.Go(func() {
			errs[i] = w.lock(ctx, fmt.Sprintf("warm %d %d", os.Getpid(), i), func(context.Context) error {
				time.Sleep(10 * time.Millisecond)
				return nil
			})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// run takes turns until the span is over.
func (t task) run(ctx context.Context, w *way) (result, error) {
	var (
		wg        sync.WaitGroup
		turns     atomic.Int64
		last, gap atomic.Int64
		failed    atomic.Pointer[error]
	)
	begin := time.Now()
	deadline, cancel := context.WithDeadline(ctx, begin.Add(t.Span))
	defer cancel()
	for i := range t.Goroutines {
		var key any = "hot"
		if t.OwnKeys {
			key = fmt.Sprintf("own %d %d", os.Getpid(), i)
		}
		fn := func(context.Context) error {
			n := turns.Add(1)
			if t.Hold > 0 {
				time.Sleep(t.Hold)
			}
			// One clock reading in 64 turns: the gaps that count are longer.
			if !t.OwnKeys && n%64 == 0 || n < 64 {
				now := int64(time.Since(begin))
				gap.Store(max(gap.Load(), now-last.Swap(now)))
			}
			return nil
		}
		wg.Go(func() {
			for time.Since(begin) < t.Span {
				// The context has no end: by hand a wait that is cut off costs its
				// connection, which is not what is measured.
				if err := w.lock(ctx, key, fn); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	<-deadline.Done()
	r := result{turns.Load(), time.Duration(gap.Load())}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return r, *err
	}
	return r, nil
}

// spread has several processes do the task at the same time.
func (m *measurer) spread(t task, processes int) ([]result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	type process struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	var all []process
	defer func() {
		for _, p := range all {
			_ = p.in.Close()
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	}()
	for range processes {
		cmd := exec.CommandContext(m.ctx, self)
		cmd.Env = append(os.Environ(), taskVariable+"="+string(text), dsnVariable+"="+m.db.DSN())
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		all = append(all, process{cmd, in, bufio.NewReader(out)})
	}
	for _, p := range all {
		if _, err := p.out.ReadString('\n'); err != nil {
			return nil, fmt.Errorf("a process did not get ready: %w", err)
		}
	}
	for _, p := range all {
		if _, err := io.WriteString(p.in, "go\n"); err != nil {
			return nil, err
		}
	}
	results := make([]result, processes)
	for i, p := range all {
		if err := json.NewDecoder(p.out).Decode(&results[i]); err != nil {
			return nil, fmt.Errorf("a process did not finish: %w", err)
		}
	}
	return results, nil
}
