package processlock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const prefix = "processlock: "

// sentinel is an error value that may be a special case of another one: a
// wait that timed out is also a lock that was not available.
type sentinel struct {
	text string
	is   error
}

func (e *sentinel) Error() string { return prefix + e.text }
func (e *sentinel) Unwrap() error { return e.is }

// Reasons why a lock was not obtained, but for [ErrLost], which comes after fn
// ran. [WithLock] wraps them in an [*AcquireError], so compare with [errors.Is].
var (
	// ErrClosed is the reason when the caller's [Client] or the [Coordinator]
	// was closed before the lock was granted. It is also the cause with which
	// a closed client's context ends.
	ErrClosed error = &sentinel{text: "client or coordinator closed"}

	// ErrUnavailable is the reason when [IfAvailable] was given and the key
	// could not be granted at once. [ErrWaitTimeout] and [ErrQueueFull] are
	// ErrUnavailable too: each means that the key is busy and that trying
	// again later may succeed.
	ErrUnavailable error = &sentinel{text: "not available now"}

	// ErrWaitTimeout is the reason when [MaxWait] ran out before the lock was
	// granted.
	ErrWaitTimeout error = &sentinel{text: "not available within MaxWait", is: ErrUnavailable}

	// ErrQueueFull is the reason when the key's queue already held
	// Options.MaxWaiters requests.
	ErrQueueFull error = &sentinel{text: "queue is full (Options.MaxWaiters)", is: ErrUnavailable}

	// ErrDeadlock is the reason when waiting could never have ended: the key
	// is held by the caller's own lineage, or the wait would have closed a
	// cycle of waits. From [WithLock] a [*DeadlockError] around it lists the
	// cycle; [Coordinator.Shutdown] returns it where it would wait for its own
	// caller.
	ErrDeadlock error = &sentinel{text: "deadlock"}

	// ErrKey is the reason when a key has no stable identity. The error around
	// it names the path to the offending part and what is wrong with it.
	ErrKey error = &sentinel{text: "key has no stable identity"}

	// ErrLost is returned after fn ran, joined with fn's own error if it has
	// one: the hold ended while fn was still running, since its client was
	// closed or, with [Reentrant], since the outer fn had returned. Others may
	// have run under the key meanwhile. It is the one error of this package
	// that does not mean that fn did not run.
	ErrLost error = &sentinel{text: "lock was lost while fn ran"}
)

// AcquireError reports that the lock was not obtained and that fn did not run.
// Whatever fn itself returns is never wrapped in one, so
//
//	errors.As(err, new(*processlock.AcquireError))
//
// tells the two apart, unless fn hands on the error of a nested call.
type AcquireError struct {
	// Key is the key that was asked for; of several ([All]) the first that the
	// request did not get. It is the zero Key if the key has no stable
	// identity or if there was none (All of no keys).
	Key Key

	// Err is the reason: one of this package's errors, a [*DeadlockError], or
	// an error that satisfies [errors.Is] both for the context's Err and for
	// its [context.Cause].
	Err error
}

// Error returns the reason with the key in front, on one line.
func (e *AcquireError) Error() string {
	reason := bare(e.Err)
	if e.Key == (Key{}) {
		return prefix + reason
	}
	if _, ok := e.Err.(*DeadlockError); ok { // names the key itself
		return prefix + reason
	}
	return prefix + "lock " + e.Key.String() + ": " + reason
}

// Unwrap returns the reason.
func (e *AcquireError) Unwrap() error { return e.Err }

// Timeout reports whether time ran out, by [MaxWait] or by the context's
// deadline, as [net.Error] and [context.DeadlineExceeded] do.
func (e *AcquireError) Timeout() bool {
	return errors.Is(e.Err, ErrWaitTimeout) || errors.Is(e.Err, context.DeadlineExceeded)
}

// lostError joins fn's error with [ErrLost] on one line; [errors.Join] would
// take two.
type lostError struct{ err error }

func (e *lostError) Error() string   { return ErrLost.Error() + ": " + bare(e.err) }
func (e *lostError) Unwrap() []error { return []error{e.err, ErrLost} }

// lost is what a call returns whose hold was handed on before fn returned err.
func lost(err error) error {
	if err == nil {
		return ErrLost
	}
	return &lostError{err}
}

// bare is the text of err on one line and without this package's prefix, to
// stand inside another of its texts. Where others have wrapped one of this
// package's errors the prefix stands inside theirs; in this package's own texts
// only keys and names, which are kept, can hold it once more.
func bare(err error) string {
	switch err := err.(type) {
	case nil:
		return "unknown reason"
	case *sentinel, *AcquireError, *DeadlockError, *keyError:
		return strings.TrimPrefix(err.Error(), prefix)
	default:
		return oneLine(strings.ReplaceAll(err.Error(), prefix, ""))
	}
}

// oneLine returns s, with what a terminal or a log would not print as part of
// one line written as Go escapes.
func oneLine(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || unprintable(r) {
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// misuse panics: the call itself is wrong, whatever the state of the lock.
func misuse(what string) { panic(prefix + what) }
