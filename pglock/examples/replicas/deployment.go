package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// deployment is the replicas that run.
type deployment struct {
	settings
	table string
	procs []*exec.Cmd
	ended chan error // of each replica that was not killed
	left  int        // replicas that have not ended
}

// killing is the killing of a replica.
type killing struct {
	name string
	at   time.Time // on the server's clock
}

// work starts the replicas, kills one of them in mid-work and starts another in
// its place. It returns when all turns are made.
func (d *deployment) work(ctx context.Context, l *ledger) (killing, error) {
	d.ended = make(chan error, d.replicas+1)
	// The last quarter comes after the killing, however late that is.
	if err := l.allow(ctx, d.turns*3/4); err != nil {
		return killing{}, err
	}
	for range d.replicas {
		if err := d.start(); err != nil {
			return killing{}, err
		}
	}
	at := d.turns/4 + rand.IntN(d.turns*3/4-d.turns/4+1)
	for {
		n, err := l.sum(ctx)
		if err != nil {
			return killing{}, err
		}
		if n >= at {
			break
		}
		select {
		case err := <-d.ended:
			return killing{}, errors.Join(errors.New("replicas: a replica has ended too early"), err)
		case <-ctx.Done():
			return killing{}, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	victim := rand.IntN(d.replicas)
	k := killing{name: strconv.Itoa(victim + 1)}
	var err error
	if k.at, err = l.clock(ctx); err != nil {
		return k, err
	}
	if err := d.procs[victim].Process.Kill(); err != nil {
		return k, err
	}
	if err := d.start(); err != nil {
		return k, err
	}
	if err := l.allow(ctx, d.turns); err != nil {
		return k, err
	}
	// The victim's own end is the one that is expected to be an error.
	failed := 0
	for ; d.left > 0; d.left-- {
		select {
		case err := <-d.ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == -1 {
				failed++
			} else if err != nil {
				return k, err
			}
		case <-ctx.Done():
			return k, ctx.Err()
		}
	}
	if failed != 1 {
		return k, fmt.Errorf("replicas: %d replicas were killed, not one", failed)
	}
	return k, nil
}

func (d *deployment) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	name := strconv.Itoa(len(d.procs) + 1)
	cmd := exec.Command(self)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), nameVariable+"="+name, dsnVariable+"="+d.dsn, tableVariable+"="+d.table,
		turnsVariable+"="+strconv.Itoa(d.turns), thinkVariable+"="+d.think.String())
	if d.noLock {
		cmd.Env = append(cmd.Env, noLock+"=1")
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	d.procs = append(d.procs, cmd)
	d.left++
	go func() { d.ended <- cmd.Wait() }()
	return nil
}

// stop kills what still runs: there is nothing to tidy up that the server would
// not see to.
func (d *deployment) stop() {
	if d.left == 0 {
		return
	}
	for _, cmd := range d.procs {
		_ = cmd.Process.Kill()
	}
	for ; d.left > 0; d.left-- {
		<-d.ended
	}
}
