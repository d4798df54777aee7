// Debugserver is a small HTTP service that works on orders, one request at a
// time for each, with the page of package lockdebug at /debug/locks. It is there
// to be looked at:
//
//	go run ./examples/debugserver -load 20 -stuck
//
// lets 20 customers loose on it, and has the carrier of one order never answer.
// Which order that is, which function waits for the carrier and who queues
// behind it is to be read off http://localhost:8080/debug/locks.
//
// The service itself:
//
//	curl -X POST localhost:8080/orders/7/ship
//	curl -X POST localhost:8080/orders/7/merge/8
//
// ships a parcel of order 7, and moves what has been shipped of order 7 to order
// 8. Ctrl-C ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/lockdebug"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("debugserver", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "localhost:8080", "`address` to listen at; the page shows keys, so keep it local")
	load := flags.Int("load", 0, "`number` of customers who send requests all the time")
	stuck := flags.Bool("stuck", false, "have the carrier of one order never answer")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 || *load < 0 {
		fmt.Fprintln(stderr, "debugserver: want flags only, and -load 0 or more")
		return 2
	}
	if err := serve(ctx, *addr, *load, *stuck, stdout); err != nil {
		fmt.Fprintf(stderr, "debugserver: %v\n", err)
		return 1
	}
	return 0
}

// serve runs the service, with customers of its own, until ctx is done.
func serve(ctx context.Context, addr string, customers int, stuck bool, stdout io.Writer) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w; choose another address with -addr, such as localhost:0 for any free port", err)
	}
	// TrackHolds, for the page to know since when a key is held that was free.
	locks := processlock.New(processlock.Options{TrackHolds: true})
	shop := newShop(locks, stuck)
	mux := http.NewServeMux()
	shop.register(mux)
	// A service that is reached from outside serves this on another port, or
	// to those only who have signed in as operators.
	mux.Handle("/debug/locks", lockdebug.Handler(locks))

	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	base := "http://" + listener.Addr().String()
	fmt.Fprintf(stdout, "look at %s/debug/locks\n", base)

	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var crowd sync.WaitGroup
	for i := range customers {
		crowd.Go(func() { shopAround(ctx, base, uint64(i)) })
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	shop.close()
	leave()
	crowd.Wait()
	http.DefaultClient.CloseIdleConnections() // the customers'
	// A connection that was opened and has sent nothing yet counts as busy for
	// 5 s; so Shutdown gets more.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(last), locks.Shutdown(last))
}
