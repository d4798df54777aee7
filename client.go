package processlock

import (
	"context"
	"slices"
	"sync/atomic"
)

// Client is the identity of one worker: it names the worker in errors and
// snapshots, and closing it takes away everything the worker holds and waits
// for. [WithClient] makes one. All its methods may be called at any time from
// any goroutine.
type Client struct {
	name        string
	coordinator *Coordinator
	outer       *Client // next client outward of the context it was made from
	cancel      context.CancelCauseFunc

	// rows counts the client's rows in the table, those that hold and those
	// that wait; clientClosed is added once it is closed. A row is counted
	// under its shard's mutex, so that Close, which closes first and walks the
	// shards later, misses none.
	rows atomic.Int64
}

const clientClosed = 1 << 62

// WithClient makes a client named name and returns a context that carries it.
// Calls made with the context, or with one derived from it, on the coordinator
// that [WithCoordinator] put into ctx (else [Default]) belong to the client; of
// several the innermost counts. The context keeps ctx's values and deadline,
// and ends with cause [ErrClosed] when the client is closed.
//
// Close the client when the worker is done, as with [context.WithCancel]: until
// then it stays registered on ctx, and if that is of a type of your own with a
// Done of its own, a goroutine watches it. WithClient panics if ctx is nil.
func WithClient(ctx context.Context, name string) (context.Context, *Client) {
	check(ctx, false)
	h, s := lineageOf(ctx)
	c := Default()
	if s != nil && s.coordinator != nil {
		c = s.coordinator
	}
	return c.newClient(ctx, name, h, s)
}

// WithClient is the package-level [WithClient] for a client of this
// coordinator. It does not change which coordinator package-level calls use:
// naming a worker never moves other people's locks. It panics if ctx is nil, or
// c is nil or a copy of a used Coordinator.
func (c *Coordinator) WithClient(ctx context.Context, name string) (context.Context, *Client) {
	check(ctx, false)
	c.check()
	h, s := lineageOf(ctx)
	return c.newClient(ctx, name, h, s)
}

func (c *Coordinator) newClient(ctx context.Context, name string, h *hold, s *scope) (context.Context, *Client) {
	cl := &Client{name: name, coordinator: c}
	if s != nil {
		cl.outer = s.client
	}
	ctx, cl.cancel = context.WithCancelCause(ctx)
	return s.with(scope{Context: ctx, client: cl, hold: h}), cl
}

// Name returns the name that the client was made with.
func (c *Client) Name() string {
	c.check()
	return c.name
}

// Close declares the worker dead. In this order: new calls of the client are
// refused; its context ends with cause [ErrClosed]; its waiting calls leave
// their queues; what it holds is handed on. Refused and ended calls return an
// [*AcquireError] that is [ErrClosed], and [context.Canceled] too where the
// call's context ended with the client; if that had ended earlier, its own
// reason alone. Closing again does nothing, and doesn't wait for a Close that is
// under way.
//
// If the worker is not dead after all, fn goes on while others run under the
// same key: its context is done, its late release is ignored, and its call
// returns [ErrLost] joined with fn's error. Closing a client that holds nothing
// and waits for nothing costs no more than cancelling its context.
func (c *Client) Close() {
	c.check()
	rows := c.rows.Or(clientClosed)
	if rows&clientClosed != 0 {
		return
	}
	if rows != 0 {
		defer c.drop() // a hand-written parent may panic in cancel
	}
	c.cancel(ErrClosed)
}

// drop takes the client's rows out of the table: waits first, so that nothing
// of the client's is granted what another of its holds gives up.
func (c *Client) drop() {
	for i := range c.coordinator.shards {
		c.coordinator.shards[i].dropWaits(c)
	}
	var lost []lostHold
	for i := range c.coordinator.shards {
		lost = c.coordinator.shards[i].dropHolds(c, lost)
	}
	for _, l := range slices.Backward(lost) {
		defer l.tell() // each, whatever the others do
	}
}

func (c *Client) check() {
	if c == nil {
		misuse("nil *Client")
	}
	if c.coordinator == nil {
		misuse("Client that WithClient has not made")
	}
}

// enter counts a row, or reports that the client is closed. Called under the
// mutex of the row's shard, as is leave.
func (c *Client) enter() bool {
	if c == nil {
		return true
	}
	if c.rows.Add(1)&clientClosed != 0 {
		c.rows.Add(-1)
		return false
	}
	return true
}

func (c *Client) leave() {
	if c != nil {
		c.rows.Add(-1)
	}
}

func (c *Client) closed() bool {
	return c != nil && c.rows.Load()&clientClosed != 0
}

// dropWaits ends the waits of c in s.
func (s *shard) dropWaits(c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	s.expel(func(w *claim) bool { return w.client == c })
	s.report(held)
}

// dropHolds hands on what c holds in s. A claim that was granted but has not
// resumed ends without a trace; one that runs is lost, and appended if somebody
// looks at it.
func (s *shard) dropHolds(c *Client, lost []lostHold) []lostHold {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	var dropped []*entry // settled after the loop, which must not remove
	for e := range s.entries {
		before := s.held
		if e.hold != nil && e.client == c {
			e.dropInline()
			s.stats.lost++
		}
		if e.crowd != nil {
			for w, next := e.crowd.holders.first, (*claim)(nil); w != nil; w = next {
				next = w.next
				if w.client != c {
					continue
				}
				w.sight.blame(w)
				if w.revoke() {
					s.stats.lost++
					if w.sight != nil {
						lost = append(lost, w.sight.lose(w, clock()))
					}
				}
				e.dropHolder(w)
			}
		}
		if s.held != before {
			dropped = append(dropped, e)
		}
	}
	for _, e := range dropped {
		e.settle()
	}
	s.report(held)
	return lost
}

// Worker returns fn wrapped in a client of its own, made from the context that
// the returned function is called with and closed when fn ends in any way. Wrap
// what a worker pool or an errgroup runs with it. It panics if fn is nil.
func Worker(name string, fn func(ctx context.Context) error) func(ctx context.Context) error {
	if fn == nil {
		misuse("nil fn")
	}
	return func(ctx context.Context) error {
		ctx, c := WithClient(ctx, name)
		defer c.Close()
		return fn(ctx)
	}
}
