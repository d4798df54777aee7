package lockdebug

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// sketch is a snapshot by hand, for what a coordinator shows for an instant at
// most: each row is a key and, for each of its waiters, the keys that it holds.
func sketch(rows ...[]string) []*lockState {
	taken := time.Unix(1e9, 0)
	var states []*lockState
	for i, r := range rows {
		l := &processlock.LockState{
			Key:     processlock.MustKey(r[0]),
			Holders: []processlock.Holder{{Client: "holder of " + r[0], Running: true}},
		}
		for j, held := range r[1:] {
			w := processlock.Waiter{Client: "w" + strconv.Itoa(j), Since: taken.Add(-time.Duration(len(rows)-i) * time.Minute)}
			for _, k := range strings.Fields(held) {
				w.Holding = append(w.Holding, processlock.MustKey(k))
			}
			l.Waiters = append(l.Waiters, w)
		}
		states = append(states, measure(l, taken))
	}
	return states
}

// outline writes a drawing down: boxes from top to bottom, indented by their
// column, each with its tabs.
func outline(d *drawing) string {
	var b strings.Builder
	for _, x := range d.Boxes {
		column := (x.X - edgeInset) / (boxWidth + gapX)
		b.WriteString(strings.Repeat("  ", column) + x.Texts[0].Text)
		for _, t := range x.Tabs {
			b.WriteString(" " + t.Label + t.State)
		}
		b.WriteString("\n")
	}
	for _, n := range d.Notes {
		b.WriteString(n.Text + "\n")
	}
	return b.String()
}

func drawAll(states []*lockState) (drawings []*drawing) {
	r := &report{}
	for _, s := range states {
		s.matching = true
	}
	r.addChains(states, time.Unix(1e9, 0))
	for _, c := range r.Chains {
		drawings = append(drawings, c.Drawing)
	}
	return drawings
}

func TestDrawing(t *testing.T) {
	for name, test := range map[string]struct {
		rows [][]string
		want string
	}{
		"queue": {
			[][]string{{"a", "", ""}},
			"holder of a [\"a\"]queue\n  1\n  2\n",
		},
		"chain": {
			[][]string{{"a", "b"}, {"b", "", "c"}, {"c", ""}},
			"holder of a [\"a\"]queue\n  1 [\"b\"]queue\n    1\n    2 [\"c\"]queue\n      1\n",
		},
		"holds what nobody wants": {
			[][]string{{"a", "z"}},
			"holder of a [\"a\"]queue\n  1 [\"z\"]idle\n",
		},
		"two heads": {
			[][]string{{"a", "c"}, {"b", "c"}, {"c", ""}},
			"holder of a [\"a\"]queue\n  1 [\"c\"]queue\n    1\nholder of b [\"b\"]queue\n  1 [\"c\"]seen\n",
		},
		"cycle": {
			[][]string{{"a", "b"}, {"b", "a"}},
			"holder of a [\"a\"]queue\n  1 [\"b\"]queue\n    1 [\"a\"]cycle\n",
		},
		"cycle of itself": {
			[][]string{{"a", "a"}},
			"holder of a [\"a\"]queue\n  1 [\"a\"]cycle\n",
		},
		"cycle behind a head": {
			[][]string{{"a", "b"}, {"b", "c"}, {"c", "b"}},
			"holder of a [\"a\"]queue\n  1 [\"b\"]queue\n    1 [\"c\"]queue\n      1 [\"b\"]cycle\n",
		},
		"many keys of one": {
			[][]string{{"a", "v w x y z"}, {"y", ""}},
			"holder of a [\"a\"]queue\n  1 [\"v\"]idle [\"w\"]idle [\"x\"]idle\nand 1 key more\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			drawings := drawAll(sketch(test.rows...))
			require.Len(t, drawings, 1)
			require.Equal(t, test.want, outline(drawings[0]))
		})
	}
}

