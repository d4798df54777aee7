package pglock

import (
	"context"

	"github.com/dbx-tools/processlock"
)

// Close closes the Locker for good and waits until it holds nothing. Calls that
// wait and calls that come later get [processlock.ErrClosed], except those whose
// context descends from an fn that holds a key of this Locker: they belong to a
// running fn and are served as before. (With Options.Local, calls queued there
// are told when their turn comes.) Running fns are not disturbed. When the last
// has released, all connections are closed.
//
// Close returns nil when nothing is held any more, else, when ctx is done, an
// error that satisfies [errors.Is] for ctx's Err and its [context.Cause]; the
// connections are then closed when the last fn returns. With the context of an
// fn that holds a key of this Locker it closes, and returns
// [processlock.ErrDeadlock] instead of waiting for itself. It may be called
// again, and at the same time.
func (l *Locker) Close(ctx context.Context) error {
	l.check(ctx, false)
	r := newRequest(l, ctx)
	l.mu.Lock()
	l.closing = true
	for _, e := range l.entries {
		e.refuse()
	}
	l.settleClosing()
	l.mu.Unlock()
	if l.ownLocal {
		if err := l.local.Shutdown(ctx); err != nil {
			return err
		}
	}
	select {
	case <-l.drained:
		l.hangups.Wait()
		return nil
	default:
	}
	if r.exempt() {
		return &closeError{processlock.ErrDeadlock}
	}
	select {
	case <-l.drained:
		l.hangups.Wait()
		return nil
	case <-ctx.Done():
		err := ended(ctx)
		if err == nil {
			err = context.Canceled
		}
		return &closeError{err}
	}
}

type closeError struct{ err error }

func (e *closeError) Error() string { return "pglock: close: keys are still held: " + e.err.Error() }

func (e *closeError) Unwrap() error { return e.err }

// settleClosing closes what is left once a closed Locker holds nothing. Called
// under mu.
func (l *Locker) settleClosing() {
	if !l.closing || len(l.entries) > 0 {
		return
	}
	for _, s := range l.idle {
		l.open--
		s.shut()
	}
	l.idle = nil
	if l.hub != nil {
		l.hub.shut()
		l.hub = nil
	}
	if !l.empty { // last: who sees it waits for hangups
		l.empty = true
		close(l.drained)
	}
}
