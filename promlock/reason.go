package promlock

import (
	"errors"
	"slices"

	"github.com/dbx-tools/processlock"
)

type reason uint8

const (
	isCanceled reason = iota
	isUnavailable
	isDeadlock
	isClosed
	isLost
)

// reasonOf sorts what a Failed hook is told as processlock.Stats does. The
// reason itself counts, and not all that errors.Is finds in it: the cause with
// which a context ends may be the error of another call, as errgroup makes it.
func reasonOf(err error) reason {
	if err == processlock.ErrLost {
		return isLost
	}
	var failed *processlock.AcquireError
	if !errors.As(err, &failed) {
		return isCanceled
	}
	switch failed.Err {
	case processlock.ErrUnavailable, processlock.ErrWaitTimeout, processlock.ErrQueueFull:
		return isUnavailable
	case processlock.ErrClosed:
		return isClosed
	}
	switch why := failed.Err.(type) {
	case *processlock.DeadlockError:
		return isDeadlock
	case interface{ Unwrap() []error }: // a context's Err and its cause
		if slices.Contains(why.Unwrap(), processlock.ErrClosed) {
			return isClosed
		}
	}
	return isCanceled
}
