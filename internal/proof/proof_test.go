package proof

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Random programs do what the model says: after each step at which everybody is
// at rest, what runs, what waits in which order, every result, Snapshot and
// Stats are those of a state that some order of events leads to.
func TestModel(t *testing.T) {
	programs, steps, given, again := 0, 0, 0, 0
	results := make(map[string]int)
	check := func(r *rapid.T) {
		d := execute(t, genProgram(r))
		if d.failure != "" {
			r.Fatalf("%s\n%s", strings.Join(d.trace, "\n"), d.failure)
		}
		programs++
		steps += d.steps
		if d.states == nil {
			given++
		} else if slices.ContainsFunc(d.states[0].calls, func(c call) bool { return c.again > 0 }) {
			again++
		}
		for _, x := range d.calls {
			results[x.how.String()]++
		}
	}
	for end := time.Now().Add(*soak - time.Second); ; {
		if rapid.Check(t, check); t.Failed() || time.Now().After(end) {
			break
		}
	}
	if given > programs/20 {
		t.Errorf("the model gave up in %d of %d programs", given, programs)
	}
	if again == 0 && programs >= usualPrograms {
		t.Error("in no program a task asked again")
	}
	t.Logf("%d programs of %d steps, %d with more states than the model looks at, %d in which a task asked again; results: %v",
		programs, steps, given, again, results)
}
