// Bench measures pglock beside what one would write by hand: a connection for
// each lock, pg_advisory_lock and pg_advisory_unlock.
//
//	go run ./bench                      # on a throwaway server
//	go run ./bench -dsn postgres://...  # on one of yours
//
// Everything is measured in one run, on one server; all figures are of the
// machine that it ran on.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
)

func main() {
	if isWorker() {
		exit(worker(context.Background()))
	}
	span := flag.Duration("for", 3*time.Second, "how long each throughput is measured")
	dsn := flag.String("dsn", "", "a server's address, of 300 connections; without it, a throwaway server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *dsn, *span)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run makes all measurements and prints them as a section of a README.
func run(ctx context.Context, dsn string, span time.Duration) error {
	server, err := openServer(dsn)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	db, err := server.Create(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = db.Drop(context.Background()) }()
	version, err := server.Version(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("Measured %s on %d x %s (%s/%s), PostgreSQL %d, pgx %s, %s; %v for each throughput.\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), processor(), runtime.GOOS, runtime.GOARCH, version, pgxVersion(), runtime.Version(), span)
	m := &measurer{ctx, db, span}
	for _, measure := range []func() error{m.hotKey, m.freeKeys, m.oneLock, m.connections, m.handOver, m.killed} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// openServer returns the server at dsn, or a throwaway one. By hand, four
// processes of 64 goroutines take 256 connections.
func openServer(dsn string) (*pgtest.Server, error) {
	if dsn != "" {
		return pgtest.At(dsn)
	}
	return pgtest.Start(pgtest.Settings{"max_connections": "300"})
}

// measurer makes the measurements.
type measurer struct {
	ctx  context.Context
	db   *pgtest.Database
	span time.Duration
}

func pgxVersion() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/jackc/pgx/v5" {
				return dep.Version
			}
		}
	}
	return "unknown"
}
