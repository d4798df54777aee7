package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// maxWorkers keeps a slip of the finger from exhausting the open files: every
// building worker holds three.
const maxWorkers = 1000

// config is what the flags say.
type config struct {
	src     string
	cache   string
	keep    bool
	workers int
	rounds  int
	nolock  bool
	seed    uint64
}

func flags(cfg *config) *flag.FlagSet {
	set := flag.NewFlagSet("buildcache", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&cfg.src, "src", "", "the source `folder` (default: the Go toolchain's own src)")
	set.StringVar(&cfg.cache, "cache", "", "the cache `folder`, kept at the end; an artifact found there is used again even if\nthe source has changed (default: a temporary one)")
	set.BoolVar(&cfg.keep, "keep", false, "keep the temporary cache folder")
	set.IntVar(&cfg.workers, "workers", max(8, 4*runtime.GOMAXPROCS(0)), "how many workers ask for artifacts")
	set.IntVar(&cfg.rounds, "rounds", 3, "how often each worker asks for each folder")
	set.BoolVar(&cfg.nolock, "nolock", false, "do without the lock, to see what it is for")
	set.Uint64Var(&cfg.seed, "seed", 0, "the seed of the workers' random orders (default: a new one each time)")
	return set
}

func usage(w io.Writer) {
	var cfg config
	set := flags(&cfg)
	set.SetOutput(w)
	fmt.Fprintln(w, "usage: buildcache [flags]")
	set.PrintDefaults()
}

// parse returns a config whose src is a folder that exists.
func parse(ctx context.Context, args []string) (config, error) {
	var cfg config
	set := flags(&cfg)
	if err := set.Parse(args); err != nil {
		return cfg, err
	}
	switch {
	case set.NArg() > 0:
		return cfg, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case cfg.workers < 1 || cfg.workers > maxWorkers:
		return cfg, fmt.Errorf("-workers must be between 1 and %d, not %d", maxWorkers, cfg.workers)
	case cfg.rounds < 1:
		return cfg, fmt.Errorf("-rounds must be at least 1, not %d", cfg.rounds)
	}

	given := make(map[string]bool)
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range []string{"src", "cache"} {
		if given[name] && set.Lookup(name).Value.String() == "" {
			return cfg, fmt.Errorf("-%s must name a folder", name)
		}
	}
	if !given["seed"] {
		// Short enough to be typed again.
		cfg.seed = uint64(rand.Uint32N(100_000))
	}
	if !given["src"] {
		src, err := toolchainSource(ctx)
		if err != nil {
			return cfg, fmt.Errorf("cannot find the Go toolchain's source, name a folder with -src: %w", err)
		}
		cfg.src = src
	}
	info, err := os.Stat(cfg.src)
	if err != nil {
		return cfg, fmt.Errorf("-src: %w", err)
	}
	if !info.IsDir() {
		return cfg, fmt.Errorf("-src %s is not a folder", cfg.src)
	}
	return cfg, nil
}

func toolchainSource(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	root := strings.TrimSpace(string(out))
	if root == "" {
		return "", errors.New("go env GOROOT says nothing")
	}
	return filepath.Join(root, "src"), nil
}
