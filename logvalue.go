package processlock

import (
	"log/slog"
	"strconv"
)

// LogValue returns the text of [Key.String].
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// LogValue returns a group: key, if there is one, and the reason, which is a
// group of its own for a [*DeadlockError].
func (e *AcquireError) LogValue() slog.Value {
	var attrs []slog.Attr
	if e.Key != (Key{}) {
		attrs = append(attrs, slog.Any("key", e.Key))
	}
	if d, ok := e.Err.(*DeadlockError); ok {
		return slog.GroupValue(append(attrs, slog.Any("reason", d))...)
	}
	return slog.GroupValue(append(attrs, slog.String("reason", bare(e.Err)))...)
}

// LogValue returns a group: the error's text as msg, and the steps of the cycle,
// 1, 2 and so on, each with the key that is wanted and its holder's client, func
// and source, as far as they are known.
func (e *DeadlockError) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("msg", bare(e))}
	for i, w := range e.Cycle {
		attrs = append(attrs, slog.Group(strconv.Itoa(i+1), slog.Any("key", w.Key), who("holder", w)))
	}
	return slog.GroupValue(attrs...)
}
