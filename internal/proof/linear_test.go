package proof

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dbx-tools/processlock"
)

// checkTime bounds the search for an order of one history. It is never reached
// by a history of this size unless something is very wrong.
const checkTime = 20 * time.Second

// histories is how many of the library are checked for each number of
// processors; -soak makes it more.
const histories = 1500

// record makes one history.
func record(s subject, seed uint64, closes bool, maxWaiters int) *recorder {
	r := &recorder{subject: s, closes: closes, maxWaiters: maxWaiters}
	rnd := rand.New(rand.NewPCG(seed, 7))
	switch seed % 4 {
	case 0:
		r.procession(rnd)
	case 1:
		r.storm(rnd, 0)
	default:
		r.storm(rnd, 2+rnd.IntN(10))
	}
	return r
}

// Histories of the library are linearizable, on one processor and on more.
func TestHistoriesAreLinearizable(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprint("procs=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			operations, events := 0, map[string]int{}
			n := 0
			for end := time.Now().Add(*soak - time.Second); n < histories || time.Now().Before(end); n++ {
				opts := processlock.Options{TrackHolds: n%2 == 1}
				if n%8 >= 6 {
					opts.MaxWaiters = 2
				}
				r := record(real{processlock.New(opts)}, uint64(n), true, opts.MaxWaiters)
				verdict, info := porcupine.CheckOperationsVerbose(lockSpec, r.ops, checkTime)
				if verdict != porcupine.Ok {
					picture := filepath.Join(os.TempDir(), "processlock-history.html")
					t.Fatalf("history %d: %s; drawn in %s (%v)", n, verdict, picture, porcupine.VisualizePath(lockSpec, info, picture))
				}
				operations += len(r.ops)
				for _, op := range r.ops {
					events[eventNames[op.Input.(input).event]]++
				}
			}
			t.Logf("%d histories of %d operations accepted: %v", n, operations, events)
		})
	}
}

// A lock that is right is accepted, and each that is broken is rejected.
func TestBrokenLocksAreRejected(t *testing.T) {
	accept := func(f fault, seed uint64) bool {
		r := record(newToy(f), seed, false, 0)
		return porcupine.CheckOperationsTimeout(lockSpec, r.ops, checkTime) != porcupine.Illegal
	}
	t.Run(string(faultless), func(t *testing.T) {
		for seed := range uint64(200) {
			if !accept(faultless, seed) {
				t.Fatalf("history %d is rejected", seed)
			}
		}
	})
	for _, f := range []fault{
		noExclusion, barging, lastComeFirst, readerPasses, tryPasses, loneReaders, lostWakeup,
		timeoutLeaksKey, writerAmongRead, refusesWhenFree, cancelMovesQueue,
	} {
		t.Run(string(f), func(t *testing.T) {
			const most = 10000
			for seed := range uint64(most) {
				if !accept(f, seed) {
					t.Logf("rejected by history %d", seed)
					return
				}
			}
			t.Errorf("%d histories are accepted", most)
		})
	}
}
