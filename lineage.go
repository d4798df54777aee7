package processlock

import "context"

// lineageKey finds the innermost hold or scope of a context.
type lineageKey struct{}

// hold is what fn's context is: the caller's context, and the lock that fn
// runs under. It is not changed once it holds, but for the Context of a Group's
// task, which is made when that starts and not read by others before; and it is
// never reused, so its address stands for one acquisition for ever: an entry that
// names it as holder is held by it, and one that doesn't is not, whatever has
// become of the entry since. User code may keep it; it is small and leads to the
// coordinator only.
//
// Refused: holds carved from slabs (one kept context keeps its neighbours'
// parents alive) and pooled holds (a kept context would change its meaning).
type hold struct {
	context.Context
	entry *entry
}

// Value makes the hold visible below it.
func (h *hold) Value(key any) any {
	if _, ok := key.(lineageKey); ok {
		return h
	}
	return h.Context.Value(key)
}

// scope is what WithCoordinator, WithClient and Detach add to a context.
type scope struct {
	context.Context
	coordinator *Coordinator // what package-level calls use; nil: Default
	client      *Client      // innermost of any coordinator; Client.outer leads on
	hold        *hold        // innermost hold of the lineage
	slot        *slot        // of the innermost Group task
	standard    bool         // see fromStandardLibrary
}

// Value makes the scope visible below it.
func (s *scope) Value(key any) any {
	if _, ok := key.(lineageKey); ok {
		return s
	}
	return s.Context.Value(key)
}

// lineageOf returns ctx's innermost hold and its innermost scope; either may be
// nil. It calls ctx.Value, which may be anybody's code.
func lineageOf(ctx context.Context) (*hold, *scope) {
	if s, ok := ctx.(*scope); ok { // as its Value would say
		return s.hold, s
	}
	switch v := ctx.Value(lineageKey{}).(type) {
	case *scope:
		return v.hold, v
	case *hold:
		for n := v; ; {
			switch o := n.Context.Value(lineageKey{}).(type) {
			case *hold:
				n = o
			case *scope:
				return v, o
			default:
				return v, nil
			}
		}
	}
	return nil, nil
}

// outer returns the next hold of the lineage, or nil.
func (h *hold) outer() *hold {
	switch o := h.Context.Value(lineageKey{}).(type) {
	case *hold:
		return o
	case *scope:
		return o.hold
	}
	return nil
}

// live reports whether h still holds its key, and which key that is.
func (h *hold) live() (Key, bool) {
	s := h.entry.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.entry.heldBy(h) {
		return Key{}, false
	}
	return h.entry.key(), true
}

// Detach returns a context with ctx's values, deadline and cancellation, but
// without its lineage: calls made with it are not taken to run under the locks
// that ctx's fn holds. Use it for a goroutine that fn starts and does not wait
// for; with fn's own context, waiting for fn's key there is reported as a
// deadlock while fn runs. The client and the coordinator stay. It panics if ctx
// is nil.
func Detach(ctx context.Context) context.Context {
	check(ctx, false)
	h, s := lineageOf(ctx)
	if h == nil && (s == nil || s.slot == nil) {
		return ctx
	}
	d := s.with(scope{Context: ctx})
	d.slot = nil // nor is it the Group task's that it outlives
	return d
}

// with returns n, with what it leaves open from s, which may be nil. The hold
// is not taken over.
func (s *scope) with(n scope) *scope {
	n.standard = fromStandardLibrary(n.Context)
	if s != nil {
		if n.coordinator == nil {
			n.coordinator = s.coordinator
		}
		if n.client == nil {
			n.client = s.client
		}
		if n.slot == nil {
			n.slot = s.slot
		}
	}
	return &n
}
