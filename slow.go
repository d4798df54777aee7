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

// pastHold is a hold that has ended, or is about to give way.
type pastHold struct {
	step
	since, end int64
}

// kept is how long the hold kept a request waiting that began to at start.
func (p *pastHold) kept(start int64) time.Duration { return sinceThen(max(p.since, start), p.end) }

// heldSince returns since when w, a holder, has its key; 0 if that is not known.
func (w *claim) heldSince() int64 {
	// The state before since, which is written before it: until a request has
	// resumed, since is when it began to wait, unless it is noted.
	if st := w.state.Load(); st != stateRunning && st != stateTaken && !w.noted {
		return 0
	}
	return w.since.Load()
}

// minBlame is what part of SlowWait a hold takes at least of which waiters make
// a note.
const minBlame = 10

// blame notes w's hold, which is about to end, with those that wait for its end
// and look, so that a slow wait can name who was to blame for it and not only who
// happened to be there when it began. Of shared holders that is the last: the
// others' ends let nobody in. Short holds are left out, which alone don't make a
// wait slow, so that handing on a key again and again costs nothing by the length
// of its queue. Where SlowWait is set every request has a sight, so a holder
// without needs none of this. t is w's, or nil; called under the shard's mutex.
func (t *sight) blame(w *claim) {
	if t == nil || t.observer.slowWait == 0 {
		return
	}
	e, since := w.entry, w.heldSince()
	if since == 0 || e.crowd.waiting == 0 || e.crowd.holders.first != w || w.next != nil {
		return
	}
	now := clock()
	if sinceThen(since, now) < t.observer.slowWait/minBlame {
		return
	}
	p := &pastHold{step{e.key(), w.hold, w.client, w.task, w.fn, w.mode}, since, now}
	for q := e.crowd.queue.first; q != nil; q = q.next {
		if q.sight != nil {
			q.sight.compare(p)
		}
	}
}

// compare makes p the hold that kept t's request waiting the longest, if it is.
func (t *sight) compare(p *pastHold) {
	if t.longest == nil || p.kept(t.start) > t.longest.kept(t.start) {
		t.longest = p
	}
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
		since := w.heldSince()
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
		t.compareHolder(w.entry)
	}
}

// compareHolder forgets who kept the request waiting the longest, if the holder
// in its view has by now: that one is named anyway.
func (t *sight) compareHolder(e *entry) {
	if w := e.crowd.holders.first; t.longest != nil && w != nil && w.hold == t.view.holder.hold {
		now := pastHold{since: w.heldSince(), end: clock()}
		if now.since != 0 && now.kept(t.start) >= t.longest.kept(t.start) {
			t.longest = nil
		}
	}
}

// viewOut returns the view of a holder that gives its key up. Called under the
// shard's mutex.
func viewOut(w *claim) view { return view{queue: w.entry.crowd.waiting, warned: w.slow} }

// judge warns of what the request has found slow, and of its wait, which has
// ended, if that was. What others hold is given up: it would be kept alive while
// fn runs.
func (t *sight) judge(e Event) {
	v, longest := t.view, t.longest
	t.view, t.longest = view{}, nil
	defer t.warnWait(e, v, longest)
	t.warnHolds(v)
}

func (t *sight) warnWait(e Event, v view, longest *pastHold) {
	limit := t.observer.slowWait
	if limit == 0 || !t.waiting || e.Waited < limit {
		return
	}
	attrs := []slog.Attr{slog.Duration("waited", e.Waited)}
	if v.holder.hold != nil {
		attrs = append(attrs, who("holder", v.holder.wait()))
	}
	if longest != nil && longest.hold != v.holder.hold {
		attrs = append(attrs, who("longest", longest.wait(), slog.Duration("waited", longest.kept(t.start))))
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

// who says whose w is, and more of it.
func who(name string, w Wait, more ...slog.Attr) slog.Attr {
	attrs := make([]any, 0, 3+len(more))
	if w.Client != "" {
		attrs = append(attrs, slog.String("client", w.Client))
	}
	if w.Func != "" {
		attrs = append(attrs, slog.String("func", w.Func))
	}
	if w.File != "" {
		attrs = append(attrs, slog.String("source", path.Base(w.File)+":"+strconv.Itoa(w.Line)))
	}
	for _, a := range more {
		attrs = append(attrs, a)
	}
	return slog.Group(name, attrs...)
}
