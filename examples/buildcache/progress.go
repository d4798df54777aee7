package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// progressWidth keeps a line from wrapping on a terminal of the usual size:
// one that wraps cannot be written over.
const progressWidth = 79

// progress is a line on a terminal that says how far the run is.
type progress struct {
	line atomic.Pointer[func() string]
	quit chan struct{}
	done chan struct{}
}

// startProgress starts the line. Unless w is a terminal it writes nothing.
func startProgress(w io.Writer, terminal bool) *progress {
	p := &progress{quit: make(chan struct{}), done: make(chan struct{})}
	p.show(func() string { return "looking for artifacts of an earlier run" })
	if !terminal {
		close(p.done)
		return p
	}
	go p.draw(w)
	return p
}

// show makes line the one to ask for what to write from now on.
func (p *progress) show(line func() string) { p.line.Store(&line) }

// stop clears the line. Nothing is written to the terminal after it returns.
func (p *progress) stop() {
	close(p.quit)
	<-p.done
}

func (p *progress) draw(w io.Writer) {
	defer close(p.done)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.quit:
			fmt.Fprintf(w, "\r%*s\r", progressWidth, "")
			return
		case <-tick.C:
			fmt.Fprintf(w, "\r%-*.*s", progressWidth, progressWidth, (*p.line.Load())())
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
