package processlock_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// htCall is a call of a hook.
type htCall struct {
	kind      string
	goroutine string // that called it
	processlock.Event
}

// String is what a test says of it: the key's first part, and what took time.
func (c htCall) String() string {
	text := c.kind + " " + strings.Trim(c.Key.String(), `[]"`)
	if c.Waited > 1 { // what took no time in a bubble is told as 1 ns
		text += " waited=" + c.Waited.String()
	}
	if c.Held != 0 {
		text += " held=" + c.Held.String()
	}
	if c.Err != nil {
		text += " (" + c.Err.Error() + ")"
	}
	return text
}

// htLog keeps the calls of the hooks that it hands out.
type htLog struct {
	mu    sync.Mutex
	calls []htCall
}

func (l *htLog) hooks() processlock.Hooks {
	of := func(kind string) func(processlock.Event) {
		return func(e processlock.Event) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.calls = append(l.calls, htCall{kind, htGoroutine(), e})
		}
	}
	return processlock.Hooks{Waiting: of("Waiting"), Acquired: of("Acquired"), Released: of("Released"), Failed: of("Failed")}
}

// of returns the calls for requests of the client named name.
func (l *htLog) of(name string) []htCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	var calls []htCall
	for _, c := range l.calls {
		if c.Client == name {
			calls = append(calls, c)
		}
	}
	return calls
}

// told fails the test unless the client named name has been told exactly want.
func (l *htLog) told(t testing.TB, name string, want ...string) {
	t.Helper()
	got := []string{}
	for _, c := range l.of(name) {
		got = append(got, c.String())
	}
	if want == nil {
		want = []string{}
	}
	assert.Equal(t, want, got, name)
}

// htGoroutine names the calling goroutine.
func htGoroutine() string {
	buf := make([]byte, 64)
	name, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(name)
}

// htScene is a coordinator in a bubble whose hooks are logged.
type htScene struct {
	*htLog
	t   *testing.T
	c   *processlock.Coordinator
	ctx context.Context
}

// htBubble runs fn in a bubble, with a coordinator that must be idle at the end.
func htBubble(t *testing.T, opts processlock.Options, fn func(s *htScene)) {
	t.Helper()
	log := &htLog{}
	opts.Hooks = log.hooks()
	ltBubbleWith(t, opts, func(t *testing.T, c *processlock.Coordinator) {
		fn(&htScene{log, t, c, t.Context()})
		require.NoError(t, processlock.CTLeft(c))
	})
}

// as returns a context of a client named name, and the client.
func (s *htScene) as(name string) (context.Context, *processlock.Client) {
	return s.c.WithClient(s.ctx, name)
}

// start starts a call as name.
func (s *htScene) start(name string, key any, opts ...processlock.Option) *ltCall {
	ctx, _ := s.as(name)
	return ltGo(ctx, s.c, key, opts...)
}

func (s *htScene) wants(name string, want ...string) {
	s.t.Helper()
	s.told(s.t, name, want...)
}

// htSleep takes time in a bubble.
func htSleep(seconds float64) { time.Sleep(time.Duration(seconds * float64(time.Second))) }

// htLater lets time pass in a bubble, and what it brings happen.
func htLater(seconds float64) {
	htSleep(seconds)
	synctest.Wait()
}

// htPairs follows, for each request that has a name of its own, what hooks are
// told of it, a letter for each call; a lost hold's end is l.
type htPairs struct {
	mu    sync.Mutex
	words map[string]string
}

func (p *htPairs) hooks() processlock.Hooks {
	of := func(letter string) func(processlock.Event) {
		return func(e processlock.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.words == nil {
				p.words = make(map[string]string)
			}
			word := letter
			if e.Err == processlock.ErrLost {
				word = "l"
			}
			p.words[fmt.Sprint(e.Client, " ", e.Key)] += word
		}
	}
	return processlock.Hooks{Waiting: of("W"), Acquired: of("A"), Released: of("R"), Failed: of("F")}
}
