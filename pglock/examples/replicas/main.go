// Replicas shows a deployment that shares one critical section: a few processes
// add to one row of a table, reading, thinking and writing as an application
// does, and each turn is made under one key. While they work one of them is
// killed. In the end the sum is right, and a table shows who held the key when.
//
//	go run ./examples/replicas
//	go run ./examples/replicas -nolock
//	go run ./examples/replicas -replicas 8 -turns 1000 -dsn postgres://...
//
// Without -dsn it starts a PostgreSQL of its own, and leaves nothing behind.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
)

// settings are what the command line says.
type settings struct {
	dsn      string
	replicas int
	turns    int
	think    time.Duration
	noLock   bool
}

func main() {
	if isReplica() {
		exit(replica(context.Background()))
	}
	var s settings
	flag.StringVar(&s.dsn, "dsn", "", "the database to use; without it, one of its own")
	flag.IntVar(&s.replicas, "replicas", 4, "how many processes")
	flag.IntVar(&s.turns, "turns", 300, "how many turns all of them make together")
	flag.DurationVar(&s.think, "think", time.Millisecond, "how long a turn thinks between reading and writing")
	flag.BoolVar(&s.noLock, "nolock", false, "take turns without the lock, to see what it is for")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, s)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run makes a deployment, kills one of it, and reports. Its error says that the
// sum is wrong, too.
func run(ctx context.Context, out io.Writer, s settings) (err error) {
	if s.replicas < 2 || s.turns < 1 {
		return fmt.Errorf("replicas: -replicas is %d and -turns %d; want at least 2 and 1", s.replicas, s.turns)
	}
	if s.dsn == "" {
		server, err := pgtest.Start(nil)
		if err != nil {
			return err
		}
		defer func() { _ = server.Close() }()
		s.dsn = server.DSN("postgres")
	}
	l, err := openLedger(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer l.close()
	d := &deployment{settings: s, table: l.table}
	defer d.stop()
	fmt.Fprintf(out, "%d replicas make %d turns, and one of them is killed.\n\n", s.replicas, s.turns)
	killed, err := d.work(ctx, l)
	if err != nil {
		return err
	}
	return l.report(ctx, out, s.turns, killed)
}
