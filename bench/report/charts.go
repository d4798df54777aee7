package report

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"

	"github.com/dbx-tools/processlock/bench/measure"
	"github.com/dbx-tools/processlock/bench/workload"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// shown are the contenders in charts; the tables have all.
var shown = []string{ours, "map+Mutex", "map+Weighted", "map+Cond", "chained channels", "map+channel", "sync.Map+Mutex", "coordinator goroutine"}

// colours are theirs, ours the darkest.
var colours = []color.Color{
	color.RGBA{0x14, 0x21, 0x3d, 0xff},
	color.RGBA{0xe6, 0x55, 0x0d, 0xff},
	color.RGBA{0x31, 0x82, 0xbd, 0xff},
	color.RGBA{0x31, 0xa3, 0x54, 0xff},
	color.RGBA{0x75, 0x6b, 0xb1, 0xff},
	color.RGBA{0x9e, 0x6a, 0x3a, 0xff},
	color.RGBA{0xe7, 0x8a, 0xc3, 0xff},
	color.RGBA{0x96, 0x96, 0x96, 0xff},
}

// point is where a chart looks: a series of the results, and what to call it.
type point struct {
	workload, variant string
	unit              string
	scale             float64
	label             string
	x                 float64 // on a logarithmic axis; unused on a nominal one
}

type chart struct {
	file, title string
	x, y        string
	points      []point
	nominal     bool // x has names, not numbers
	bars        bool // from zero; else points on a logarithmic axis
}

// charts are what is drawn, each if its workloads were run.
var charts = []chart{
	{file: "workloads.svg", title: "Cost by workload", y: "ns a call", nominal: true, points: []point{
		{"Uncontended/keys=1", "key=string", measure.NsPerOp, 1, "uncontended", 0},
		{"Uncontended/keys=65536", "key=string", measure.NsPerOp, 1, "65,536 keys", 0},
		{"Disjoint/procs=2", "", measure.NsPerOp, 1, "disjoint", 0},
		{"Zipf/s=1.1/keys=10000/goroutines=64", "", measure.NsPerOp, 1, "Zipf", 0},
		{"Hot/goroutines=8", "ctx=background", measure.NsPerOp, 1, "hot, 8", 0},
		{"Hot/goroutines=128", "ctx=background", measure.NsPerOp, 1, "hot, 128", 0},
		{"Nested/depth=2", "", measure.NsPerOp, 1, "nested, 2", 0},
	}},
	{file: "waits.svg", title: "Waits for a key that 16 goroutines hold for 20 us", y: "us", nominal: true, points: []point{
		{"Waits/goroutines=16/hold=20µs", "", workload.P50, 1e-3, "p50", 0},
		{"Waits/goroutines=16/hold=20µs", "", workload.P99, 1e-3, "p99", 0},
		{"Waits/goroutines=16/hold=20µs", "", workload.Max, 1e-3, "max", 0},
	}},
	{file: "goroutines.svg", title: "One hot key, more goroutines", x: "goroutines", y: "ns a call", points: over(workload.Crowds, func(n int) point {
		return point{fmt.Sprintf("Hot/goroutines=%d", n), "ctx=background", measure.NsPerOp, 1, "", float64(n)}
	})},
	{file: "keys.svg", title: "Disjoint keys, two processors, more keys", x: "keys", y: "ns a call", points: over(workload.Growths, func(n int) point {
		return point{"DisjointGrowth/procs=2", fmt.Sprintf("keys=%d", n), measure.NsPerOp, 1, "", float64(n)}
	})},
}

func over(ns []int, of func(n int) point) []point {
	var ps []point
	for _, n := range ns {
		ps = append(ps, of(n))
	}
	return ps
}

// memoryChart is of whichever size was run.
func memoryChart(r *Report) (chart, bool) {
	for _, w := range r.Workloads {
		var keys int
		if _, err := fmt.Sscanf(w.Name, "Memory/keys=%d", &keys); err == nil {
			return chart{file: "memory.svg", title: fmt.Sprintf("Memory, %d keys", keys), y: "B a key", nominal: true, bars: true, points: []point{
				{w.Name, "", workload.HeldPerKey, 1, "held at once", 0},
				{w.Name, "", workload.Kept, 1 / float64(keys), "kept after release", 0},
			}}, true
		}
	}
	return chart{file: "memory.svg"}, false
}

func init() {
	charts = append(charts, chart{file: "memory.svg", title: "Memory of a burst of keys"})
}

// has reports whether the chart's workloads were run.
func (c chart) has(r *Report) bool {
	if c.file == "memory.svg" {
		_, ok := memoryChart(r)
		return ok
	}
	for _, p := range c.points {
		if r.Results.Of(p.workload, ours, p.variant) == nil {
			return false
		}
	}
	return true
}

func (r *Report) draw(dir string) error {
	for _, c := range charts {
		if !c.has(r) {
			continue
		}
		if c.file == "memory.svg" {
			c, _ = memoryChart(r)
		}
		if err := c.draw(r, filepath.Join(dir, c.file)); err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
	}
	return nil
}

func (c chart) draw(r *Report, file string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	if c.nominal {
		var names []string
		for _, pt := range c.points {
			names = append(names, pt.label)
		}
		p.NominalX(names...)
		p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
	} else {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if !c.bars {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for i, name := range shown {
		if err := c.add(p, r, i, name); err != nil {
			return err
		}
	}
	// Room for the legend.
	if c.bars {
		p.Y.Max *= 1.4
	} else {
		p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, 0.4)
	}
	return p.Save(8*vg.Inch, 5*vg.Inch, file)
}

// add draws one contender.
func (c chart) add(p *plot.Plot, r *Report, i int, name string) error {
	var xys plotter.XYs
	for j, pt := range c.points {
		v, ok := r.Results.Of(pt.workload, name, pt.variant).Median(pt.unit)
		if !ok {
			continue
		}
		x := pt.x
		if c.nominal {
			// Side by side, so that equal ones don't hide each other.
			x = float64(j) + (float64(i)-float64(len(shown)-1)/2)*0.09
		}
		if v *= pt.scale; !c.bars && v <= 0 {
			continue // has no place on a logarithmic axis
		}
		xys = append(xys, plotter.XY{X: x, Y: v})
	}
	if len(xys) == 0 {
		return nil
	}
	if c.bars {
		values := make(plotter.Values, len(xys))
		for j := range xys {
			values[j] = xys[j].Y
		}
		b, err := plotter.NewBarChart(values, vg.Points(16))
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = colours[i], 0
		b.Offset = vg.Points(18 * (float64(i) - float64(len(shown)-1)/2))
		p.Add(b)
		p.Legend.Add(name, b)
		return nil
	}
	line, dots, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	line.Color, dots.Color = colours[i], colours[i]
	dots.Shape, dots.Radius = draw.CircleGlyph{}, vg.Points(3)
	if name == ours {
		dots.Shape, dots.Radius, line.Width = draw.BoxGlyph{}, vg.Points(4), vg.Points(2)
	}
	if c.nominal {
		p.Add(dots)
		p.Legend.Add(name, dots)
		return nil
	}
	p.Add(line, dots)
	p.Legend.Add(name, line, dots)
	return nil
}
