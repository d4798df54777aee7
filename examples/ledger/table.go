package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// table is the report on a run that came to its end.
func (r *result) table(cfg config) []byte {
	var b bytes.Buffer
	row := func(name, value, note string) {
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("  %-24s %10s   %s", name, value, note), " "))
	}
	fmt.Fprintf(&b, "ledger: %s, %s between %s, %v a posting\n\n", r.name,
		count(len(r.transfers), "transfer"), count(len(r.accounts), "account"), cfg.latency)

	row("serial", rounded(r.serialTook), count(r.postings, "posting"))
	if cfg.mode != modeSerial {
		name := cfg.mode
		if cfg.mode == modeNaive {
			name = "naive, WITHOUT locks"
		}
		row(name, rounded(r.took), r.faster()+fmt.Sprintf("up to %d under way", r.book.peak.Load()))
	}
	if cfg.mode == modePool {
		row("waits for an account", thousands(r.waited), fmt.Sprintf("and never more than %s", count(int(r.book.goroutines.Load()), "goroutine")))
	}
	fmt.Fprintln(&b)

	accounts := len(r.accounts)
	check := func(name string, bad int) {
		verdict := "ok"
		if bad > 0 {
			verdict = "FAILED"
		}
		row(name, thousands(int64(accounts-bad)), fmt.Sprintf("of %s  %s", thousands(int64(accounts)), verdict))
	}
	if cfg.mode != modeSerial {
		check("balances as in serial", len(r.wrong))
	}
	if r.by == byAccount {
		check("entries in file order", len(r.unordered))
	}
	verdict := "ok"
	if r.sum != 0 {
		verdict = "FAILED: money came or went"
	}
	row("sum of the balances", money(r.sum), verdict)
	r.explain(&b, cfg)
	return b.Bytes()
}

// faster is the mode's time in terms of serial's. Runs of no time have none.
func (r *result) faster() string {
	if r.took <= 0 || r.serialTook <= 0 {
		return ""
	}
	return fmt.Sprintf("%.2g times as fast, ", r.serialTook.Seconds()/r.took.Seconds())
}

// explain says in words what the table shows to be wrong.
func (r *result) explain(b *bytes.Buffer, cfg config) {
	if len(r.wrong) > 0 {
		fmt.Fprintf(b, "\n%s a wrong balance:\n", have(len(r.wrong)))
		r.list(b, r.wrong, func(a int) string {
			return fmt.Sprintf("%s, which should be %s", money(r.book.balance(a)), money(r.serial.balance(a)))
		})
	}
	if len(r.unordered) > 0 {
		fmt.Fprintf(b, "\n%s entries in another order than the file's:\n", have(len(r.unordered)))
		r.list(b, r.unordered, r.firstUnordered)
	}
	switch {
	case cfg.mode == modeNaive && !r.good():
		b.WriteString(`
A task that reads a balance while another is about to write it does not know of
that one's entry, and when it writes it undoes it. That is what the lock prevents:
run again without -mode naive.
`)
	case cfg.mode == modeNaive:
		b.WriteString("\nEvery balance is right this time, which was luck: there was no lock.\n")
	}
}

// list writes the first few accounts.
func (r *result) list(b *bytes.Buffer, accounts []int, what func(account int) string) {
	const few = 5
	for _, a := range accounts[:min(few, len(accounts))] {
		fmt.Fprintf(b, "  %s: %s\n", r.accounts[a], what(a))
	}
	if n := len(accounts) - few; n > 0 {
		fmt.Fprintf(b, "  and %s more\n", thousands(int64(n)))
	}
}

// firstUnordered tells of the first entry that came before an earlier one.
func (r *result) firstUnordered(account int) string {
	lines := r.book.seen(account)
	for i := 1; i < len(lines); i++ {
		if lines[i] < lines[i-1] {
			return fmt.Sprintf("line %d before line %d", lines[i-1], lines[i])
		}
	}
	return fmt.Sprintf("%s in all", count(len(lines), "entry"))
}

func count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return thousands(int64(n)) + " " + noun
}

func have(accounts int) string {
	if accounts == 1 {
		return "1 account has"
	}
	return count(accounts, "account") + " have"
}

// rounded is d with two decimals.
func rounded(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%d µs", d.Microseconds())
	}
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
