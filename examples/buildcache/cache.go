package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// cache is a folder of artifacts. An artifact is there when both its files
// are: the archive, and its hash in the format of sha256sum.
type cache struct {
	dir  string
	src  string
	temp bool
}

// openCache opens the cache folder, and makes it if there is none.
func openCache(cfg config) (*cache, error) {
	src, err := realPath(cfg.src)
	if err != nil {
		return nil, fmt.Errorf("-src: %w", err)
	}
	if cfg.cache == "" {
		temp, err := realPath(os.TempDir())
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(temp, "buildcache-")
		return &cache{dir: dir, src: src, temp: !cfg.keep}, err
	}
	if err := os.MkdirAll(cfg.cache, 0o755); err != nil {
		return nil, fmt.Errorf("-cache: %w", err)
	}
	dir, err := realPath(cfg.cache)
	if err != nil {
		return nil, fmt.Errorf("-cache: %w", err)
	}
	if dir == src {
		return nil, errors.New("-cache and -src are the same folder")
	}
	return &cache{dir: dir, src: src}, nil
}

func realPath(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// close removes a cache folder that was made for this run only.
func (c *cache) close() error {
	if !c.temp {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// insideTree returns the cache folder's name in the source tree, or "" if it
// is not inside.
func (c *cache) insideTree() string {
	rel, err := filepath.Rel(c.src, c.dir)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// archive and sumFile are the two files of an artifact. The names begin
// with a hash that keeps the folders, and the source trees that share a cache,
// apart; the folder's last element is for people.
func (c *cache) archive(folder string) string {
	label := path.Base(folder)
	if folder == "." {
		label = "root"
	}
	label = strings.ToValidUTF8(label[:min(len(label), 60)], "")
	id := sha256.Sum256([]byte(c.src + "\x00" + folder))
	return filepath.Join(c.dir, hex.EncodeToString(id[:8])+"-"+label+".tar.gz")
}

func (c *cache) sumFile(folder string) string { return c.archive(folder) + ".sha256" }

// has reports whether folder's artifact is there. It does not read it.
func (c *cache) has(folder string) (bool, error) {
	// The hash is published last and so says most often what is missing.
	for _, name := range []string{c.sumFile(folder), c.archive(folder)} {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// build makes folder's artifact and publishes it whole: on any error, the
// context's too, nothing of it stays in the cache folder.
func (c *cache) build(ctx context.Context, tree fs.FS, folder string) error {
	archive, sumFile := c.archive(folder), c.sumFile(folder)
	var sum string
	staged, err := c.stage(func(w io.Writer) (err error) {
		sum, err = writeArtifact(ctx, w, tree, folder)
		return err
	})
	if err != nil {
		return err
	}
	stagedSum, err := c.stage(func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  %s\n", sum, filepath.Base(archive))
		return err
	})
	if err != nil {
		return errors.Join(err, os.Remove(staged))
	}
	if err := os.Rename(staged, archive); err != nil {
		return errors.Join(err, os.Remove(staged), os.Remove(stagedSum))
	}
	if err := os.Rename(stagedSum, sumFile); err != nil {
		return errors.Join(err, os.Remove(archive), os.Remove(stagedSum))
	}
	return nil
}

// stage writes a file under a temporary name, in the cache folder so that a
// rename can publish it. If write does not return nil, the file is gone.
func (c *cache) stage(write func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(c.dir, "*.tmp")
	if err != nil {
		return "", err
	}
	whole := false
	defer func() {
		if !whole {
			// Closing an already closed file does no harm, and an open one
			// cannot be removed everywhere.
			_ = f.Close()
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := write(f); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	whole = true
	return f.Name(), nil
}

// drop removes what there is of folder's artifact, the hash first: without it
// the archive counts for nothing.
func (c *cache) drop(folder string) error {
	for _, name := range []string{c.sumFile(folder), c.archive(folder)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// where says what becomes of the cache folder at the end.
func (c *cache) where() string {
	if c.temp {
		return "the temporary cache folder is removed"
	}
	return "the cache folder is " + c.dir
}
