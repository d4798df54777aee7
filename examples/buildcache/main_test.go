package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

func TestEveryArtifactIsBuiltOnce(t *testing.T) {
	src, dir := makeSample(t), t.TempDir()
	o := runArgs(t.Context(), "-src", src, "-cache", dir, "-workers", "16", "-rounds", "3", "-seed", "7")

	require.Equal(t, exitOK, o.code, o.stderr)
	require.Contains(t, o.stdout, "buildcache with the lock: 5 folders, 16 workers, 3 rounds, seed 7\n")
	o.hasRow(t, "requests", "240")
	o.hasRow(t, "right on disk", "5 of 5 ok")
	o.hasRow(t, "built exactly once", "5 of 5 ok")
	require.Equal(t, 5, requireWhole(t, src, dir, sampleFolders))

	c := openTestCache(t, src, dir)
	require.Equal(t, map[string]string{"a.go": sample["a/a.go"], "b.go": sample["a/b.go"]}, untar(t, c.archive("a")))
	require.Equal(t, map[string]string{"x.txt": sample["a/testdata/x.txt"]}, untar(t, c.archive("a/testdata")))
	require.Equal(t, map[string]string{"go.mod": sample["go.mod"]}, untar(t, c.archive(".")))
	require.Equal(t, map[string]string{"nothing.txt": ""}, untar(t, c.archive("void")))
}

func TestTheSecondWorkerWaits(t *testing.T) {
	src := makeTree(t, map[string]string{"a/x": "x"})
	before := processlock.Default().Stats().Waiting
	// The first worker goes on when the second one is in the queue.
	tree := hookFS{FS: os.DirFS(src), open: func(name string) {
		for name == "a/x" && processlock.Default().Stats().Waiting == before {
			runtime.Gosched()
		}
	}}
	o := runTree(t.Context(), t, tree, "-src", src, "-workers", "2", "-rounds", "1")

	require.Equal(t, exitOK, o.code, o.stderr)
	o.hasRow(t, "builds", "1 up to 1 at one time")
	require.Regexp(t, `waits +1 `, o.stdout)
	require.Regexp(t, `longest wait .* a\n`, o.stdout)
}

func TestFoldersAreBuiltInParallel(t *testing.T) {
	src := makeTree(t, map[string]string{"a/x": "x", "b/x": "x"})
	// Neither build goes on until both are under way.
	var both sync.WaitGroup
	both.Add(2)
	tree := hookFS{FS: os.DirFS(src), open: func(name string) {
		if name == "a/x" || name == "b/x" {
			both.Done()
			both.Wait()
		}
	}}
	// So many workers that some begin with a and some with b.
	o := runTree(t.Context(), t, tree, "-src", src, "-workers", "64", "-rounds", "1", "-seed", "1")

	require.Equal(t, exitOK, o.code, o.stderr)
	o.hasRow(t, "builds", "2 up to 2 at one time")
}

func TestWithoutTheLockFoldersAreBuiltAgain(t *testing.T) {
	src, dir := makeTree(t, map[string]string{"a/x": "x"}), t.TempDir()
	// No build goes on until both workers have found no artifact.
	var both sync.WaitGroup
	both.Add(2)
	tree := hookFS{FS: os.DirFS(src), open: func(name string) {
		if name == "a/x" {
			both.Done()
			both.Wait()
		}
	}}
	o := runTree(t.Context(), t, tree, "-src", src, "-cache", dir, "-workers", "2", "-rounds", "1", "-nolock")

	require.Equal(t, exitFailed, o.code)
	o.hasRow(t, "builds", "2 up to 2 at one time")
	o.hasRow(t, "waits", "0 0 µs in all")
	o.hasRow(t, "right on disk", "1 of 1 ok")
	o.hasRow(t, "built exactly once", "0 of 1 FAILED")
	require.Contains(t, o.stdout, "WITHOUT the lock")
	require.Contains(t, o.stdout, "1 folder was built more than once:\n  2 times  a\n")
	require.Contains(t, o.stdout, "That is what the lock prevents")
	require.Equal(t, 1, requireWhole(t, src, dir, []string{"a"}))
}

func TestWithoutTheLockAndLucky(t *testing.T) {
	o := runArgs(t.Context(), "-src", makeSample(t), "-workers", "1", "-nolock")

	require.Equal(t, exitOK, o.code, o.stderr)
	o.hasRow(t, "built exactly once", "5 of 5 ok")
	require.Contains(t, o.stdout, "which was luck")
}

func TestCancelInMidBuild(t *testing.T) {
	for _, nolock := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		src, dir := makeSample(t), t.TempDir()
		var reads atomic.Int64
		tree := hookFS{FS: os.DirFS(src), read: func(name string) error {
			// The file takes several reads, so this is in the middle of it.
			if name == "a/testdata/x.txt" && reads.Add(1) == 2 {
				cancel()
			}
			return nil
		}}
		o := runTree(ctx, t, tree, "-src", src, "-cache", dir, "-workers", "8", fmt.Sprintf("-nolock=%t", nolock))

		require.Equal(t, exitInterrupted, o.code)
		require.Empty(t, o.stdout)
		require.Regexp(t, `^buildcache: interrupted\n\d of 5 artifacts were finished; the cache folder is `, o.stderr)
		whole := requireWhole(t, src, dir, sampleFolders)
		if !nolock {
			require.Less(t, whole, 5)
		}
	}
}

func TestCancelBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	o := runArgs(ctx, "-src", makeSample(t), "-cache", dir)

	require.Equal(t, outcome{exitInterrupted, "", "buildcache: interrupted\n"}, o)
	require.Empty(t, names(t, dir))
}

func TestReadErrorFailsTheRun(t *testing.T) {
	src, dir := makeSample(t), t.TempDir()
	broken := errors.New("the disk is on fire")
	var reads atomic.Int64
	tree := hookFS{FS: os.DirFS(src), read: func(name string) error {
		if name == "a/testdata/x.txt" && reads.Add(1) > 1 {
			return broken
		}
		return nil
	}}
	o := runTree(t.Context(), t, tree, "-src", src, "-cache", dir, "-workers", "8")

	require.Equal(t, exitFailed, o.code)
	require.Empty(t, o.stdout)
	require.Equal(t, "buildcache: building the artifact of a/testdata: reading a/testdata/x.txt: the disk is on fire\n", o.stderr)
	require.Less(t, requireWhole(t, src, dir, sampleFolders), 5)
}

func TestUnreadableFolderFailsTheRun(t *testing.T) {
	src := makeSample(t)
	o := runTree(t.Context(), t, closedFS{os.DirFS(src), "a"}, "-src", src)

	require.Equal(t, exitFailed, o.code)
	require.Equal(t, "buildcache: listing the source tree: open a: permission denied\n", o.stderr)
}

// closedFS keeps one folder from being read, root or not.
type closedFS struct {
	fs.FS
	folder string
}

func (c closedFS) Open(name string) (fs.File, error) {
	if name == c.folder {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return c.FS.Open(name)
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestLostTableFailsTheRun(t *testing.T) {
	require.Equal(t, exitFailed, run(t.Context(), []string{"-src", makeSample(t)}, brokenPipe{}, brokenPipe{}))
}
