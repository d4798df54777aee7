package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoProgressOnAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.False(t, isTerminal(w))
	var stdout bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"-src", makeSample(t)}, &stdout, w))
	require.NoError(t, w.Close())
	written, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Empty(t, string(written))
}

func TestProgressOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		p := startProgress(&terminal, true)
		p.show(func() string { return "short" })
		time.Sleep(150 * time.Millisecond)
		p.show(func() string { return strings.Repeat("long", 100) })
		time.Sleep(100 * time.Millisecond)
		p.stop()

		lines := strings.Split(terminal.String(), "\r")
		require.Len(t, lines, 5)
		require.Equal(t, "short", strings.TrimRight(lines[1], " "))
		require.Equal(t, strings.Repeat("long", 100)[:progressWidth], lines[2])
		require.Equal(t, strings.Repeat(" ", progressWidth), lines[3])
		for _, line := range lines[1:4] {
			require.Len(t, line, progressWidth)
		}
		require.Empty(t, lines[4])
	})
}

func TestNoProgressUnlessAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pipe bytes.Buffer
		p := startProgress(&pipe, false)
		time.Sleep(time.Second)
		p.stop()
		require.Empty(t, pipe.String())
	})
}
