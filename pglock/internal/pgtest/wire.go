package pgtest

import (
	"encoding/binary"
	"strings"
	"sync"
)

// Wire is what has passed through a [Proxy].
type Wire struct {
	Conns      int      // connections, those for cancel requests too
	Cancels    int      // cancel requests
	RoundTrips int      // how often the server answered what a client had sent
	Statements []string // texts of simple queries and of those that were prepared
	Executes   int      // simple queries and executions of prepared ones
}

// Count returns how many statements contain all of words.
func (w Wire) Count(words ...string) int {
	n := 0
	for _, statement := range w.Statements {
		all := true
		for _, word := range words {
			all = all && strings.Contains(statement, word)
		}
		if all {
			n++
		}
	}
	return n
}

// Wire returns what has passed since the last call.
func (p *Proxy) Wire() Wire {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.wire
	p.wire = Wire{}
	return w
}

const cancelRequest = 80877102

// watcher reads what a client sends over one connection.
type watcher struct {
	proxy *Proxy

	mu      sync.Mutex
	pending []byte // the beginning of a message that has not come whole
	started bool   // the startup message, which has no type, is behind
	asked   bool   // something was sent that has not been answered
}

func (w *watcher) fromServer([]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked {
		w.asked = false
		w.proxy.note(func(wire *Wire) { wire.RoundTrips++ })
	}
}

func (w *watcher) fromClient(chunk []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = true
	w.pending = append(w.pending, chunk...)
	for {
		head := 1 // the type, in front of the length
		if !w.started {
			head = 0
		}
		if len(w.pending) < head+4 {
			return
		}
		size := head + int(binary.BigEndian.Uint32(w.pending[head:]))
		if len(w.pending) < size {
			return
		}
		w.message(w.pending[:size], head)
		w.pending = append([]byte(nil), w.pending[size:]...)
	}
}

func (w *watcher) message(m []byte, head int) {
	body := m[head+4:]
	if head == 0 {
		if len(body) >= 4 && binary.BigEndian.Uint32(body) == cancelRequest {
			w.proxy.note(func(wire *Wire) { wire.Cancels++ })
		}
		w.started = true
		return
	}
	switch m[0] {
	case 'Q':
		text := zeroEnded(body)
		w.proxy.note(func(wire *Wire) { wire.Statements = append(wire.Statements, text); wire.Executes++ })
	case 'P':
		name := zeroEnded(body)
		text := zeroEnded(body[len(name)+1:])
		w.proxy.note(func(wire *Wire) { wire.Statements = append(wire.Statements, text) })
	case 'E':
		w.proxy.note(func(wire *Wire) { wire.Executes++ })
	}
}

func zeroEnded(b []byte) string {
	text, _, _ := strings.Cut(string(b), "\x00")
	return text
}

func (p *Proxy) note(what func(*Wire)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what(&p.wire)
}
