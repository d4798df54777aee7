package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNotInstalled is returned where a program is needed that this machine does
// not have. The text around it says how to get it.
var ErrNotInstalled = errors.New("pgtest: not installed")

// places are where packages put PostgreSQL's own programs, which are not all on
// PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // Red Hat
	"/opt/homebrew/opt/postgresql@*/bin", // macOS
	"/usr/local/opt/postgresql@*/bin",
	"/Library/PostgreSQL/*/bin",
}

// binaries returns the folder that holds initdb and postgres: that of PATH,
// else the newest of those in places.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && executable(filepath.Join(filepath.Dir(path), "postgres")) {
			return filepath.Dir(path), nil
		}
	}
	var found []string
	for _, place := range places {
		dirs, err := filepath.Glob(place)
		if err != nil {
			return "", err
		}
		for _, dir := range dirs {
			if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
				found = append(found, dir)
			}
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%w: initdb and postgres are neither on PATH nor in %s; "+
			"install PostgreSQL (Debian: apt-get install postgresql; macOS: brew install postgresql), "+
			"or name a server of yours in %s", ErrNotInstalled, strings.Join(places, ", "), dsnVariable)
	}
	slices.SortStableFunc(found, func(a, b string) int { return major(b) - major(a) })
	return found[0], nil
}

// major reads the version out of a folder's name, 0 if there is none in it.
func major(dir string) int {
	digits := strings.TrimLeft(filepath.Base(filepath.Dir(dir)), "abcdefghijklmnopqrstuvwxyz-@")
	digits, _, _ = strings.Cut(digits, ".")
	version, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return version
}

// Program returns the path of a program that comes with PostgreSQL, psql say.
func Program(name string) (string, error) {
	dir, err := binaries()
	if err == nil && executable(filepath.Join(dir, name)) {
		return filepath.Join(dir, name), nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%w: %s; it comes with PostgreSQL's client programs (Debian: apt-get install postgresql-client)",
		ErrNotInstalled, name)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
