package pgtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Kill9 kills the postmaster as the kernel's out-of-memory killer would: its
// children notice, and end. The server can be started again with Start.
func (s *Server) Kill9() error {
	s.closeAdmin()
	if err := s.daemon.cmd.Process.Kill(); err != nil {
		return err
	}
	<-s.daemon.exited
	return nil
}

// Stop ends all sessions and shuts the server down in an orderly way. It can be
// started again with Start.
func (s *Server) Stop() {
	s.closeAdmin()
	s.daemon.stopFast()
	s.daemon.gone(30 * time.Second)
}

// Start starts a server that Kill9 or Stop has ended, at the same address.
func (s *Server) Start() error {
	end := time.Now().Add(startLimit)
	for {
		err := s.start()
		// Children of a killed postmaster may still be there.
		if err == nil || time.Now().After(end) || !strings.Contains(err.Error(), "is still in use") &&
			!strings.Contains(err.Error(), "pre-existing shared memory") && !errors.Is(err, errPortTaken) {
			return err
		}
		pause(context.Background(), 20*time.Millisecond)
	}
}

// Standby starts a hot standby of the server. It must be closed like any other.
func (s *Server) Standby() (*Server, error) {
	standby, err := newServer()
	if err != nil {
		return nil, err
	}
	backup := s.user.command(filepath.Join(s.bin, "pg_basebackup"), "--pgdata="+standby.data(), "--host=127.0.0.1",
		"--port="+strconv.Itoa(s.port), "--username=postgres", "--checkpoint=fast", "--no-sync", "--write-recovery-conf")
	if out, err := backup.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: pg_basebackup: %w\n%s", err, out), standby.Close())
	}
	if err := standby.launch(); err != nil {
		return nil, errors.Join(err, standby.Close())
	}
	return standby, nil
}

// Promote makes a primary of a standby and returns when it is one.
func (s *Server) Promote(ctx context.Context) error {
	var ok bool
	if err := s.row(ctx, "select pg_promote(true, 60)", nil, &ok); err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("pgtest: the standby is not a primary yet after a minute")
	}
	return nil
}
