package locktest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dbx-tools/processlock/locktest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const humble = "LOCKTEST_HUMBLE"

// TestHumble promises as little as can be, if it is told to.
func TestHumble(t *testing.T) {
	if os.Getenv(humble) == "" {
		return // TestSkipsAreReported tells it to
	}
	locktest.Run(t, newCoordinator, locktest.Options{
		RealTime: true, Unordered: true, NoShared: true, NoReentrant: true, NoAll: true, NoLineage: true,
		NoDetach: true, NoCycles: true, KeepsGoroutines: true,
		Skip: map[int]string{
			1: "why not", 2: "x", 6: "x", 7: "x", 8: "x", 9: "x", 10: "x", 11: "x", 12: "x", 13: "x", 15: "x", 16: "x",
			17: "x", 18: "x", 19: "x", 20: "x", 24: "x", 32: "x", 34: "x", 36: "x",
		},
	})
}

// What is not asked is said, rule by rule.
func TestSkipsAreReported(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestHumble$", "-test.v")
	cmd.Env = append(os.Environ(), humble+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	output := string(out)
	for _, line := range []string{
		"rule 1 (two): Options.Skip: why not",
		"rule 3 (first_come_first_served): on real time without Options.Waiters",
		"rule 3 (handed_over_at_shared_release): Options.Unordered",
		"rule 4 (together): Options.NoShared",
		"rule 5 (max_wait_keeps_the_order): Options.Unordered",
		"rule 22 (free_key): Options.NoReentrant",
		"rule 23 (of_none): Options.NoAll",
		"rule 25 (hands_on): Options.Client is nil",
		"rule 30 (exclusive): Options.NoLineage",
		"rule 35 (served): Options.KeepsGoroutines",
		"rule 35 (after_other_rules): Options.RealTime",
		"rule 37 (waits_are_durable): Options.RealTime",
	} {
		assert.Equal(t, 2, strings.Count(output, line), "%q where it is skipped and in the list at the end", line)
	}
	checks := strings.Count(output, "        --- ")
	skipped := strings.Count(output, "        --- SKIP: ")
	passed := strings.Count(output, "        --- PASS: ")
	assert.Equal(t, checks, skipped+passed)
	assert.Greater(t, skipped, 100)
	assert.Less(t, passed, 5, "of rule 5, what nothing excludes")
}
