package processlock_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// A panic in a task is not caught: it ends the process, with its value and its
// stack, whatever the task holds and whoever waits for it. Wait does not return
// before, which would let a program exit as if all were well. A hook's panic in a
// task's goroutine is no different.
//
// Rules 15 and 42.
func TestGroupPanicEndsTheProcess(t *testing.T) {
	for name, do := range map[string]func(g *processlock.Group){
		"Go":           func(g *processlock.Group) { g.Go(gtPanics) },
		"GoLocked":     func(g *processlock.Group) { g.GoLocked("k", gtPanics) },
		"All":          func(g *processlock.Group) { g.GoLocked(processlock.All("k", "l"), gtPanics) },
		"others queue": func(g *processlock.Group) { g.GoLocked("k", gtPanics); g.GoLocked("k", gtExits) },
		"others have no slot": func(g *processlock.Group) {
			g.SetLimit(1)
			g.Go(gtPanics)
			g.Go(gtExits)
		},
		"in a call": func(g *processlock.Group) {
			g.GoLocked("k", func(ctx context.Context) error { return processlock.WithLock(ctx, "l", gtPanics) })
		},
		"while it fails": func(g *processlock.Group) {
			g.GoLocked("k", func(ctx context.Context) error {
				defer func() { panic("gt: boom") }()
				return errGt
			})
		},
		"Acquired": func(g *processlock.Group) {
			processlock.Default().AddHooks(processlock.Hooks{Acquired: func(processlock.Event) { _ = gtPanics(context.Background()) }})
			g.GoLocked("k", gtExits)
			g.GoLocked("k", gtExits)
		},
		"Released": func(g *processlock.Group) {
			processlock.Default().AddHooks(processlock.Hooks{Released: func(processlock.Event) { _ = gtPanics(context.Background()) }})
			g.SetLimit(1)
			g.GoLocked(processlock.All("k", "l"), ctNop)
			g.GoLocked("k", gtExits)
		},
		"Failed, by the first error": func(g *processlock.Group) {
			processlock.Default().AddHooks(processlock.Hooks{Failed: gtPanicsFor("k")})
			queued := make(chan struct{})
			g.GoLocked("k", func(context.Context) error { <-queued; return errGt })
			g.GoLocked("k", gtExits)
			close(queued)
		},
		"Failed, by MaxWait": func(g *processlock.Group) {
			processlock.Default().AddHooks(processlock.Hooks{Failed: gtPanicsFor("k")})
			gtHeld("k")
			g.GoLocked("k", gtExits, processlock.MaxWait(1))
		},
		"Waiting, for a further key": func(g *processlock.Group) {
			processlock.Default().AddHooks(processlock.Hooks{Waiting: gtPanicsFor("k")})
			j := gtHeld("j")
			gtHeld("k")
			g.GoLocked(processlock.All("j", "k"), gtExits)
			close(j)
		},
		"Failed, by asking again": func(*processlock.Group) {
			processlock.Default().AddHooks(processlock.Hooks{Failed: gtPanicsFor("j")})
			slot := make(chan struct{})
			var in *processlock.Group
			_ = processlock.WithLock(context.Background(), "k", func(ctx context.Context) error {
				in, _ = processlock.NewGroup(ctx, "in")
				in.SetLimit(1)
				in.Go(func(context.Context) error { <-slot; return nil })
				in.GoLocked(processlock.All("j", "k"), gtExits, processlock.Reentrant)
				in.Go(gtExits)
				return nil
			})
			close(slot)
			_ = in.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			const env = "PROCESSLOCK_GT_CHILD"
			if os.Getenv(env) == t.Name() {
				g, _ := processlock.NewGroup(context.Background(), "g")
				do(g)
				_ = g.Wait()
				os.Exit(0)
			}
			exe, err := os.Executable()
			require.NoError(t, err)
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
			for range 10 { // it must lose every race
				cmd := exec.CommandContext(t.Context(), exe, "-test.run="+pattern)
				cmd.Env = append(os.Environ(), env+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
				out, err := cmd.CombinedOutput()
				require.Error(t, err, "it ended well:\n%s", out)
				assert.Equal(t, 2, cmd.ProcessState.ExitCode())
				assert.Contains(t, string(out), "panic: gt: boom")
				if name != "while it fails" {
					assert.Contains(t, string(out), "gtPanics", "where it came from")
				}
				assert.NotContains(t, string(out), "another task ran")
			}
		})
	}
}

func gtPanics(context.Context) error { panic("gt: boom") }

// gtPanicsFor is a hook.
func gtPanicsFor(key string) func(processlock.Event) {
	return func(e processlock.Event) {
		if e.Key == processlock.MustKey(key) {
			_ = gtPanics(context.Background())
		}
	}
}

// gtHeld returns once somebody holds key, until what it returns is closed.
func gtHeld(key string) chan struct{} {
	held, free := make(chan struct{}), make(chan struct{})
	go func() {
		_ = processlock.WithLock(context.Background(), key, func(context.Context) error {
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	return free
}

func gtExits(context.Context) error {
	_, _ = os.Stdout.WriteString("another task ran\n")
	os.Exit(0)
	return nil
}
