package proof

import (
	"context"
	"errors"
	"strings"

	"github.com/dbx-tools/processlock"
)

// reason is a set of what a result satisfies.
type reason uint16

const (
	isClosed reason = 1 << iota
	isUnavailable
	isTimeout
	isFull
	isDeadlock
	isLost
	isCanceled
	isDeadline
	isCause
	isFnError
	isKey
	isRefusal // *AcquireError
	isPanic
	isExit
	isNil
	isDropped // a task whose fn did not run, for no reason of its own
)

var (
	errCause = errors.New("cause")
	errFn    = errors.New("fn's error")
)

// reasons are the errors behind the first bits of reason.
var reasons = []error{
	processlock.ErrClosed, processlock.ErrUnavailable, processlock.ErrWaitTimeout, processlock.ErrQueueFull,
	processlock.ErrDeadlock, processlock.ErrLost, context.Canceled, context.DeadlineExceeded, errCause, errFn,
	processlock.ErrKey,
}

var reasonNames = []string{
	"closed", "unavailable", "timeout", "full", "deadlock", "lost", "canceled", "deadline", "cause", "fn",
	"key", "refusal", "panic", "exit", "nil", "dropped",
}

// reasonOf returns all that err satisfies.
func reasonOf(err error) (r reason) {
	if err == nil {
		return isNil
	}
	for i, target := range reasons {
		if errors.Is(err, target) {
			r |= 1 << i
		}
	}
	if errors.As(err, new(*processlock.AcquireError)) {
		r |= isRefusal
	}
	return r
}

func (r reason) String() string {
	var names []string
	for i, name := range reasonNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}
