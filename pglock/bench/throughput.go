package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const goroutines = 64 // in each process

// hotKey measures one key that everybody wants.
func (m *measurer) hotKey() error {
	fmt.Println("\n### One hot key, empty fn\n\nLocks per second of all processes. Of the 4: how far the turns of a process are from\ntheir mean, and the longest time in which one had no turn.")
	fmt.Println("\n| | 1 process x 64 goroutines | | 4 processes x 64 | | from the mean | longest gap |\n|---|---|---|---|---|---|---|")
	var base [2]float64
	for _, name := range []string{byHand, "pglock, no handoff", "pglock"} {
		var rate [2]float64
		var apart float64
		var gap time.Duration
		for i, processes := range []int{1, 4} {
			results, err := m.spread(task{Way: name, Goroutines: goroutines, Span: m.span}, processes)
			if err != nil {
				return err
			}
			rate[i] = perSecond(results, m.span)
			apart, gap = spreadOf(results)
		}
		if name == byHand {
			base = rate
		}
		fmt.Printf("| %s | %s | %.1f x | %s | %.1f x | %.0f %% | %v |\n", label(name), thousands(rate[0]), rate[0]/base[0],
			thousands(rate[1]), rate[1]/base[1], apart*100, gap.Round(time.Millisecond))
	}
	return nil
}

// freeKeys measures keys that nobody else wants.
func (m *measurer) freeKeys() error {
	fmt.Println("\n### Free keys, a key for each goroutine\n\n| goroutines | by hand, locks/s | pglock, locks/s | |\n|---|---|---|---|")
	for _, n := range []int{1, 8, 64} {
		// In turns, so that what else the machine does meets both.
		var rate [2]float64
		const rounds = 5
		for range rounds {
			for i, name := range []string{byHand, "pglock"} {
				span := m.span / rounds
				results, err := m.spread(task{Way: name, Goroutines: n, OwnKeys: true, Span: span}, 1)
				if err != nil {
					return err
				}
				rate[i] += perSecond(results, span) / rounds
			}
		}
		fmt.Printf("| %d | %s | %s | %.1f x |\n", n, thousands(rate[0]), thousands(rate[1]), rate[1]/rate[0])
	}
	return nil
}

func perSecond(results []result, span time.Duration) float64 {
	n := int64(0)
	for _, r := range results {
		n += r.Turns
	}
	return float64(n) / span.Seconds()
}

// spreadOf returns how far the turns of the processes are apart from their mean,
// and the longest gap.
func spreadOf(results []result) (apart float64, gap time.Duration) {
	sum := 0.0
	for _, r := range results {
		sum += float64(r.Turns)
	}
	mean := sum / float64(len(results))
	for _, r := range results {
		apart = max(apart, float64(r.Turns)/mean-1, 1-float64(r.Turns)/mean)
		gap = max(gap, r.Gap)
	}
	return apart, gap
}

func label(name string) string {
	switch name {
	case byHand:
		return "by hand, a connection each"
	case "pglock, no handoff":
		return "pglock, Handoff.Max 1"
	}
	return name
}

// thousands writes a number with a separator.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// processor names the processor, where the system tells.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
