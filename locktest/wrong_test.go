package locktest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/locktest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wrongLockers are faults, each with the checks that must catch it. They belong
// to the rule that it breaks. The rules beside are those that may fail too,
// since it shows there as well; * is any, where a fault makes the suite's own
// means useless, such as a try.
var wrongLockers = []struct {
	fault  string
	caught string
	beside string
}{
	{"excludes nobody", "01_exclusion/two 01_exclusion/many 01_exclusion/many_with_shared 01_exclusion/until_fn_ends", "*"},
	{"prints its keys", "01_exclusion/equal_spellings 02_keys/alike_are_different", "13 20 22 23"},
	{"has one lock for all keys", "02_keys/never_wait_for_each_other 02_keys/many_held_at_once 02_keys/any_number_nested", "*"},
	{"barges", "03_order/handed_over_at_release 03_order/releaser_queues_again", "04 05 10 19 30"},
	{"serves the last first", "03_order/first_come_first_served", "04 05 23"},
	{"ignores Shared", "04_shared/together 04_shared/exclusive_waits_for_all 04_shared/neighbours_together", "05 15 18 19 22 23 30"},
	{"lets readers pass", "04_shared/no_passing", "05 19 30"},
	{"reorders when one leaves", "05_leaving/cancel_keeps_the_order 05_leaving/max_wait_keeps_the_order", ""},
	{"wakes nobody when one leaves", "05_leaving/next_in_at_once 05_leaving/next_in_after_max_wait", ""},
	{"loses a wake-up", "05_leaving/no_wake_up_is_lost_to_a_dead_context", "10 36"},
	{"runs fn elsewhere", "06_goroutine/caller_runs_fn 06_goroutine/caller_runs_fn_of_all", "15"},
	{"runs under a dead context", "08_done_before/free_key 08_done_before/free_key_if_available 08_done_before/free_keys_of_all", "13 18 24 36"},
	{"forgets the cause", "09_done_while_waiting/cause 09_done_while_waiting/deadline", "10 24"},
	{"lets the grant win", "10_grant_meets_cancel/the_context_wins", ""},
	{"the context decides the result", "11_running/fn_decides 11_running/result_is_fns", "10"},
	{"ends fn's context", "12_contexts/fn_has_the_callers", ""},
	{"watches its contexts", "12_contexts/parent_keeps_nothing", ""},
	{"needs a Done channel", "12_contexts/that_never_end", "08 22"},
	{"wraps fn's error", "13_results/fns_error_is_the_same_value 13_results/fns_error_of_all 13_results/fns_error_of_shared", "11 15 22 23"},
	{"returns bare reasons", "13_results/refusals_name_the_key 13_results/refusals_of_all_name_the_first", "*"},
	{"recovers panics", "15_unwinding/panic 15_unwinding/nil_panic 15_unwinding/panic_of_the_runtime 15_unwinding/nested", ""},
	{"panics again", "15_unwinding/panic_keeps_its_stack", ""},
	{"panics later", "15_unwinding/panic_keeps_its_stack", ""},
	{"Goexit strands the waiters", "15_unwinding/goexit 15_unwinding/fail_now", "35"},
	{"takes a nil fn", "16_misuse/panics", "18"},
	{"takes bad keys", "17_bad_keys/are_refused 17_bad_keys/marshal_text_fails 17_bad_keys/all_in_a_key 17_bad_keys/bad_key_in_all", "35"},
	{"reads the key first", "18_order_of_checks/done_context_before_key", ""},
	{"ignores IfAvailable", "19_if_available/held 19_if_available/within_fn 19_if_available/queue_in_front", "*"},
	{"ignores MaxWait", "20_max_wait/ends_the_wait 20_max_wait/shared_too 20_max_wait/the_shortest_counts", "05 13 23 35"},
	{"MaxWait bounds fn", "20_max_wait/does_not_bound_fn", ""},
	{"Reentrant releases", "22_reentrant/runs_under_the_hold 22_reentrant/all", ""},
	{"takes All in reverse", "23_all/canonical_order", "13"},
	{"releases All in order", "23_all/released_in_reverse", ""},
	{"keeps part of All", "23_all/a_try_waits_for_nothing 23_all/nothing_stays_after_cancel 23_all/nothing_stays_after_max_wait", "20"},
	{"closes another's client", "25_client_close/hands_on 27_lost/is_told", "25 27"},
	{"waits for itself", "30_own_lineage/exclusive 30_own_lineage/through_others 30_own_lineage/shared", "12 22 23 35"},
	{"loses the lineage", "22_reentrant/runs_under_the_hold 30_own_lineage/exclusive 31_cycle/of_two 31_cycle/of_four", "12 18 23 32 35"},
	{"cries wolf", "32_no_false_alarm/same_order 32_no_false_alarm/chain", "12 22"},
	{"keeps its own lineage", "32_no_false_alarm/detached", ""},
	{"keeps every key", "34_no_entries/a_burst_of_keys", ""},
	{"leaks a goroutine", "35_nothing_left/served 35_nothing_left/canceled 35_nothing_left/all 35_nothing_left/after_other_rules", ""},
	{"calls user code under its mutex", "36_user_code/context_calls_back 36_user_code/key_calls_back", ""},
	{"blocks on a mutex", "37_synctest/waits_are_durable", ""},
}

