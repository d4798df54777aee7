//go:build !unix

package pgtest

import (
	"fmt"
	"os/exec"
)

type user struct{}

func serverUser() (*user, error) {
	return nil, fmt.Errorf("%w: throwaway servers need a Unix; name a server of yours in %s", ErrNotInstalled, dsnVariable)
}

func (*user) command(name string, args ...string) *exec.Cmd { return exec.Command(name, args...) }
func (*user) own(string) error                              { return nil }
func (d *daemon) stopFast()                                 { _ = d.cmd.Process.Kill() }
func (d *daemon) quit()                                     { _ = d.cmd.Process.Kill() }
