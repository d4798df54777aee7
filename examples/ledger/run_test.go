package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// outcome is what a run of the program leaves to see.
type outcome struct {
	code           int
	stdout, stderr string
}

func runArgs(ctx context.Context, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// bubble runs the program where postings take their latency to the nanosecond
// and the test doesn't.
func bubble(t *testing.T, args ...string) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { o = runArgs(t.Context(), args...) })
	return o
}

// hasRow requires a row of the table with this name and this value.
func (o outcome) hasRow(t *testing.T, name, value string) {
	t.Helper()
	for line := range strings.Lines(o.stdout) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+"  "); ok {
			require.Equal(t, value, strings.Join(strings.Fields(rest), " "), "row %q", name)
			return
		}
	}
	require.Fail(t, "no such row", "%q in:\n%s%s", name, o.stdout, o.stderr)
}

func csvFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "transfers.csv")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestThePoolPostsAsSerialDoes(t *testing.T) {
	o := bubble(t, "-accounts", "50", "-transfers", "400", "-limit", "8", "-seed", "3")

	require.Equal(t, exitOK, o.code, o.stderr)
	require.Contains(t, o.stdout, "ledger: seed 3, 400 transfers between 50 accounts, 1ms a posting\n")
	o.hasRow(t, "serial", "400.00 ms 400 postings")
	o.hasRow(t, "balances as in serial", "50 of 50 ok")
	o.hasRow(t, "sum of the balances", "0.00 ok")
	require.Regexp(t, `pool +[0-9.]+ ms   [1-8]\.\d times as fast, up to [2-8] under way\n`, o.stdout)
	require.NotContains(t, o.stdout, "file order")
}

func TestByAccountIsInFileOrder(t *testing.T) {
	o := bubble(t, "-by", "account", "-accounts", "50", "-transfers", "400", "-limit", "8")

	require.Equal(t, exitOK, o.code, o.stderr)
	o.hasRow(t, "serial", "800.00 ms 800 postings")
	o.hasRow(t, "balances as in serial", "50 of 50 ok")
	o.hasRow(t, "entries in file order", "50 of 50 ok")
	o.hasRow(t, "sum of the balances", "0.00 ok")
}

// Both tasks read before either writes.
func TestTheNaivePoolLosesEntries(t *testing.T) {
	file := csvFile(t, "from,to,amount\na,b,1.00\na,b,1.00\n")
	o := bubble(t, "-mode", "naive", file)

	require.Equal(t, exitFailed, o.code)
	o.hasRow(t, "naive, WITHOUT locks", "1.00 ms 2 times as fast, up to 2 under way")
	o.hasRow(t, "balances as in serial", "0 of 2 FAILED")
	o.hasRow(t, "sum of the balances", "0.00 ok")
	require.Contains(t, o.stdout, "2 accounts have a wrong balance:\n  a: -1.00, which should be -2.00\n  b: 1.00, which should be 2.00\n")
	require.Contains(t, o.stdout, "That is what the lock prevents")
}

// It shows in accounts that only one task posts to, too: money comes or goes.
func TestTheNaivePoolMakesMoney(t *testing.T) {
	o := bubble(t, "-mode", "naive", csvFile(t, "from,to,amount\na,b,1.00\na,c,2.00\n"))

	require.Equal(t, exitFailed, o.code)
	o.hasRow(t, "balances as in serial", "2 of 3 FAILED")
	require.Regexp(t, `sum of the balances +[12]\.00   FAILED: money came or went\n`, o.stdout)
	require.Contains(t, o.stdout, "1 account has a wrong balance:\n")
}

func TestTheNaivePoolIsLucky(t *testing.T) {
	o := bubble(t, "-mode", "naive", "-limit", "1", "-transfers", "20")

	require.Equal(t, exitOK, o.code, o.stderr)
	require.Contains(t, o.stdout, "which was luck")
}

