package lockdebug

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dbx-tools/processlock"
)

// The bounds of a drawing. What is beyond them is counted in it.
const (
	drawnRequests = 6  // of one queue
	drawnTabs     = 3  // of one request
	drawnHolders  = 3  // of one key
	drawnDepth    = 8  // queues from left to right
	drawnBoxes    = 48 // in all
)

// Measures in pixels. The text is fitted for fonts whose digits are up to
// charWidth wide, and clipped by its box where a font is wider.
const (
	boxWidth  = 250
	boxPad    = 10
	lineOne   = 18 // baselines in a box
	lineTwo   = 34
	lineStep  = 36 // from one holder to the next
	boxHeader = 43
	tabHeight = 28
	gapX      = 48
	gapY      = 12
	noteStep  = 22
	charWidth = 7.3
	edgeInset = 4 // room for strokes and focus rings at the drawing's rim
)

// drawing is a chain laid out from left to right: requests are boxes, the keys
// that they hold are tabs in their boxes, and an arrow goes from each request
// to the key that it waits for. It is a tree, so no arrow crosses another: a key
// that is reached a second time is a tab that says so.
type drawing struct {
	Width, Height int
	Edges         []edge
	Boxes         []*box
	Notes         []note
}

// edge is a curve, and the tip of its arrow.
type edge struct{ Path, Tip string }

// note is text outside of boxes.
type note struct {
	X, Y int
	Text string
}

// box is one request, or the holders of a key that head a chain. What is in it
// is placed relative to it.
type box struct {
	X, Y, Height int
	Head         bool
	Texts        []label
	Tabs         []tab
}

type label struct {
	X, Y  int
	Class string
	End   bool // X is where it ends
	Text  string
}

// tab is a key that the box's request holds.
type tab struct {
	keyRef
	Y     int
	Label string
	Note  string // why nothing hangs on it here, or how many do
	State string // "queue", "idle", "seen", "cycle" or "cut"
	knot  *knot
}

// Width is every box's.
func (*box) Width() int { return boxWidth }

// pen draws one chain.
type pen struct {
	*drawing
	graph *graph
	taken time.Time
}

// draw lays out a chain. It begins with the keys whose holders don't wait; if
// there are none, on a cycle, with the one that has the longest wait.
func (g *graph) draw(knots []*knot, taken time.Time) *drawing {
	p := &pen{drawing: &drawing{}, graph: g, taken: taken}
	cyclic := !slices.ContainsFunc(knots, func(k *knot) bool { return !k.held })
	y := edgeInset
	for _, k := range knots {
		if (cyclic || !k.held) && !k.seen && len(p.Boxes) < drawnBoxes {
			y = p.head(k, y) + gapY
		}
	}
	unseen := 0
	for _, k := range knots {
		if !k.seen {
			unseen++
		}
	}
	if unseen > 0 {
		p.note(edgeInset, y, "and "+plural(unseen, "key")+" more")
		y += noteStep
	}
	p.Height = y - gapY + edgeInset
	return p.drawing
}

// head draws k with its holders, and what hangs on it, down from y. It returns
// where that ends.
func (p *pen) head(k *knot, y int) int {
	b := p.box(edgeInset, y)
	b.Head = true
	n := min(len(k.Holders), drawnHolders)
	for i, h := range k.Holders[:n] {
		b.who(i*lineStep, holderOf(h, p.taken).caller, since(h.Since, p.taken), "")
	}
	b.Height = boxHeader + max(n-1, 0)*lineStep
	if rest := len(k.Holders) - n; rest > 0 {
		b.text(boxPad, b.Height+4, "dim", "and "+plural(rest, "shared holder")+" more")
		b.Height += 16
	}
	if n == 0 {
		b.text(boxPad, lineOne, "dim", "being handed over")
	}
	b.tab(k.Key, k)
	return p.queues(b, 1)
}

// box puts an empty box at x, y.
func (p *pen) box(x, y int) *box {
	b := &box{X: x, Y: y, Height: boxHeader}
	p.Boxes = append(p.Boxes, b)
	p.Width = max(p.Width, x+boxWidth+edgeInset)
	return b
}

