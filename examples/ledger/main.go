// Ledger shows a worker pool of processlock posting transfers between accounts.
//
// It reads a CSV of transfers and posts them in a [processlock.Group]: each is a
// task that runs while it holds both its accounts,
//
//	g.GoLocked(processlock.All(from, to), post)
//
// A posting reads the balances, takes its time, as a round trip to a database
// would, and writes the new balances. What waits for an account that is busy
// waits in its queue, with neither a goroutine nor a place among those that
// run. At the end every balance is compared with that of a serial run.
//
//	go run ./examples/ledger                      # transfers that it makes up
//	go run ./examples/ledger -mode naive          # a pool without locks
//	go run ./examples/ledger -by account          # entries of one account each
//	go run ./examples/ledger -generate > some.csv
//	go run ./examples/ledger some.csv
//
// With -by account the two entries of a transfer are posted each by itself, with
// GoLocked(account), and the proof is also that each account saw its entries in
// the order of the file.
//
// A transfer that waits for its second account holds the first, so where there
// are few accounts many transfers stand in line behind few: compare -accounts 20
// with 3000.
//
// A file with a line that is no transfer posts nothing. Ctrl-C cancels the
// context: postings that wait are dropped, those under way write nothing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
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
	cfg, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(stdout)
		return exitOK
	}
	if err != nil {
		return fail(ctx, stderr, exitUsage, err)
	}
	if cfg.generate {
		if err := generate(stdout, cfg); err != nil {
			return fail(ctx, stderr, exitFailed, err)
		}
		return exitOK
	}
	in, err := open(cfg)
	if err != nil {
		return fail(ctx, stderr, exitUsage, err)
	}

	r, err := work(ctx, cfg, in, stderr)
	if err != nil {
		return fail(ctx, stderr, exitFailed, err)
	}
	if _, err := stdout.Write(r.table(cfg)); err != nil {
		return fail(ctx, stderr, exitFailed, err)
	}
	if !r.good() {
		return exitFailed
	}
	return exitOK
}

// open reads the file that was given, or transfers made up for the purpose.
func open(cfg config) (*input, error) {
	if cfg.file == "" {
		var made bytes.Buffer
		if err := generate(&made, cfg); err != nil {
			return nil, err
		}
		return read(fmt.Sprintf("seed %d", cfg.seed), &made)
	}
	f, err := os.Open(cfg.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(cfg.file, f)
}

// fail reports err in one line and returns the exit status, which is code
// unless the run was cancelled: what goes wrong after that goes wrong because
// of it.
func fail(ctx context.Context, stderr io.Writer, code int, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "ledger: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "ledger: %v\n", err)
	return code
}
