package promlock_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/promlock"
)

// dashboard is what the tests look at of a Grafana dashboard.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name  string
			Query json.RawMessage
		}
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               struct{ UID string }
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ RefID, Expr, LegendFormat string }
		FieldConfig              struct{ Defaults struct{ Unit string } }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(bytes.NewReader(text)).Decode(&d))
	return d
}

// types are those of the metrics by name, of the collector's descriptors.
func types(t *testing.T) map[string]dto.MetricType {
	t.Helper()
	locks := promlock.NewCollector(processlock.New(processlock.Options{}), nil)
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(locks))
	families, err := r.Gather()
	require.NoError(t, err)
	by := make(map[string]dto.MetricType)
	for _, f := range families {
		by[f.GetName()] = f.GetType()
	}
	described := make(chan *prometheus.Desc, 100)
	locks.Describe(described)
	close(described)
	names := make(map[string]bool)
	for d := range described {
		names[regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	assert.Len(t, by, len(names), "what is described, and what is collected")
	for name := range names {
		assert.Contains(t, by, name)
	}
	return by
}

var (
	metricName = regexp.MustCompile(`processlock_\w+`)
	grouping   = regexp.MustCompile(`by \(([^)]*)\)`)
	selector   = regexp.MustCompile(`(\w+)=~`)
)

// The dashboard asks for what the collector has, all of it, and each metric as
// its type is to be asked for.
func TestDashboardUsesWhatIsCollected(t *testing.T) {
	d, types := readDashboard(t), types(t)
	used := make(map[string]bool)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			require.NotEmpty(t, target.Expr, p.Title)
			assert.Equal(t, strings.Count(target.Expr, "("), strings.Count(target.Expr, ")"), target.Expr)
			names := metricName.FindAllString(target.Expr, -1)
			require.Len(t, names, 1, target.Expr)
			name, part := names[0], ""
			if typ, ok := types[strings.TrimSuffix(name, "_bucket")]; ok && typ == dto.MetricType_HISTOGRAM {
				name, part = strings.TrimSuffix(name, "_bucket"), "_bucket"
			}
			require.Contains(t, types, name, target.Expr)
			used[name] = true
			switch over := regexp.MustCompile(`(rate|increase)\(` + names[0] + `\{[^}]*\}\[\$__(rate_interval|range)\]\)`).MatchString(target.Expr); types[name] {
			case dto.MetricType_GAUGE:
				assert.NotContains(t, target.Expr, "rate(")
				assert.NotContains(t, target.Expr, "increase(")
				assert.Equal(t, "short", p.FieldConfig.Defaults.Unit, p.Title)
			case dto.MetricType_COUNTER:
				assert.True(t, over, "a counter as it is: %s", target.Expr)
			case dto.MetricType_HISTOGRAM:
				assert.True(t, over, target.Expr)
				assert.Equal(t, "_bucket", part, target.Expr)
				assert.Regexp(t, `^histogram_quantile\(0\.\d+, sum by \(class, le\)`, target.Expr)
				assert.Equal(t, "s", p.FieldConfig.Defaults.Unit, p.Title)
			}
			for _, by := range grouping.FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(by[1], ", ") {
					assert.Contains(t, []string{"class", "le"}, label, target.Expr)
				}
			}
			variables := []string{}
			for _, s := range selector.FindAllStringSubmatch(target.Expr, -1) {
				variables = append(variables, s[1])
			}
			assert.Equal(t, []string{"job", "instance"}, variables, target.Expr)
		}
	}
	for name := range types {
		assert.True(t, used[name], "%s is on no panel", name)
	}
	for _, v := range d.Templating.List {
		for _, name := range metricName.FindAllString(string(v.Query), -1) {
			assert.Contains(t, types, name, v.Name)
		}
	}
}

// Panels have all that Grafana needs to show them, side by side.
func TestDashboardIsWellFormed(t *testing.T) {
	d := readDashboard(t)
	assert.NotEmpty(t, d.Title)
	assert.NotEmpty(t, d.UID)
	assert.NotZero(t, d.SchemaVersion)
	names := []string{}
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	assert.Equal(t, []string{"datasource", "job", "instance"}, names)
	ids, cells := map[int]bool{}, map[[2]int]string{}
	titles := map[string]bool{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels have id %d", p.ID)
		ids[p.ID] = true
		titles[p.Title] = true
		assert.Contains(t, []string{"stat", "timeseries"}, p.Type)
		assert.NotEmpty(t, p.Description, p.Title)
		assert.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		refs := map[string]bool{}
		for _, target := range p.Targets {
			assert.False(t, refs[target.RefID], p.Title)
			assert.NotEmpty(t, target.LegendFormat, p.Title)
			refs[target.RefID] = true
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Empty(t, cells[[2]int{x, y}], "%s is behind it", p.Title)
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
	for _, title := range []string{"Held", "Waiting", "Wait p50 and p99", "Hold p50 and p99", "Failures by reason", "Deadlocks"} {
		assert.True(t, titles[title], title)
	}
}
