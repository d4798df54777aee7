package report

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine is where and from what the figures come.
type Machine struct {
	CPU, OS, Arch, Go string
	CPUs, Procs       int
	Commit            string
	Date              string
	Load              string // of the last minute, before and after
	Command           string
}

// ThisMachine describes where it runs. What can't be found out is left empty.
func ThisMachine() Machine {
	return Machine{
		CPU: cpu(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
		CPUs: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0),
		Commit: commit(), Date: time.Now().UTC().Format(time.DateOnly),
		Load:    Load(),
		Command: strings.TrimSpace("go run ./cmd/report " + strings.Join(os.Args[1:], " ")),
	}
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d CPUs, GOMAXPROCS=%d, %s/%s, %s; commit %s, %s; load %s",
		m.CPU, m.CPUs, m.Procs, m.OS, m.Arch, m.Go, m.Commit, m.Date, m.Load)
}

func cpu() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, model, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "unknown CPU"
}

// Load is the load average of the last minute: more than the run's own tells
// that the figures are noisy.
func Load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(b), " ")
	return load
}

func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	c := strings.TrimSpace(string(hash))
	// The results are about to change anyway.
	if dirty, err := exec.Command("git", "status", "--porcelain", "--", ":/", ":(exclude,top)bench/results").Output(); err == nil && len(dirty) > 0 {
		c += " with changes"
	}
	return c
}
