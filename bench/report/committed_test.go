package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
)

const committed = "../results"

// Nobody has written to the committed tables by hand: their figures are the
// digest's, and the digest's are the medians of the raw runs.
func TestCommittedResultsAgree(t *testing.T) {
	var digest struct {
		Bounds []struct {
			What, Than string
			Measured   float64
		}
		Rows []struct {
			Workload, Impl, Variant string
			Medians                 map[string]float64
			Ratio                   float64
		}
	}
	if err := json.Unmarshal(read(t, "results.json"), &digest); err != nil {
		t.Fatal(err)
	}
	if len(digest.Rows) == 0 || len(digest.Bounds) == 0 {
		t.Fatal("nothing is in the digest")
	}
	raw := rawMedians(t)
	tables := string(read(t, "README.md"))
	for _, row := range digest.Rows {
		name := row.Workload + "/" + workload.Label(row.Impl, row.Variant)
		for unit, v := range row.Medians {
			if got, ok := raw[name][unit]; !ok || math.Abs(got-v) > 1e-5*math.Abs(v) {
				t.Errorf("%s: %v %s in the digest, %v in the raw runs", name, v, unit, got)
			}
		}
		_, section, _ := strings.Cut(tables, "\n## "+row.Workload+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		i := strings.Index(section, "\n| "+strings.TrimSpace(row.Impl+" "+row.Variant)+" |")
		if i < 0 {
			t.Errorf("%s is in no table", name)
			continue
		}
		line, _, _ := strings.Cut(section[i+1:], "\n")
		cells := strings.Split(line, "|")
		family, _, _ := strings.Cut(row.Workload, "/")
		columns := special[family]
		if columns == nil {
			columns = timing
		}
		for j, c := range columns {
			v, ok := row.Medians[c.unit]
			want := ""
			if ok {
				want = figure(v * c.scale)
			}
			if got := strings.TrimSpace(cells[7+j]); got != want {
				t.Errorf("%s: %s is %q in the table, want %q", name, c.head, got, want)
			}
		}
		if columns[0].unit == measure.NsPerOp {
			if got, want := strings.TrimSpace(cells[7+len(columns)]), fmt.Sprintf("%.2f", row.Ratio); got != want {
				t.Errorf("%s: x ours is %q in the table, want %q", name, got, want)
			}
		}
	}
	for _, b := range digest.Bounds {
		if !slices.ContainsFunc(strings.Split(tables, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "| "+b.What+" |") && strings.Contains(line, " "+b.Than+" | "+figure(b.Measured)+" |")
		}) {
			t.Errorf("%s: no row of %s", b.What, figure(b.Measured))
		}
	}
}

// rawMedians are the medians of raw.txt by name, without its processors, and
// unit.
func rawMedians(t *testing.T) map[string]map[string]float64 {
	t.Helper()
	all := make(map[string]map[string][]float64)
	for line := range bytes.Lines(read(t, "raw.txt")) {
		fields := strings.Split(strings.TrimSpace(string(line)), "\t")
		name, ok := strings.CutPrefix(fields[0], "Benchmark")
		if !ok {
			continue
		}
		name = name[:strings.LastIndex(name, "-")]
		if all[name] == nil {
			all[name] = make(map[string][]float64)
		}
		for _, f := range fields[2:] {
			number, unit, _ := strings.Cut(f, " ")
			v, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			all[name][unit] = append(all[name][unit], v)
		}
	}
	medians := make(map[string]map[string]float64)
	for name, units := range all {
		medians[name] = make(map[string]float64)
		for unit, vs := range units {
			medians[name][unit], _ = measure.Median(vs)
		}
	}
	return medians
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(committed, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
