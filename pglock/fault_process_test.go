//go:build unix

package pglock_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process that is killed has no say any more: the server sees its sockets
// close.
func TestKilledProcessReleases(t *testing.T) {
	b := newBed(t)
	dead := b.agent(pglock.Options{})
	held, waiting := dead.hold("held"), []*call{}
	other := b.agent(pglock.Options{})
	busy := other.hold("busy")
	waiting = append(waiting, dead.start("busy").queued(1))
	l := b.locker(pglock.Options{})
	waits := b.start(t.Context(), l, "held").queued(1)
	begin := time.Now()
	require.NoError(t, dead.cmd.Process.Kill())
	waits.runs()
	t.Logf("the next is in after %v", time.Since(begin))
	assert.Error(t, held.returns())
	assert.Error(t, waiting[0].returns())
	waits.ok()
	b.eventually(func() bool { return len(b.waiting("busy")) == 0 }, "a dead process waits on")
	busy.ok()
}

// A process that is stopped, by a debugger or a hypervisor, holds on: its kernel
// answers for it. Others are bounded by their own options. Where an
// administrator ends the session meanwhile, the process is told as soon as it
// goes on.
func TestStoppedProcessHoldsAndIsToldOfALoss(t *testing.T) {
	b := newBed(t)
	asleep := b.agent(pglock.Options{Probe: time.Second})
	l := b.locker(pglock.Options{})
	held := asleep.hold("k")
	require.NoError(t, asleep.cmd.Process.Signal(syscall.SIGSTOP))
	b.refused(l.WithLock(t.Context(), "k", nop, processlock.MaxWait(300*time.Millisecond)), processlock.ErrWaitTimeout)
	require.Len(t, b.held("k"), 1)
	require.NoError(t, asleep.cmd.Process.Signal(syscall.SIGCONT))
	held.ok()

	held = asleep.hold("k")
	waits := b.start(t.Context(), l, "k")
	require.NoError(t, asleep.cmd.Process.Signal(syscall.SIGSTOP))
	b.terminate(b.held("k")...)
	waits.runs().ok()
	require.NoError(t, asleep.cmd.Process.Signal(syscall.SIGCONT))
	held.let()
	assert.ErrorIs(t, held.returns(), processlock.ErrLost)
	asleep.start("k").runs().ok()

	// A process that waits is stopped: it stands in the way for as long as its
	// slice, or, if the lock comes to it, until it goes on.
	own := b.hold(l, "k")
	sleeps := asleep.start("k").queued(1)
	require.NoError(t, asleep.cmd.Process.Signal(syscall.SIGSTOP))
	b.eventually(func() bool { return len(b.waiting("k")) == 0 }, "a stopped process waits longer than its slice")
	own.ok()
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
	require.NoError(t, asleep.cmd.Process.Signal(syscall.SIGCONT))
	sleeps.runs().ok()
}
