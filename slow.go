package processlock

import (
	"context"
	"log/slog"
	"path"
	"strconv"
	"time"
)

// slowHold is a hold that a request has found to be slow.
type slowHold struct {
	step
	held time.Duration
}

// look takes a view of e, in whose queue the request is. Called under the
// shard's mutex.
func (t *sight) look(e *entry) {
	limit := t.observer.slowHold
	if limit == 0 && t.observer.slowWait == 0 {
		return
	}
	t.view = view{queue: e.crowd.waiting}
	for s := range e.steps {
		t.view.holder = s
		break
	}
	if limit == 0 {
		return
	}
	now := clock()
	for w := e.crowd.holders.first; w != nil; w = w.next {
		// The state before since, which is written before it: until a request
		// has resumed, since is when it began to wait, unless it is noted.
		if st := w.state.Load(); st != stateRunning && st != stateTaken && !w.noted {
			continue
		}
		since := w.since.Load()
		if w.slow || since == 0 {
			continue
		}
		if held := sinceThen(since, now); held >= limit {
			w.slow = true
			t.view.slow = append(t.view.slow, slowHold{step{e.key(), w.hold, w.client, w.task, w.fn, w.mode}, held})
		}
	}
}

// lookBack notes when w's wait ended, which comes to nothing, and takes a view if
// w is still in the queue that it is about to leave.
func (t *sight) lookBack(s *shard, w *claim) {
	if t == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.since = clock(); w.noted { // it has waited for a slot since
		t.since = w.since.Load()
	}
	if w.state.Load() == stateQueued {
		t.look(w.entry)
	}
}

// viewOut returns the view of a holder that gives its key up. Called under the
// shard's mutex.
func viewOut(w *claim) view { return view{queue: w.entry.crowd.waiting, warned: w.slow} }

// judge warns of what the request has found slow, and of its wait, which has
// ended, if that was. The view is given up: it would keep alive, while fn runs,
// what others hold.
func (t *sight) judge(e Event) {
	v := t.view
	t.view = view{}
	defer t.warnWait(e, v)
	t.warnHolds(v)
}

func (t *sight) warnWait(e Event, v view) {
	limit := t.observer.slowWait
	if limit == 0 || !t.waiting || e.Waited < limit {
		return
	}
	attrs := []slog.Attr{slog.Duration("waited", e.Waited)}
	if v.holder.hold != nil {
		attrs = append(attrs, who("holder", v.holder.wait()))
	}
	t.observer.warn(t.ctx, "slow wait for a lock", e.wait(), append(attrs, slog.Int("queue", v.queue)), e.Err)
}

// warnHolds warns of the holds of others that keep the request waiting.
func (t *sight) warnHolds(v view) {
	for _, h := range v.slow {
		t.observer.warn(t.ctx, "slow hold of a lock, still held", h.wait(),
			[]slog.Attr{slog.Duration("held", h.held), slog.Int("queue", v.queue)}, nil)
	}
}

// warnHold warns of a hold that has ended, if it was slow and nobody did.
func (o *observer) warnHold(ctx context.Context, e Event, v view) {
	if o.slowHold == 0 || e.Held < o.slowHold || v.warned {
		return
	}
	o.warn(ctx, "slow hold of a lock", e.wait(),
		[]slog.Attr{slog.Duration("held", e.Held), slog.Int("queue", v.queue)}, e.Err)
}

// warn logs text about w's request.
func (o *observer) warn(ctx context.Context, text string, w Wait, attrs []slog.Attr, err error) {
	l := o.logger
	if l == nil {
		l = slog.Default()
	}
	attrs = append([]slog.Attr{slog.Any("key", w.Key), who("by", w)}, attrs...)
	if failed, ok := err.(*AcquireError); ok {
		err = failed.Err // the key is there already
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", bare(err)))
	}
	l.LogAttrs(ctx, slog.LevelWarn, prefix+text, attrs...)
}

func (e Event) wait() Wait {
	return Wait{Key: e.Key, Client: e.Client, Func: e.Func, File: e.File, Line: e.Line, Mode: e.Mode}
}

// who says whose w is.
func who(name string, w Wait) slog.Attr {
	attrs := make([]any, 0, 3)
	if w.Client != "" {
		attrs = append(attrs, slog.String("client", w.Client))
	}
	if w.Func != "" {
		attrs = append(attrs, slog.String("func", w.Func))
	}
	if w.File != "" {
		attrs = append(attrs, slog.String("source", path.Base(w.File)+":"+strconv.Itoa(w.Line)))
	}
	return slog.Group(name, attrs...)
}
