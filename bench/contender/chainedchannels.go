package contender

import (
	"context"
	"sync"
)

// Each caller waits for the channel of the one before it: how dapr's fifo.Map
// does it.
func chainedChannelsContender[K comparable]() Contender[K] {
	return Contender[K]{"chained channels", Baseline, Guarantees{Exact: true, FIFO: true},
		func() Lock[K] { return &chainedChannels[K]{last: make(map[K]chan struct{})} }}
}

type chainedChannels[K comparable] struct {
	mu   sync.Mutex
	last map[K]chan struct{} // closed when the last in line is done
}

func (c *chainedChannels[K]) lock(key K) (mine chan struct{}) {
	mine = make(chan struct{})
	c.mu.Lock()
	before := c.last[key]
	c.last[key] = mine
	c.mu.Unlock()
	if before != nil {
		<-before
	}
	return mine
}

func (c *chainedChannels[K]) unlock(key K, mine chan struct{}) {
	c.mu.Lock()
	if c.last[key] == mine {
		delete(c.last, key)
	}
	c.mu.Unlock()
	close(mine)
}

func (c *chainedChannels[K]) Do(ctx context.Context, key K, fn func(context.Context) error) error {
	mine := c.lock(key)
	defer c.unlock(key, mine)
	return fn(ctx)
}
