package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// writeArtifact writes the tar.gz of the files in folder to w and returns its
// SHA-256 in hex. Equal names and contents give equal artifacts: nothing else
// of a file, its times above all, goes in.
func writeArtifact(ctx context.Context, w io.Writer, tree fs.FS, folder string) (string, error) {
	files, err := listFiles(tree, folder)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	zip, err := gzip.NewWriterLevel(io.MultiWriter(w, hash), gzip.BestSpeed)
	if err != nil {
		return "", err
	}
	archive := tar.NewWriter(zip)
	for _, name := range files {
		if err := addFile(ctx, archive, tree, path.Join(folder, name)); err != nil {
			return "", err
		}
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	if err := zip.Close(); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func addFile(ctx context.Context, archive *tar.Writer, tree fs.FS, name string) error {
	f, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Base(name), Size: info.Size(), Mode: 0o644}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	// A file that grows under the reader is cut at the size in its header;
	// one that shrinks cannot be archived.
	_, err = io.CopyN(archive, cancelable{ctx, f}, info.Size())
	if errors.Is(err, io.EOF) {
		err = errors.New("the file became shorter meanwhile")
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// cancelable is a reader that ends with the context's error once that is done.
type cancelable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancelable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
