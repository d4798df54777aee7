//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// asProgram makes the test binary be the program.
const asProgram = "LEDGER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestInterrupt(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program, "-latency", "24h")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	const atWork = "serial: 0 of 2,000 posted, 1 under way"
	for lines.Scan() && lines.Text() != atWork { // a slow machine has not begun yet
	}
	require.Equal(t, atWork, lines.Text())
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	require.Equal(t, "ledger: interrupted", last)

	exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
	require.True(t, ok)
	require.Equal(t, exitInterrupted, exit.ExitCode())
	require.Empty(t, stdout.String())
}
