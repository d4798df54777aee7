package lockdebug_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/lockdebug"
)

// Looks every millisecond, in every form, at keys that change hands all the
// time: nested, shared, several at once, with deadlocks, clients that close and
// contexts that end. The race detector is quiet, and every look is whole.
func TestScrapes(t *testing.T) {
	c := processlock.New(processlock.Options{TrackHolds: true})
	h := lockdebug.Handler(c)
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range 16 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for ctx.Err() == nil {
				work(ctx, c, r, "worker-"+strconv.Itoa(i))
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	looks := 0
	for end := time.Now().Add(2 * time.Second); looks < 30 || time.Now().Before(end); looks++ {
		<-tick.C
		switch looks % 3 {
		case 0:
			parse(t, get(h, "/").Body.String())
		case 1:
			w := get(h, "/?format=json&key=1")
			require.Equal(t, 200, w.Code, w.Body)
		case 2:
			require.Contains(t, get(h, "/?format=text").Body.String(), "so far: acquired ")
		}
	}
	stop()
	workers.Wait()
	s := c.Stats()
	require.NotZero(t, s.Waited)
	require.NotZero(t, s.Deadlocks)
	require.Zero(t, s.Held)
	require.Contains(t, get(h, "/").Body.String(), "No key is held.")
}

// work is one worker's turn; it may fail in every way but one.
func work(ctx context.Context, c *processlock.Coordinator, r *rand.Rand, name string) {
	ctx, client := c.WithClient(ctx, name)
	defer client.Close()
	var opts []processlock.Option
	if r.IntN(3) == 0 {
		opts = append(opts, processlock.Shared)
	}
	var key any = r.IntN(6)
	if r.IntN(5) == 0 {
		key = processlock.All(r.IntN(6), r.IntN(6), r.IntN(6))
	}
	inner, late := r.IntN(6), r.IntN(20) == 0
	_ = c.WithLock(ctx, key, func(ctx context.Context) error {
		if late {
			client.Close()
		}
		return c.WithLock(ctx, inner, func(context.Context) error {
			for range 200 {
				_ = name
			}
			return nil
		}, processlock.MaxWait(time.Duration(1+inner)*time.Millisecond))
	}, opts...)
}
