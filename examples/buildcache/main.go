// Buildcache shows processlock keeping a crowd of workers from building the
// same thing twice.
//
// Many workers ask, in random order and many times over, for the build
// artifact of each folder of a source tree: a tar.gz of the folder's files and
// its SHA-256. Every request looks into the cache and builds what is missing,
// inside
//
//	processlock.WithLock(ctx, []any{"cache", folder}, checkThenBuild)
//
// so that each artifact is built once, whoever asks first, while different
// folders build in parallel. The table at the end says how often a worker had
// to wait, and checks every artifact again from disk.
//
// Run it on the Go toolchain's own source, and then without the lock:
//
//	go run ./examples/buildcache
//	go run ./examples/buildcache -nolock
//
// Ctrl-C cancels the context. The workers that wait for a lock stop waiting,
// the builds that are under way remove what they have written, and the cache
// folder keeps whole artifacts only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dbx-tools/processlock"
)

// The exit statuses; exitInterrupted is what a shell reports for Ctrl-C.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Once cancelled, a second Ctrl-C ends the program without waiting for it.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(ctx, args)
	if errors.Is(err, flag.ErrHelp) {
		usage(stdout)
		return exitOK
	}
	if err != nil {
		return fail(ctx, stderr, exitUsage, err)
	}
	return runOn(ctx, cfg, os.DirFS(cfg.src), stdout, stderr)
}

// runOn is run with its flags read; tree holds the files of cfg.src.
func runOn(ctx context.Context, cfg config, tree fs.FS, stdout, stderr io.Writer) (code int) {
	store, err := openCache(cfg)
	if err != nil {
		return fail(ctx, stderr, exitUsage, err)
	}
	defer func() {
		if err := store.close(); err != nil && code == exitOK {
			code = fail(ctx, stderr, exitFailed, err)
		}
	}()

	folders, err := listFolders(ctx, tree, store.insideTree())
	if err != nil {
		return fail(ctx, stderr, exitFailed, fmt.Errorf("listing the source tree: %w", err))
	}
	if len(folders) == 0 {
		return fail(ctx, stderr, exitUsage, fmt.Errorf("there are no files in -src %s", cfg.src))
	}

	r, err := work(ctx, cfg, tree, store, folders, stderr)
	if err != nil {
		code = fail(ctx, stderr, exitFailed, err)
		if code == exitInterrupted {
			fmt.Fprintln(stderr, r.unfinished(store))
		}
		return code
	}
	if _, err := stdout.Write(r.table(cfg, store)); err != nil {
		return fail(ctx, stderr, exitFailed, err)
	}
	if !r.good() {
		return exitFailed
	}
	return exitOK
}

// work lets the crowd loose on the cache and checks what it has left there.
// The result is of use after an error too: it says how far the work got.
func work(ctx context.Context, cfg config, tree fs.FS, store *cache, folders []string, stderr io.Writer) (*result, error) {
	r := &result{folders: folders}
	bar := startProgress(stderr, isTerminal(stderr))
	defer bar.stop()

	var err error
	if r.found, r.corrupt, err = store.adopt(ctx, folders); err != nil {
		return r, fmt.Errorf("checking the cache folder: %w", err)
	}

	c := newCrowd(cfg, tree, store, folders)
	bar.show(c.progress)
	before, start := processlock.Default().Stats(), time.Now()
	err = c.run(ctx)
	after := processlock.Default().Stats()
	r.took = time.Since(start)
	r.waits = after.Waited - before.Waited
	r.waited = after.WaitDuration - before.WaitDuration
	r.tally(c)
	if err != nil {
		return r, err
	}

	bar.show(func() string { return "checking every artifact" })
	if r.wrong, err = store.verifyAll(ctx, folders); err != nil {
		return r, fmt.Errorf("checking the artifacts: %w", err)
	}
	return r, nil
}

// fail reports err in one line and returns the exit status, which is code
// unless the run was cancelled: what goes wrong after that goes wrong because
// of it.
func fail(ctx context.Context, stderr io.Writer, code int, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "buildcache: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "buildcache: %v\n", err)
	return code
}
