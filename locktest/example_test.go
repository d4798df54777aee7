package locktest_test

import (
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/locktest"
)

// The test of a locker inside the process is one call.
func Example() {
	_ = func(t *testing.T) { // func TestLocker(t *testing.T)
		locktest.Run(t, func(t *testing.T) processlock.Locker {
			return processlock.New(processlock.Options{})
		}, locktest.Options{})
	}
}

// A locker whose waits are no business of the runtime's, since it talks to a
// server, is asked on real time. What it does not promise is named, and
// reported as skipped.
func ExampleRun_realTime() {
	newLocker := func(t *testing.T) processlock.Locker {
		l := processlock.New(processlock.Options{}) // connect to the server here
		t.Cleanup(func() {})                        // and disconnect here
		return l
	}
	_ = func(t *testing.T) { // func TestLocker(t *testing.T)
		locktest.Run(t, newLocker, locktest.Options{
			RealTime:        true,
			Unordered:       true,
			KeepsGoroutines: true,
			NoCycles:        true,
			Skip:            map[int]string{34: "the server remembers keys for an hour"},
		})
	}
}
