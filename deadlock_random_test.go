package processlock

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dtProgram returns the program of a seed.
func dtProgram(seed uint64) []dtOp {
	r := rand.New(rand.NewPCG(seed, 31))
	// Nested calls are what it is about.
	kinds := []byte{
		dtOpRoot, dtOpRoot, dtOpRoot, dtOpNested, dtOpNested, dtOpNested, dtOpNested, dtOpNested, dtOpNested,
		dtOpKept, dtOpReturn, dtOpReturn, dtOpLeave, dtOpCancel, dtOpClose, dtOpTick,
	}
	program := make([]dtOp, 8+r.IntN(32))
	rushed := r.IntN(3) // how many of the steps don't wait for the one before
	for i := range program {
		op := &program[i]
		op.kind = kinds[r.IntN(len(kinds))]
		op.quiet = r.IntN(6) >= rushed
		for j := range op.n {
			op.n[j] = uint16(r.Uint32())
		}
	}
	return program
}

// dtCheck runs a program, and reports a failing one as short as it gets.
func dtCheck(t *testing.T, name string, program []dtOp) *dtDirector {
	t.Helper()
	d := dtExecute(t, program)
	if d.failure == "" {
		return d
	}
	shortest := d
	for shorter := true; shorter; {
		shorter = false
		for i := len(program) - 1; i > 0; i-- { // the first sets the size
			without := slices.Delete(slices.Clone(program), i, i+1)
			for range 20 { // who comes first may matter
				if d := dtExecute(t, without); d.failure != "" {
					program, shortest, shorter = without, d, true
					break
				}
			}
		}
	}
	t.Fatalf("%s: %s\nthe program, shortened:\n%s\n%s", name, d.failure,
		strings.Join(shortest.trace, "\n"), shortest.failure)
	return nil
}

// dtStress returns how long random tests run: PROCESSLOCK_STRESS, or usual.
func dtStress(t *testing.T, usual time.Duration) time.Duration {
	s := os.Getenv("PROCESSLOCK_STRESS")
	if s == "" {
		return usual
	}
	stress, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return stress
}

// Random programs do what the model says: each request gets ErrDeadlock if and
// only if it would have waited for ever, and whatever happens meanwhile, nobody
// waits for ever. PROCESSLOCK_SEED runs one seed again.
//
// Rules 22, 23, 30, 31 and 32.
func TestDeadlockRandomPrograms(t *testing.T) {
	if s := os.Getenv("PROCESSLOCK_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		dtCheck(t, "seed "+s, dtProgram(seed))
		return
	}
	counts, n, given := make(map[dtResult]int), 0, 0
	for end := time.Now().Add(dtStress(t, 2500*time.Millisecond)); time.Now().Before(end) || n < 100; n++ {
		d := dtCheck(t, "seed "+strconv.Itoa(n), dtProgram(uint64(n)))
		for result, n := range d.counts {
			counts[result] += n
		}
		if d.states == nil {
			given++
		}
	}
	t.Logf("%d programs, %d of them in too many states for the model: %v", n, given, counts)
	// The programs must get everywhere.
	for _, r := range []dtResult{dtRan, dtLost, dtCanceled, dtClosed, dtUnavailable, dtTimeout, dtFull, dtDeadlock} {
		if counts[r] < n/100 {
			t.Errorf("only %d calls of %d programs were %q", counts[r], n, r)
		}
	}
	if given > n/20 {
		t.Errorf("the model gave up in %d of %d programs", given, n)
	}
}

// The same for programs that the fuzzer writes.
//
// Rules 31 and 32.
func FuzzDeadlockProgram(f *testing.F) {
	const size = 14
	for seed := range uint64(8) {
		var b []byte
		for _, op := range dtProgram(seed) {
			b = append(b, op.kind, 0)
			if op.quiet {
				b[len(b)-1] = 1
			}
			for _, n := range op.n {
				b = append(b, byte(n), byte(n>>8))
			}
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// The model follows every order of what happens between two quiet
		// steps, and the fuzzer likes programs without any: short ones only.
		const most = 12
		var program []dtOp
		for ; len(b) >= size && len(program) < most; b = b[size:] {
			op := dtOp{kind: b[0], quiet: b[1]%2 == 1}
			for i := range op.n {
				op.n[i] = uint16(b[2+2*i]) | uint16(b[3+2*i])<<8
			}
			program = append(program, op)
		}
		dtCheck(t, "fuzzed", program)
	})
}