// The environment variables that make TestToy wrong, and that let it run on
// real time.
const (
	toyFault    = "LOCKTEST_TOY_FAULT"
	toyRealTime = "LOCKTEST_TOY_REAL_TIME"
)

func TestToy(t *testing.T) {
	fault := os.Getenv(toyFault)
	newLocker := func(*testing.T) processlock.Locker { return &toy{fault: fault, keys: map[string]*toyKey{}} }
	opts := locktest.Options{NoCycles: true, NoDetach: true, RealTime: os.Getenv(toyRealTime) != ""}
	switch fault {
	case "keeps its own lineage":
		opts.NoDetach = false
	case "loses the lineage":
		newLocker, opts = func(*testing.T) processlock.Locker { return new(detacher) }, locktest.Options{}
	case "closes another's client":
		newLocker = func(*testing.T) processlock.Locker { return new(processlock.Coordinator) }
		opts = locktest.Options{Client: defaultClient}
	}
	locktest.Run(t, newLocker, opts)
}

// detacher is a Coordinator that never learns in which fn it is called.
type detacher struct{ processlock.Coordinator }

func (d *detacher) WithLock(ctx context.Context, key any, fn func(context.Context) error, opts ...processlock.Option) error {
	if ctx != nil {
		ctx = processlock.Detach(ctx)
	}
	return d.Coordinator.WithLock(ctx, key, fn, opts...)
}

// TestWrongLockers runs TestToy with each fault in a process of its own, since a
// subtest that fails fails its parents.
func TestWrongLockers(t *testing.T) {
	t.Parallel()
	for _, w := range wrongLockers {
		t.Run(w.fault, func(t *testing.T) {
			t.Parallel()
			failed := runToy(t, "", toyFault+"="+w.fault)
			for _, check := range strings.Fields(w.caught) {
				assert.Contains(t, failed, check)
			}
			for _, check := range failed {
				rule := check[:2]
				if !strings.HasPrefix(w.caught, rule) && !strings.Contains(w.caught, " "+rule) &&
					!strings.Contains(w.beside, rule) && w.beside != "*" {
					assert.Fail(t, "a rule that is kept fails: "+check)
				}
			}
		})
	}
}

// On real time a call that hangs has to be found by waiting for it. Both faults
// show whatever the schedule.
func TestWrongLockersRealTime(t *testing.T) {
	t.Parallel()
	for fault, caught := range map[string]string{
		"excludes nobody":  "01_exclusion/two",
		"waits for itself": "30_own_lineage/exclusive",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			failed := runToy(t, "/rule"+caught+"$", toyFault+"="+fault, toyRealTime+"=1")
			assert.Contains(t, failed, caught)
		})
	}
}

var failedCheck = regexp.MustCompile(`(?m)^ {8}--- FAIL: TestToy/rule(\d+_\w+/\w+)`)

// runToy returns the checks that fail.
func runToy(t *testing.T, which string, env ...string) (failed []string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	// A part of the timeout is what a check may take that hangs.
	timeout := "60s"
	switch {
	case strings.Contains(env[0], "mutex"):
		timeout = "6s"
	case len(env) > 1:
		timeout = "4s"
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestToy$"+which, "-test.short", "-test.timeout="+timeout)
	cmd.Env = append(os.Environ(), append(env, "GORACE=atexit_sleep_ms=0")...)
	out, err := cmd.CombinedOutput()
	output := string(out)
	require.Error(t, err, "%v passes", env)
	for _, m := range failedCheck.FindAllStringSubmatch(output, -1) {
		failed = append(failed, m[1])
	}
	require.NotContains(t, output, "\npanic: ", "a wrong locker ends the suite instead of failing a check")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(output)
		}
	})
	return failed
}
