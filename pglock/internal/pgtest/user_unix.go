//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"strconv"
	"syscall"
)

// user is under whom servers run: PostgreSQL and PgBouncer refuse to be root.
type user struct {
	credential *syscall.Credential // nil: the user of this process
}

func serverUser() (*user, error) {
	if os.Geteuid() != 0 {
		return &user{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &user{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return nil, fmt.Errorf("pgtest: PostgreSQL does not run as root, and there is neither a user postgres nor nobody to run it as")
}

// command prepares a command under the user, in a process group of its own, so
// that a ^C at the terminal reaches the test and not its servers.
func (u *user) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: u.credential}
	cmd.Dir = "/"
	return cmd
}

// own makes path the user's.
func (u *user) own(path string) error {
	if u.credential == nil {
		return nil
	}
	return os.Chown(path, int(u.credential.Uid), int(u.credential.Gid))
}

// stopFast asks PostgreSQL to end all sessions and shut down.
func (d *daemon) stopFast() { _ = d.cmd.Process.Signal(syscall.SIGINT) }

// quit asks PostgreSQL or PgBouncer to end at once, without any tidying.
func (d *daemon) quit() { _ = d.cmd.Process.Signal(syscall.SIGQUIT) }
