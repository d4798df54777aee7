package processlock

import (
	"context"
	"reflect"
	"time"
)

// endedError is the reason of a request whose context is done.
type endedError struct{ err, cause error }

func (e *endedError) Error() string   { return bare(e.err) + ": " + bare(e.cause) }
func (e *endedError) Unwrap() []error { return []error{e.err, e.cause} }

// ended returns why ctx is done, or nil. Where it could matter it asks Done
// too: a hand-written context may close it and leave Err nil. Such a context
// counts as canceled.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		if fromStandardLibrary(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			// Done may have closed after Err was asked.
			if err = ctx.Err(); err == nil {
				err = context.Canceled
			}
		default:
			return nil
		}
	}
	if cause := context.Cause(ctx); cause != nil && !sameError(err, cause) {
		return &endedError{err, cause}
	}
	return err
}

// sameError is a == b, which would panic on errors that can't be compared. The
// Cause of a hand-written context is its Err, so two such are taken for the
// same.
func sameError(a, b error) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	return !reflect.ValueOf(a).Comparable() || !reflect.ValueOf(b).Comparable() || a == b
}

// The types of contexts whose Err and Done are known to agree. A value context
// is not among them: it may stand on anything.
var backgroundType, cancelType, timerType = func() (b, c, t reflect.Type) {
	b = reflect.TypeOf(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c = reflect.TypeOf(ctx)
	ctx, cancel = context.WithTimeout(ctx, time.Hour)
	defer cancel()
	return b, c, reflect.TypeOf(ctx)
}()

// fromStandardLibrary spares the usual contexts the question whether Done is
// closed: it costs more than Err, and the first time a channel.
func fromStandardLibrary(ctx context.Context) bool {
	if t := reflect.TypeOf(ctx); t == cancelType || t == timerType || t == backgroundType {
		return true
	}
	switch c := ctx.(type) {
	case *hold:
		return fromStandardLibrary(c.Context)
	case *scope:
		return c.standard
	}
	return false
}
