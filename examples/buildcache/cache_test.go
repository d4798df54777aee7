package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestArtifactsOfAnEarlierRun(t *testing.T) {
	src, dir := makeSample(t), filepath.Join(t.TempDir(), "made", "for", "it")
	args := []string{"-src", src, "-cache", dir, "-workers", "8"}
	o := runArgs(t.Context(), args...)
	require.Equal(t, exitOK, o.code, o.stderr)

	o = runArgs(t.Context(), args...)
	require.Equal(t, exitOK, o.code, o.stderr)
	o.hasRow(t, "from an earlier run", "5")
	o.hasRow(t, "builds", "0")
	o.hasRow(t, "built exactly once", "5 of 5 ok")

	// One of each kind of damage: a flipped end, a wrong hash, no hash in the
	// file, an archive alone.
	c := openTestCache(t, src, dir)
	archive, err := os.ReadFile(c.archive("a"))
	require.NoError(t, err)
	archive[len(archive)-1] ^= 1
	require.NoError(t, os.WriteFile(c.archive("a"), archive, 0o600))
	sum, err := os.ReadFile(c.sumFile("."))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.sumFile("void"), sum, 0o600))
	require.NoError(t, os.WriteFile(c.sumFile("only/deep"), nil, 0o600))
	require.NoError(t, os.Remove(c.sumFile("a/testdata")))

	o = runArgs(t.Context(), args...)
	require.Equal(t, exitOK, o.code, o.stderr)
	o.hasRow(t, "from an earlier run", "1")
	o.hasRow(t, "corrupt, rebuilt", "3")
	require.Regexp(t, `builds +4 `, o.stdout)
	o.hasRow(t, "right on disk", "5 of 5 ok")
	o.hasRow(t, "built exactly once", "5 of 5 ok")
	require.Equal(t, 5, requireWhole(t, src, dir, sampleFolders))
}

func TestTwoTreesShareACache(t *testing.T) {
	dir := t.TempDir()
	one, two := makeTree(t, map[string]string{"a/x": "one"}), makeTree(t, map[string]string{"a/x": "two"})
	for _, src := range []string{one, two} {
		o := runArgs(t.Context(), "-src", src, "-cache", dir)
		require.Equal(t, exitOK, o.code, o.stderr)
	}
	require.Equal(t, map[string]string{"x": "one"}, untar(t, openTestCache(t, one, dir).archive("a")))
	require.Equal(t, map[string]string{"x": "two"}, untar(t, openTestCache(t, two, dir).archive("a")))
}

func TestTheCacheInsideTheTreeIsNoSource(t *testing.T) {
	src := makeSample(t)
	dir := filepath.Join(src, "a", "cache")
	for range 2 {
		o := runArgs(t.Context(), "-src", src, "-cache", dir)
		require.Equal(t, exitOK, o.code, o.stderr)
		require.Equal(t, 5, requireWhole(t, src, dir, sampleFolders))
	}
}

func TestAnArtifactDependsOnContentOnly(t *testing.T) {
	one, two := makeSample(t), makeSample(t)
	past := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(two, "a", "a.go"), past, past))
	require.NoError(t, os.Chmod(filepath.Join(two, "a", "b.go"), 0o755))
	sum := func(src string) string {
		hash, err := writeArtifact(t.Context(), io.Discard, os.DirFS(src), "a")
		require.NoError(t, err)
		return hash
	}
	require.Equal(t, sum(one), sum(two))
	require.NoError(t, os.WriteFile(filepath.Join(two, "a", "b.go"), []byte("package b\n"), 0o644))
	require.NotEqual(t, sum(one), sum(two))
}

func TestOnlyRegularFilesAreBuilt(t *testing.T) {
	src := makeTree(t, map[string]string{"a/x": "x", "b/y": "y"})
	for name, target := range map[string]string{"a/link": "x", "a/dangling": "none", "c": "b"} {
		require.NoError(t, os.Symlink(target, filepath.Join(src, name)))
	}
	dir := t.TempDir()
	o := runArgs(t.Context(), "-src", src, "-cache", dir)
	require.Equal(t, exitOK, o.code, o.stderr)
	require.Equal(t, 2, requireWhole(t, src, dir, []string{"a", "b"}))
	require.Equal(t, map[string]string{"x": "x"}, untar(t, openTestCache(t, src, dir).archive("a")))
}

func TestAFileThatShrinks(t *testing.T) {
	src := makeTree(t, map[string]string{"a/x": "something"})
	dir := t.TempDir()
	tree := hookFS{FS: os.DirFS(src), read: func(string) error {
		return os.Truncate(filepath.Join(src, "a", "x"), 0)
	}}
	// A second worker could find the short file, and build that.
	o := runTree(t.Context(), t, tree, "-src", src, "-cache", dir, "-workers", "1")
	require.Equal(t, exitFailed, o.code)
	require.Equal(t, "buildcache: building the artifact of a: reading a/x: the file became shorter meanwhile\n", o.stderr)
	require.Empty(t, names(t, dir))
}

// Each folder stands in the way of one of the renames that publish.
func TestAFailedRenameLeavesNothing(t *testing.T) {
	src := makeSample(t)
	for _, blocked := range []func(*cache) string{
		func(c *cache) string { return c.archive("a") },
		func(c *cache) string { return c.sumFile("a") },
	} {
		dir := t.TempDir()
		c := openTestCache(t, src, dir)
		require.NoError(t, os.Mkdir(blocked(c), 0o755))
		require.Error(t, c.build(t.Context(), os.DirFS(src), "a"))
		require.Equal(t, []string{filepath.Base(blocked(c))}, names(t, dir))
	}
}

func TestAWrongArtifactFailsTheRun(t *testing.T) {
	src, dir := makeSample(t), t.TempDir()
	c := openTestCache(t, src, dir)
	require.NoError(t, c.build(t.Context(), os.DirFS(src), "a"))
	require.NoError(t, os.WriteFile(c.archive("a"), []byte("no archive"), 0o600))
	wrong, err := c.verifyAll(t.Context(), []string{"a", "void"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "void"}, wrong)

	r := &result{folders: []string{"a", "b"}, found: make([]bool, 2), builds: []int64{1, 0}, wrong: []string{"a"}}
	require.False(t, r.good())
	o := outcome{stdout: string(r.table(config{workers: 1, rounds: 1}, c))}
	o.hasRow(t, "right on disk", "1 of 2 FAILED")
	o.hasRow(t, "built exactly once", "1 of 2 FAILED")
	require.Contains(t, o.stdout, "1 folder has an artifact that is not right:\n  a\n")
	require.Contains(t, o.stdout, "1 folder was not built by this run; does another process use the cache folder?\n  b\n")
}
