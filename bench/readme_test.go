package bench

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// What the library's README shows between these two comes from results/: each
// row of its tables is one of results/README.md, and so is each chart.
const begin, end = "<!-- bench -->", "<!-- /bench -->"

func TestREADMEShowsWhatWasMeasured(t *testing.T) {
	readme := lines(t, "../README.md")
	from, to := slices.Index(readme, begin), slices.Index(readme, end)
	if from < 0 || to < from {
		t.Fatalf("the README has no %s", begin)
	}
	measured := lines(t, "results/README.md")
	for _, line := range readme[from:to] {
		if strings.HasPrefix(line, "|") && !slices.Contains(measured, line) {
			t.Errorf("not in results: %s", line)
		}
		if _, chart, ok := strings.Cut(line, "](bench/results/"); ok {
			chart, _, _ = strings.Cut(chart, ")")
			if _, err := os.Stat("results/" + chart); err != nil {
				t.Error(err)
			}
		}
	}
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