// Whatever waits for whom, a drawing is bounded, its boxes lie apart and inside
// of it, every arrow ends at a tab, and it is the same each time.
func TestDrawingsOfAnything(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(40)
		var rows [][]string
		for i := range n {
			row := []string{fmt.Sprint("k", i)}
			for range 1 + r.IntN(9) {
				held := ""
				for range r.IntN(1+r.IntN(6)) / (1 + r.IntN(2)) {
					held += fmt.Sprint("k", r.IntN(n+3), " ")
				}
				row = append(row, held)
			}
			rows = append(rows, row)
		}
		drawings, again := drawAll(sketch(rows...)), drawAll(sketch(rows...))
		require.NotEmpty(t, drawings)
		for i, d := range drawings {
			require.Equal(t, outline(d), outline(again[i]))
			requireSound(t, d)
		}
	}
}

func requireSound(t *testing.T, d *drawing) {
	t.Helper()
	// A queue that is begun is drawn to its end, and so are those it is in.
	require.LessOrEqual(t, len(d.Boxes), drawnBoxes+drawnDepth*drawnRequests)
	require.LessOrEqual(t, d.Width, (drawnDepth+1)*(boxWidth+gapX))
	ends := map[string]bool{}
	for i, b := range d.Boxes {
		require.GreaterOrEqual(t, b.X, 0)
		require.GreaterOrEqual(t, b.Y, 0)
		require.LessOrEqual(t, b.X+boxWidth, d.Width)
		require.LessOrEqual(t, b.Y+b.Height, d.Height)
		for _, o := range d.Boxes[:i] {
			apart := b.X+boxWidth <= o.X || o.X+boxWidth <= b.X || b.Y+b.Height <= o.Y || o.Y+o.Height <= b.Y
			if !apart {
				t.Fatalf("boxes overlap:\n%s", outline(d))
			}
		}
		for _, tab := range b.Tabs {
			require.LessOrEqual(t, tab.Y+tabHeight, b.Height)
			if tab.State == "queue" {
				ends[fmt.Sprintf("M%d %d", b.X+boxWidth+1, b.Y+tab.Y+tabHeight/2)] = true
			}
		}
	}
	for _, e := range d.Edges {
		tip, _, _ := strings.Cut(e.Tip, "l")
		require.True(t, ends[tip], "an arrow ends at %s, where no tab is", tip)
	}
	requests := 0
	for _, b := range d.Boxes {
		if !b.Head {
			requests++
		}
	}
	require.Len(t, d.Edges, requests)
}

// However deep or wide a chain is, its drawing isn't.
func TestDrawingIsBounded(t *testing.T) {
	var deep, wide [][]string
	for i := range 60 {
		deep = append(deep, []string{fmt.Sprint("k", i), fmt.Sprint("k", i+1)})
	}
	d := drawAll(sketch(deep...))[0]
	requireSound(t, d)
	require.Len(t, d.Boxes, 1+drawnDepth)
	require.Equal(t, "cut", d.Boxes[drawnDepth].Tabs[0].State)
	require.Equal(t, []note{{edgeInset, d.Notes[0].Y, "and 51 keys more"}}, d.Notes)

	for i := range 400 {
		row := []string{fmt.Sprint("k", i)}
		for j := range 6 {
			row = append(row, fmt.Sprint("k", 6*i+j+1))
		}
		wide = append(wide, row)
	}
	requireSound(t, drawAll(sketch(wide...))[0])
}

func TestFit(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("x", 40), strings.Repeat("鍵", 40), strings.Repeat("🔑", 40), "é" + strings.Repeat("\u0301", 400)} {
		got := fit(s, 100)
		require.LessOrEqual(t, float64(width(got)), 100/charWidth)
		if got != s {
			require.True(t, strings.HasSuffix(got, "…"))
			require.True(t, strings.HasPrefix(s, strings.TrimSuffix(got, "…")))
			require.Greater(t, float64(width(got)), 100/charWidth-3)
		}
	}
	require.Equal(t, "…", fit("xx", 1))
}
