// Mutate breaks the core in one place at a time and runs its tests: a mutant
// that no test kills shows what the tests don't hold, unless it is equivalent
// to the original, which the table of mutants then explains.
//
//	go run ./internal/mutate -o internal/proof/mutation.md
//
// It takes a while, and is not part of .ci/run.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "", "file for the table; standard output if empty")
	only := flag.String("run", "", "regular expression for the names of the mutants to run")
	compile := flag.Bool("n", false, "only see whether the mutants compile")
	limit := flag.Duration("timeout", 2*time.Minute, "for the tests of one mutant; a hang counts as killed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *out, *only, *compile, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// result is what became of a mutant.
type result struct {
	mutant
	killedBy string // a test, or "timeout"; empty if it survived
}

func run(ctx context.Context, out, only string, compile bool, limit time.Duration) error {
	choose, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	root, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	commit, err := output(ctx, "git", "-C", root, "rev-parse", "--short", "HEAD")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyCore(root, dir); err != nil {
		return err
	}
	tests := func() (killedBy string, err error) { return test(ctx, dir, limit) }
	if compile {
		tests = func() (string, error) { return "nothing, it compiles", nil }
	} else if by, err := tests(); err != nil || by != "" {
		return errors.Join(err, fmt.Errorf("the tests fail without a mutant: %s", by))
	}

	var results []result
	var broken error
	for _, m := range mutants {
		if !choose.MatchString(m.name) {
			continue
		}
		by, err := try(ctx, dir, m, tests)
		if err != nil && compile {
			broken = errors.Join(broken, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		results = append(results, result{m, by})
		fmt.Fprintf(os.Stderr, "%-40s %s\n", m.name, verdict(results[len(results)-1]))
	}

	if compile {
		return broken
	}
	var table bytes.Buffer
	unexplained := write(&table, results, commit)
	if out == "" {
		_, err = os.Stdout.Write(table.Bytes())
	} else {
		err = os.WriteFile(filepath.Join(root, out), table.Bytes(), 0o644)
	}
	if err == nil && unexplained > 0 {
		err = fmt.Errorf("%d mutants survived without an explanation", unexplained)
	}
	return err
}

// copyCore copies what the core's tests need.
func copyCore(root, dir string) error {
	for _, pattern := range []string{"*.go", "go.mod", "go.sum", "*.md", "testdata/*.jsonl"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			to := filepath.Join(dir, strings.TrimPrefix(f, root))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(to, text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// try runs the tests with m applied and returns what killed it.
func try(ctx context.Context, dir string, m mutant, tests func() (string, error)) (killedBy string, err error) {
	file := filepath.Join(dir, m.file)
	original, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	mutated, err := m.apply(string(original))
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, []byte(mutated), 0o644); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(file, original, 0o644)) }()
	if _, err := outputIn(ctx, dir, "go", "build", "."); err != nil {
		return "", fmt.Errorf("does not compile: %w", err)
	}
	return tests()
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs the tests in dir and returns the first that fails.
func test(ctx context.Context, dir string, limit time.Duration) (killedBy string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-vet=off", "-timeout="+limit.String(), ".")
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err == nil {
		return "", nil
	}
	if m := failed.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	if i := bytes.Index(text, []byte("panic: ")); i >= 0 {
		line, _, _ := bytes.Cut(text[i:], []byte("\n"))
		return string(line[:min(len(line), 80)]), nil
	}
	if i := bytes.Index(text, []byte("fatal error: ")); i >= 0 {
		line, _, _ := bytes.Cut(text[i:], []byte("\n"))
		return string(line[:min(len(line), 80)]), nil
	}
	return "", fmt.Errorf("go test: %w\n%s", err, text)
}

func verdict(r result) string {
	switch {
	case r.killedBy != "":
		return "killed by " + r.killedBy
	case r.equivalent != "":
		return "survived, equivalent: " + r.equivalent
	default:
		return "SURVIVED"
	}
}

// write writes the table and returns how many survivors it can't explain.
func write(w io.Writer, results []result, commit string) (unexplained int) {
	killed := 0
	for _, r := range results {
		if r.killedBy != "" {
			killed++
		} else if r.equivalent == "" {
			unexplained++
		}
	}
	fmt.Fprintf(w, "# Mutants\n\n%s, commit %s: %d mutants, %d killed, %d equivalent, %d survived.\nMade with `go run ./internal/mutate -o internal/proof/mutation.md`.\n\n",
		time.Now().Format(time.DateOnly), commit, len(results), killed, len(results)-killed-unexplained, unexplained)
	fmt.Fprintln(w, "| file | mutant | result |")
	fmt.Fprintln(w, "|---|---|---|")
	for _, r := range results {
		fmt.Fprintf(w, "| %s | %s | %s |\n", r.file, r.name, strings.ReplaceAll(verdict(r), "|", `\|`))
	}
	return unexplained
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	return outputIn(ctx, "", name, args...)
}

func outputIn(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(text)), err
}
