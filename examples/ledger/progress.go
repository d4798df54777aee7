package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progressWidth keeps a line from wrapping on a terminal of the usual size:
// one that wraps cannot be written over.
const progressWidth = 79

// progress says how far the run is: on a terminal in a line that is written
// over, elsewhere in a new line each second.
type progress struct {
	shown chan func() string
	done  chan struct{}
}

func startProgress(w io.Writer, terminal bool) *progress {
	p := &progress{make(chan func() string), make(chan struct{})}
	go p.draw(w, terminal)
	return p
}

// show makes line the one to ask for what to write from now on.
func (p *progress) show(line func() string) { p.shown <- line }

// stop clears a terminal's line. Nothing is written after it returns.
func (p *progress) stop() {
	close(p.shown)
	<-p.done
}

func (p *progress) draw(w io.Writer, terminal bool) {
	defer close(p.done)
	each := time.Second
	if terminal {
		each = 100 * time.Millisecond
	}
	tick := time.NewTicker(each)
	defer tick.Stop()
	line, written := func() string { return "" }, false
	for {
		select {
		case next, ok := <-p.shown:
			if ok {
				line = next
				continue
			}
			if written && terminal {
				fmt.Fprintf(w, "\r%*s\r", progressWidth, "")
			}
			return
		case <-tick.C:
			if written = true; terminal {
				fmt.Fprintf(w, "\r%-*.*s", progressWidth, progressWidth, line())
			} else {
				fmt.Fprintln(w, line())
			}
		}
	}
}

// isTerminal reports whether w is a character device, which is the nearest
// the standard library comes to asking for a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
