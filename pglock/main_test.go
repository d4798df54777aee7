package pglock_test

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
)

// shared is the server of all tests that neither break nor configure one; each
// has a database of its own on it.
var shared = sync.OnceValues(func() (*pgtest.Server, error) {
	sharedUsed = true
	return pgtest.Shared()
})

var sharedUsed bool

// parallel has more tests run side by side than there are processors: what they
// do is wait, for a server and for time to pass.
func parallel() {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", "6")
	}
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		runRole(role)
		os.Exit(0)
	}
	parallel()
	code := m.Run()
	if sharedUsed {
		if server, err := shared(); err == nil {
			if err := server.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}