// who writes two lines about a request, dy down from the top.
func (b *box) who(dy int, c caller, lasted span, position string) {
	age := lasted.String()
	if !lasted.known {
		age = "since ?"
	}
	x, mode := boxPad, ""
	if position != "" {
		b.text(x, dy+lineOne, "position", position)
		x += 8 + int(charWidth*float64(len(position)))
	}
	if c.Shared() {
		mode = "  shared"
	}
	room := boxWidth - boxPad - x - int(charWidth*float64(width(age)+2))
	b.text(x, dy+lineOne, "who", fit(c.Name(), room-int(charWidth*float64(len(mode))))+mode)
	b.Texts = append(b.Texts, label{boxWidth - boxPad, dy + lineOne, "age " + lasted.Level(), true, age})
	below := c.ShortFunc()
	if place := c.Place(); place != "" {
		below = place
		if c.Client != "" {
			below = c.ShortFunc() + "  " + place
		}
	}
	b.text(boxPad, dy+lineTwo, "func", fit(below, boxWidth-2*boxPad))
}

func (b *box) text(x, y int, class, text string) {
	b.Texts = append(b.Texts, label{X: x, Y: y, Class: class, Text: text})
}

// tab adds a key that the box's request holds; k is its knot, if it has one. A
// knot that is seen for the first time is to be drawn from here.
func (b *box) tab(key processlock.Key, k *knot) {
	t := tab{keyRef: refOf(key), Y: b.Height, State: "idle"}
	switch {
	case k == nil:
	case k.onStack:
		t.State, t.Note = "cycle", "cycle"
	case k.seen:
		t.State, t.Note = "seen", "drawn elsewhere"
	default:
		t.State, t.Note, t.knot = "queue", count(len(k.Waiters))+" waiting", k
		k.seen = true
	}
	t.Label = fit(t.Text, boxWidth-3*boxPad-int(charWidth*float64(len(t.Note))))
	b.Tabs = append(b.Tabs, t)
	b.Height += tabHeight
}

// queues draws the queues of b's keys in the column to its right, and returns
// where that or b ends.
func (p *pen) queues(b *box, depth int) int {
	x, y, bottom := b.X+boxWidth+gapX, b.Y, b.Y+b.Height
	for i := range b.Tabs {
		t := &b.Tabs[i]
		if t.knot == nil {
			continue
		}
		if depth > drawnDepth || len(p.Boxes) >= drawnBoxes {
			t.State = "cut"
			continue
		}
		t.knot.onStack = true
		end := p.queue(t.knot, x, y, b.Y+t.Y+tabHeight/2, depth)
		t.knot.onStack = false
		y = end + gapY
		bottom = max(bottom, end)
	}
	return bottom
}

// queue draws the waiters for k down from x, y, with arrows to their left that
// end at the height of tabY. It returns where they end.
func (p *pen) queue(k *knot, x, y, tabY, depth int) int {
	picked := pick(k.Waiters)
	for _, i := range picked {
		w := waiterOf(k.Waiters[i], i+1, p.taken)
		b := p.box(x, y)
		b.who(0, w.caller, w.Waited, strconv.Itoa(w.Position))
		held := k.Waiters[i].Holding
		for _, h := range held[:min(len(held), drawnTabs)] {
			b.tab(h, p.graph.knot(h))
		}
		if rest := len(held) - drawnTabs; rest > 0 {
			b.text(boxPad, b.Height+14, "dim", "and "+plural(rest, "key")+" more")
			b.Height += noteStep
		}
		p.edge(x, y+lineOne-4, x-gapX, tabY)
		y = p.queues(b, depth+1) + gapY
	}
	if rest := len(k.Waiters) - len(picked); rest > 0 {
		p.note(x+boxPad, y, "and "+count(rest)+" more waiting")
		y += noteStep
	}
	return y - gapY
}

// pick returns which waiters are drawn, by their index: those that hold keys
// before those that don't, each in queue order.
func pick(waiters []processlock.Waiter) []int {
	var picked []int
	for _, holds := range []bool{true, false} {
		for i := range waiters {
			if len(picked) == drawnRequests {
				break
			}
			if holds == (len(waiters[i].Holding) > 0) {
				picked = append(picked, i)
			}
		}
	}
	slices.Sort(picked)
	return picked
}

func (p *pen) note(x, y int, text string) {
	p.Notes = append(p.Notes, note{x, y + 14, text})
	p.Width = max(p.Width, x+boxWidth)
}

// edge draws an arrow from the left side of a request to a key.
func (p *pen) edge(fromX, fromY, toX, toY int) {
	const tip = 7
	mid := (fromX + toX + tip) / 2
	p.Edges = append(p.Edges, edge{
		Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", fromX, fromY, mid, fromY, mid, toY, toX+tip, toY),
		Tip:  fmt.Sprintf("M%d %dl%d-4v8z", toX+1, toY, tip+1),
	})
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}
