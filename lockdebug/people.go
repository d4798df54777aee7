package lockdebug

import (
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
)

// caller is who made a request and with which fn.
type caller struct {
	Client string `json:"client"` // "" for none
	Func   string `json:"func"`
	File   string `json:"file"` // "" for a method value
	Line   int    `json:"line"`
	Mode   string `json:"mode"`
}

// holder is a request that has the key.
type holder struct {
	caller
	Since   time.Time `json:"since,omitzero"`
	Held    span      `json:"held_seconds,omitzero"`
	Running bool      `json:"running"`
}

// waiter is a request in the key's queue.
type waiter struct {
	caller
	Position   int       `json:"position"` // 1 is next
	Since      time.Time `json:"since"`
	Waited     span      `json:"waited_seconds"`
	Holding    []keyRef  `json:"holding"`
	HoldingCut int       `json:"holding_cut"`
}

func callerOf(client, fn, file string, line int, mode processlock.Mode) caller {
	return caller{printable(client, maxName), printable(fn, maxFunc), printable(file, maxFile), line, mode.String()}
}

func holderOf(h processlock.Holder, taken time.Time) holder {
	return holder{
		caller:  callerOf(h.Client, h.Func, h.File, h.Line, h.Mode),
		Since:   utc(h.Since),
		Held:    since(h.Since, taken),
		Running: h.Running,
	}
}

func waiterOf(w processlock.Waiter, position int, taken time.Time) waiter {
	o := waiter{
		caller:   callerOf(w.Client, w.Func, w.File, w.Line, w.Mode),
		Position: position,
		Since:    utc(w.Since),
		Waited:   since(w.Since, taken),
		Holding:  []keyRef{},
	}
	for _, k := range w.Holding[:min(len(w.Holding), maxHeld)] {
		o.Holding = append(o.Holding, refOf(k))
	}
	o.HoldingCut = len(w.Holding) - len(o.Holding)
	return o
}

// utc returns t without its place and its monotonic reading; the zero Time
// stays itself.
func utc(t time.Time) time.Time { return t.UTC().Round(0) }

// ShortFunc is the function without the path of its package.
func (c caller) ShortFunc() string {
	name, types := c.Func, ""
	if i := strings.IndexByte(name, '['); i >= 0 {
		name, types = name[:i], name[i:] // type arguments have paths of their own
	}
	return name[strings.LastIndexByte(name, '/')+1:] + types
}

// Place is the file without its folder, and the line.
func (c caller) Place() string {
	if c.File == "" {
		return ""
	}
	return path.Base(strings.ReplaceAll(c.File, `\`, "/")) + ":" + strconv.Itoa(c.Line)
}

// FullPlace is the file with its folder, and the line.
func (c caller) FullPlace() string {
	if c.File == "" {
		return ""
	}
	return c.File + ":" + strconv.Itoa(c.Line)
}

// Name is the shortest that tells who it is.
func (c caller) Name() string {
	if c.Client != "" {
		return c.Client
	}
	return c.ShortFunc()
}

// Shared reports whether the mode is shared.
func (c caller) Shared() bool { return c.Mode == processlock.ModeShared.String() }
