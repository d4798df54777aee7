package contender

import "context"

// The literal port of the TypeScript original: a goroutine owns the queues and
// reads requests from a channel; a grant is a message back.
func coordinatorContender[K comparable]() Contender[K] {
	return Contender[K]{"coordinator goroutine", Baseline, Guarantees{Exact: true, FIFO: true, Ctx: true, Note: "the literal port"},
		func() Lock[K] {
			c := &coordinator[K]{inbox: make(chan message[K], 64)}
			go c.serve()
			return c
		}}
}

type coordinator[K comparable] struct{ inbox chan message[K] }

type action uint8

const (
	acquire action = iota
	release        // or withdraw: a request that is not the owner leaves the queue
)

// message names its request by the port on which its grant arrives.
type message[K comparable] struct {
	action action
	key    K
	port   chan struct{}
}

func (c *coordinator[K]) serve() {
	queues := make(map[K][]chan struct{}) // the first of each is its owner
	for m := range c.inbox {
		q := queues[m.key]
		if m.action == acquire {
			queues[m.key] = append(q, m.port)
			if len(q) == 0 {
				m.port <- struct{}{}
			}
			continue
		}
		for i, port := range q {
			if port != m.port {
				continue
			}
			switch {
			case len(q) == 1:
				delete(queues, m.key)
			case i == 0:
				queues[m.key] = q[1:]
				q[1] <- struct{}{}
			default:
				queues[m.key] = append(q[:i], q[i+1:]...)
			}
			break
		}
	}
}

func (c *coordinator[K]) Do(ctx context.Context, key K, fn func(context.Context) error) error {
	port := make(chan struct{}, 1)
	c.inbox <- message[K]{acquire, key, port}
	defer func() { c.inbox <- message[K]{release, key, port} }()
	select {
	case <-port:
		return fn(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *coordinator[K]) Close() { close(c.inbox) }
