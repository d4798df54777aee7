package bench

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the library's README shows between these two comes from results/. Before
// a table is the name of its workload there, and its rows, of which ours is one,
// are of that workload; charts are what was drawn.
const begin, end = "<!-- bench -->", "<!-- /bench -->"

var workloadMark = regexp.MustCompile(`^<!-- (\S+) -->$`)

func TestREADMEShowsWhatWasMeasured(t *testing.T) {
	readme := lines(t, "../README.md")
	from, to := slices.Index(readme, begin), slices.Index(readme, end)
	if from < 0 || to < from {
		t.Fatalf("the README has no %s", begin)
	}
	measured := sections(lines(t, "results/README.md"))
	var rows []string // of the workload named last
	tables, charts := 0, 0
	for _, line := range readme[from+1 : to] {
		switch chart, isChart := strings.CutPrefix(line, "!["); {
		case workloadMark.MatchString(line):
			name := workloadMark.FindStringSubmatch(line)[1]
			if rows = measured[name]; rows == nil {
				t.Errorf("no workload %s in results", name)
			}
		case strings.HasPrefix(line, "|"):
			if !slices.Contains(rows, line) {
				t.Errorf("not in results of the workload: %s", line)
			}
			if strings.HasPrefix(line, "| processlock ") {
				tables++
			}
		case isChart:
			_, file, _ := strings.Cut(chart, "](bench/")
			file = strings.TrimSuffix(file, ")")
			if _, err := os.Stat(file); err != nil || !strings.HasPrefix(file, "results/") {
				t.Errorf("no chart %s", line)
			}
			charts++
		}
	}
	if tables != 2 || charts != 2 {
		t.Errorf("%d tables with a row of ours and %d charts, want 2 of each", tables, charts)
	}
}

// sections are the lines under each heading of the second level.
func sections(lines []string) map[string][]string {
	of := make(map[string][]string)
	name := ""
	for _, line := range lines {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			name = heading
		} else {
			of[name] = append(of[name], line)
		}
	}
	return of
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