func TestSerial(t *testing.T) {
	for by, postings := range map[string]string{byTransfer: "20.00 ms 20 postings", byAccount: "40.00 ms 40 postings"} {
		o := bubble(t, "-mode", "serial", "-by", by, "-transfers", "20")
		require.Equal(t, exitOK, o.code, o.stderr)
		o.hasRow(t, "serial", postings)
		o.hasRow(t, "sum of the balances", "0.00 ok")
		require.NotContains(t, o.stdout, "as in serial")
	}
}

// In real time, in which the race detector sees what no lock guards.
func TestEveryModeWithoutLatency(t *testing.T) {
	for _, by := range []string{byTransfer, byAccount} {
		for mode, codes := range map[string][]int{modeSerial: {exitOK}, modePool: {exitOK}, modeNaive: {exitOK, exitFailed}} {
			o := runArgs(t.Context(), "-mode", mode, "-by", by, "-latency", "0", "-accounts", "10", "-transfers", "2000")
			require.Contains(t, codes, o.code, "%s by %s: %s%s", mode, by, o.stdout, o.stderr)
			require.Regexp(t, `sum of the balances`, o.stdout)
		}
	}
}

func TestFilesThatAreGenerated(t *testing.T) {
	made := runArgs(t.Context(), "-generate", "-seed", "7", "-accounts", "9", "-transfers", "40")
	require.Equal(t, exitOK, made.code, made.stderr)
	o := bubble(t, csvFile(t, made.stdout))

	require.Equal(t, exitOK, o.code, o.stderr)
	require.Contains(t, o.stdout, "40 transfers between 9 accounts")
	o.hasRow(t, "balances as in serial", "9 of 9 ok")
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []string{modeSerial, modePool, modeNaive} {
			// In the middle of a posting: of the second run, but for serial.
			ctx, cancel := context.WithTimeout(t.Context(), 1)
			if mode != modeSerial {
				ctx, cancel = context.WithTimeout(t.Context(), 100_000_001)
			}
			o := runArgs(ctx, "-mode", mode, "-transfers", "100")
			cancel()
			require.Equal(t, outcome{exitInterrupted, "", "ledger: interrupted\n"}, o, mode)
		}
	})
}

// What is cancelled has posted whole transfers or nothing of them.
func TestACanceledPoolPostsWholeTransfers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := madeUp(t, config{accounts: 20, transfers: 300, seed: 2})
		ctx, cancel := context.WithTimeout(t.Context(), 20_500_000)
		defer cancel()
		b := &book{store: newGuarded(len(in.accounts)), latency: 1_000_000}
		err := pool(ctx, b, postings(in, byTransfer), in.accounts, 4)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Positive(t, b.posted.Load())
		require.Less(t, b.posted.Load(), int64(300))
		sum, entries := int64(0), 0
		for a := range in.accounts {
			sum += b.balance(a)
			entries += len(b.seen(a))
		}
		require.Zero(t, sum)
		require.Equal(t, int(2*b.posted.Load()), entries)
	})
}

// What waits for an account has no goroutine.
func TestGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := madeUp(t, config{accounts: 200, transfers: 1000, seed: 2})
		b := &book{store: newGuarded(len(in.accounts)), latency: 1_000_000}
		idle := book{store: newGuarded(1)}
		require.NoError(t, idle.post(t.Context(), posting{1, []entry{{0, 1}}}))
		require.NoError(t, pool(t.Context(), b, postings(in, byAccount), in.accounts, 4))
		require.LessOrEqual(t, b.peak.Load(), int64(4))
		// While the runtime moves a batch of 32 dead ones it counts them, too.
		require.LessOrEqual(t, b.goroutines.Load(), idle.goroutines.Load()+4+32+2)
	})
}

func madeUp(t *testing.T, cfg config) *input {
	t.Helper()
	in, err := open(cfg)
	require.NoError(t, err)
	return in
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestLostOutputFailsTheRun(t *testing.T) {
	for _, args := range [][]string{{"-transfers", "5"}, {"-transfers", "5", "-generate"}} {
		require.Equal(t, exitFailed, run(t.Context(), args, brokenPipe{}, brokenPipe{}), fmt.Sprint(args))
	}
}
