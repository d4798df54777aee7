package pgtest

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"
)

// watchdog is a shell that waits for the end of its standard input, of which
// this process holds the only other end. When this process is gone, by os.Exit,
// by a panic or by kill -9, it ends a server and removes its folder.
//
// The kernel's parent death signal would need no helper, but it is Linux's
// alone, follows the thread that forked and not the process, and removes
// nothing.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

const watchScript = `
trap '' INT HUP TERM
read word
if [ "$word" != done ]; then
	kill -QUIT "$1" 2>/dev/null
	for i in 1 2 3 4 5 6 7 8 9 10; do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.2
	done
	kill -KILL "$1" 2>/dev/null
	[ -z "$2" ] || rm -rf "$2"
fi
`

// watch ends the process pid, and removes dir if it is not empty, when this
// process is gone.
func (u *user) watch(pid int, dir string) (*watchdog, error) {
	cmd := u.command("/bin/sh", "-c", watchScript, "pgtest-watch", strconv.Itoa(pid), dir)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("pgtest: watchdog: %w", err)
	}
	return &watchdog{cmd, pipe}, nil
}

// dismiss calls the watchdog off: what it watches is gone in good order.
func (w *watchdog) dismiss() {
	_, _ = io.WriteString(w.pipe, "done\n")
	_ = w.pipe.Close()
	_ = w.cmd.Wait()
}

// daemon is a server process that this one started and that a watchdog guards.
type daemon struct {
	cmd    *exec.Cmd
	dog    *watchdog
	exited chan struct{} // closed when the process is gone and reaped
}

func (u *user) daemon(cmd *exec.Cmd, dir string) (*daemon, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("pgtest: %s: %w", cmd.Path, err)
	}
	d := &daemon{cmd: cmd, exited: make(chan struct{})}
	dog, err := u.watch(cmd.Process.Pid, dir)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	d.dog = dog
	go func() {
		_ = cmd.Wait()
		dog.dismiss()
		close(d.exited)
	}()
	return d, nil
}

func (d *daemon) alive() bool {
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// gone waits until the process has ended, and kills it if it takes too long.
func (d *daemon) gone(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-d.exited:
	case <-timer.C:
		_ = d.cmd.Process.Kill()
		<-d.exited
	}
}
