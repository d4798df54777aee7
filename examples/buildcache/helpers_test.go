package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sample is a small tree: "empty" and "only" hold no files themselves.
var sample = map[string]string{
	"go.mod":           "module sample\n",
	"a/a.go":           "package a\n",
	"a/b.go":           "package a // b\n",
	"a/testdata/x.txt": strings.Repeat("some text\n", 20_000),
	"only/deep/z.go":   "package deep\n",
	"void/nothing.txt": "",
}

var sampleFolders = []string{".", "a", "a/testdata", "only/deep", "void"}

func makeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o644))
	}
	return dir
}

func makeSample(t *testing.T) string {
	t.Helper()
	dir := makeTree(t, sample)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	return dir
}

// outcome is what a run of the program leaves to see.
type outcome struct {
	code           int
	stdout, stderr string
}

func runArgs(ctx context.Context, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// runTree runs the program on src as tree shows it.
func runTree(ctx context.Context, t *testing.T, tree fs.FS, args ...string) outcome {
	t.Helper()
	cfg, err := parse(ctx, args)
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	code := runOn(ctx, cfg, tree, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// hasRow requires a row of the table with this name and this value.
func (o outcome) hasRow(t *testing.T, name, value string) {
	t.Helper()
	for line := range strings.Lines(o.stdout) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+"  "); ok {
			require.Equal(t, value, strings.Join(strings.Fields(rest), " "), "row %q", name)
			return
		}
	}
	require.Fail(t, "no such row", "%q in:\n%s%s", name, o.stdout, o.stderr)
}

// openTestCache is the cache that a run with -src src -cache dir uses.
func openTestCache(t *testing.T, src, dir string) *cache {
	t.Helper()
	c, err := openCache(config{src: src, cache: dir})
	require.NoError(t, err)
	return c
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	list := make([]string, 0, len(entries))
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// requireWhole requires that dir holds whole artifacts of the folders of src
// and nothing else, and returns how many.
func requireWhole(t *testing.T, src, dir string, folders []string) int {
	t.Helper()
	c := openTestCache(t, src, dir)
	whole := 0
	for _, folder := range folders {
		there, err := c.has(folder)
		require.NoError(t, err)
		if there {
			require.NoError(t, c.verify(t.Context(), folder))
			whole++
		}
	}
	require.Len(t, names(t, dir), 2*whole)
	return whole
}

func untar(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := make(map[string]string)
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		files[header.Name] = string(content)
	}
}

// hookFS calls open and read, where they are set, before a file is opened and
// before each read from it.
type hookFS struct {
	fs.FS
	open func(name string)
	read func(name string) error
}

func (h hookFS) Open(name string) (fs.File, error) {
	if h.open != nil {
		h.open(name)
	}
	f, err := h.FS.Open(name)
	if err != nil || h.read == nil {
		return f, err
	}
	// A folder stays as it is: to be listed, it has to be a fs.ReadDirFile.
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return f, nil
	}
	return hookFile{f, func() error { return h.read(name) }}, nil
}

type hookFile struct {
	fs.File
	read func() error
}

func (h hookFile) Read(p []byte) (int, error) {
	if err := h.read(); err != nil {
		return 0, err
	}
	return h.File.Read(p)
}
