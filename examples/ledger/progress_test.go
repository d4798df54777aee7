package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
		require.Empty(t, lines[4])
	})
}

func TestProgressElsewhere(t *testing.T) {
	o := bubble(t, "-transfers", "2800")
	require.Equal(t, exitOK, o.code)
	lines := strings.Split(o.stderr, "\n")
	require.Len(t, lines, 4, "a line each second, of serial's 2.8 and the 0.4 of the pool")
	require.Regexp(t, `^serial: (999|1,000) of 2,800 posted, [01] under way$`, lines[0])
	require.Regexp(t, `^pool: [0-9,]+ of 2,800 posted, \d+ under way$`, lines[2])

	require.Empty(t, bubble(t, "-transfers", "5").stderr)
}

func TestAPipeIsNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	require.False(t, isTerminal(w))
	require.False(t, isTerminal(new(bytes.Buffer)))
}
