package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
)

// errCorrupt is the verdict on an artifact that is missing or does not have
// the hash that it was published with.
var errCorrupt = errors.New("the artifact does not have its hash")

// verify reads folder's artifact again and returns errCorrupt if it is wrong.
func (c *cache) verify(ctx context.Context, folder string) error {
	line, err := os.ReadFile(c.sumFile(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return errCorrupt
	}
	if err != nil {
		return err
	}
	f, err := os.Open(c.archive(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return errCorrupt
	}
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, cancelable{ctx, f}); err != nil {
		return err
	}
	want, _, _ := strings.Cut(string(line), " ")
	if want != hex.EncodeToString(hash.Sum(nil)) {
		return errCorrupt
	}
	return nil
}

// verifyAll returns the folders whose artifact is wrong.
func (c *cache) verifyAll(ctx context.Context, folders []string) ([]string, error) {
	bad := make([]bool, len(folders))
	err := inParallel(ctx, len(folders), func(ctx context.Context, i int) error {
		err := c.verify(ctx, folders[i])
		bad[i] = errors.Is(err, errCorrupt)
		if bad[i] {
			return nil
		}
		return err
	})
	var wrong []string
	for i, folder := range folders {
		if bad[i] {
			wrong = append(wrong, folder)
		}
	}
	return wrong, err
}

// adopt looks for artifacts of an earlier run, before the workers start, so
// that for them to be there is to be right. It drops the corrupt ones, and
// what a killed run may have left of one; found[i] says that folders[i] has
// a right one.
func (c *cache) adopt(ctx context.Context, folders []string) (found []bool, corrupt int, err error) {
	found = make([]bool, len(folders))
	dropped := make([]bool, len(folders))
	err = inParallel(ctx, len(folders), func(ctx context.Context, i int) error {
		there, err := c.has(folders[i])
		if err != nil {
			return err
		}
		if there {
			err := c.verify(ctx, folders[i])
			if err == nil {
				found[i] = true
				return nil
			}
			if !errors.Is(err, errCorrupt) {
				return err
			}
			dropped[i] = true
		}
		return c.drop(folders[i])
	})
	for _, d := range dropped {
		if d {
			corrupt++
		}
	}
	return found, corrupt, err
}

// inParallel calls do(ctx, 0) to do(ctx, n-1), one a processor at a time, and
// cancels the rest on the first error.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return g.Wait()
}
