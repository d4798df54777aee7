package main

import (
	"context"
	"io/fs"
)

// listFolders returns the folders of tree that hold files themselves, in
// lexical order. It leaves out skip, a folder of tree or "".
func listFolders(ctx context.Context, tree fs.FS, skip string) ([]string, error) {
	var folders []string
	err := fs.WalkDir(tree, ".", func(folder string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !d.IsDir():
			return nil
		case folder == skip:
			return fs.SkipDir
		}
		files, err := listFiles(tree, folder)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			folders = append(folders, folder)
		}
		return nil
	})
	return folders, err
}

// listFiles returns the names of the regular files directly in folder, in
// lexical order. Symbolic links, pipes and the like are no part of a build.
func listFiles(tree fs.FS, folder string) ([]string, error) {
	entries, err := fs.ReadDir(tree, folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			files = append(files, e.Name())
		}
	}
	return files, nil
}
