package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBadFlags(t *testing.T) {
	src := makeSample(t)
	file := filepath.Join(src, "go.mod")
	empty := t.TempDir()
	for _, c := range []struct {
		args string
		want string
	}{
		{"-workers 0", "-workers must be between 1 and 1000, not 0"},
		{"-workers -3", "-workers must be between 1 and 1000, not -3"},
		{"-workers 1001", "-workers must be between 1 and 1000, not 1001"},
		{"-workers many", `invalid value "many" for flag -workers`},
		{"-rounds 0", "-rounds must be at least 1, not 0"},
		{"-seed -1", `invalid value "-1" for flag -seed`},
		{"-what", "flag provided but not defined: -what"},
		{"-nolock runtime", `unexpected argument "runtime"`},
		{"-src=", "-src must name a folder"},
		{"-cache= -src " + src, "-cache must name a folder"},
		{"-src " + filepath.Join(src, "none"), "none"},
		{"-src " + file, "is not a folder"},
		{"-src " + empty, "there are no files in -src"},
		{"-src " + src + " -cache " + file, "-cache: "},
		{"-src " + src + " -cache " + src, "-cache and -src are the same folder"},
	} {
		o := runArgs(t.Context(), strings.Fields(c.args)...)
		require.Equal(t, exitUsage, o.code, c.args)
		require.Empty(t, o.stdout, c.args)
		require.True(t, strings.HasPrefix(o.stderr, "buildcache: "), o.stderr)
		require.Equal(t, 1, strings.Count(o.stderr, "\n"), o.stderr)
		require.Contains(t, o.stderr, c.want)
	}
}

func TestHelp(t *testing.T) {
	o := runArgs(t.Context(), "-h")
	require.Equal(t, exitOK, o.code)
	require.Empty(t, o.stderr)
	for _, name := range []string{"src", "cache", "keep", "workers", "rounds", "nolock", "seed"} {
		require.Contains(t, o.stdout, "-"+name)
	}
}

func TestTheDefaultSourceIsTheToolchains(t *testing.T) {
	cfg, err := parse(t.Context(), nil)
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(cfg.src, "runtime", "proc.go"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, cfg.workers, 8)
}

func TestNoToolchain(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	o := runArgs(t.Context())
	require.Equal(t, exitUsage, o.code)
	require.Regexp(t, `^buildcache: cannot find the Go toolchain's source, name a folder with -src: .*\n$`, o.stderr)
}

func TestTemporaryCacheFolder(t *testing.T) {
	temp := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, temp)
	}
	src := makeSample(t)

	o := runArgs(t.Context(), "-src", src)
	require.Equal(t, exitOK, o.code, o.stderr)
	require.Empty(t, names(t, temp))

	o = runArgs(t.Context(), "-src", src, "-keep")
	require.Equal(t, exitOK, o.code, o.stderr)
	require.Len(t, names(t, temp), 1)
	dir := filepath.Join(temp, names(t, temp)[0])
	require.Equal(t, 5, requireWhole(t, src, dir, sampleFolders))
	require.Contains(t, o.stdout, filepath.Base(dir))
}
