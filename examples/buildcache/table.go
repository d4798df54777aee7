package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// table is the report on a run that came to its end.
func (r *result) table(cfg config, store *cache) []byte {
	var b bytes.Buffer
	row := func(name, value, note string) {
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("  %-20s %10s   %s", name, value, note), " "))
	}
	folders := len(r.folders)
	mode := "with the lock"
	if cfg.nolock {
		mode = "WITHOUT the lock"
	}
	fmt.Fprintf(&b, "buildcache %s: %s, %s, %s, seed %d\n\n", mode,
		count(folders, "folder"), count(cfg.workers, "worker"), count(cfg.rounds, "round"), cfg.seed)

	builds, found := r.totals()
	row("requests", thousands(r.requests), "")
	if found > 0 {
		row("from an earlier run", thousands(found), "")
	}
	if r.corrupt > 0 {
		row("corrupt, rebuilt", thousands(int64(r.corrupt)), "")
	}
	parallel := ""
	if builds > 0 {
		parallel = fmt.Sprintf("up to %d at one time", r.peak)
	}
	row("builds", thousands(builds), parallel)
	row("waits", thousands(r.waits), rounded(r.waited)+" in all")
	row("longest wait", rounded(r.longest.time), r.longest.folder)
	row("time", rounded(r.took), "")
	fmt.Fprintln(&b)

	more, never := r.notOnce()
	check := func(name string, bad int) {
		verdict := "ok"
		if bad > 0 {
			verdict = "FAILED"
		}
		row(name, thousands(int64(folders-bad)), fmt.Sprintf("of %s  %s", thousands(int64(folders)), verdict))
	}
	check("right on disk", len(r.wrong))
	check("built exactly once", len(more)+len(never))

	r.explain(&b, cfg, more, never)
	if !store.temp {
		fmt.Fprintf(&b, "\n%s%s\n", strings.ToUpper(store.where()[:1]), store.where()[1:])
	}
	return b.Bytes()
}

// explain says in words what the table shows to be wrong.
func (r *result) explain(b *bytes.Buffer, cfg config, more, never []int) {
	if len(r.wrong) > 0 {
		fmt.Fprintf(b, "\n%s an artifact that is not right:\n", have(len(r.wrong)))
		list(b, r.wrong)
	}
	if len(never) > 0 {
		fmt.Fprintf(b, "\n%s not built by this run; does another process use the cache folder?\n", were(len(never)))
		list(b, pick(r.folders, never))
	}
	if len(more) > 0 {
		slices.SortStableFunc(more, func(i, j int) int { return cmp.Compare(r.times(j), r.times(i)) })
		names := pick(r.folders, more)
		for k, i := range more {
			names[k] = fmt.Sprintf("%d times  %s", r.times(i), names[k])
		}
		fmt.Fprintf(b, "\n%s built more than once:\n", were(len(more)))
		list(b, names)
	}
	switch {
	case cfg.nolock && len(more) > 0:
		b.WriteString(`
A worker that finds no artifact builds it. Until it is done, every other worker
that asks finds none either, and builds it too. That is what the lock prevents:
run again without -nolock.
`)
	case cfg.nolock:
		b.WriteString("\nNo folder was built twice this time, which was luck: there was no lock.\n")
	}
}

// unfinished is the report on a run that was interrupted.
func (r *result) unfinished(store *cache) string {
	return fmt.Sprintf("%s of %s artifacts were finished; %s",
		thousands(r.finished()), thousands(int64(len(r.folders))), store.where())
}

// list writes the first few names.
func list(b *bytes.Buffer, names []string) {
	const few = 5
	for _, name := range names[:min(few, len(names))] {
		fmt.Fprintf(b, "  %s\n", name)
	}
	if n := len(names) - few; n > 0 {
		fmt.Fprintf(b, "  and %s more\n", thousands(int64(n)))
	}
}

func pick(names []string, indexes []int) []string {
	picked := make([]string, len(indexes))
	for k, i := range indexes {
		picked[k] = names[i]
	}
	return picked
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(int64(n)) + " " + noun
}

func were(folders int) string {
	if folders == 1 {
		return "1 folder was"
	}
	return count(folders, "folder") + " were"
}

func have(folders int) string {
	if folders == 1 {
		return "1 folder has"
	}
	return count(folders, "folder") + " have"
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
