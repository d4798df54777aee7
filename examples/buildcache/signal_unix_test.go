//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asProgram makes the test binary be the program.
const asProgram = "BUILDCACHE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestInterrupt(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	src, dir := makeSample(t), t.TempDir()
	// More rounds than it could ever end.
	cmd := exec.Command(program, "-src", src, "-cache", dir, "-rounds", "1000000000")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	// A file in the cache folder says that the workers are at work.
	for len(names(t, dir)) == 0 {
		runtime.Gosched()
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))

	var exit *exec.ExitError
	require.True(t, errors.As(cmd.Wait(), &exit))
	require.Equal(t, exitInterrupted, exit.ExitCode())
	require.Empty(t, stdout.String())
	require.True(t, strings.HasPrefix(stderr.String(), "buildcache: interrupted\n"), stderr.String())
	requireWhole(t, src, dir, sampleFolders)
}
