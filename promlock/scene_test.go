package promlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"

	"github.com/dbx-tools/processlock"
)

func nothing(context.Context) error { return nil }

// scene makes calls on a Coordinator in a bubble.
type scene struct {
	t *testing.T
	c *processlock.Coordinator
}

// hold starts a call, whose fn returns when end is called.
func (s *scene) hold(ctx context.Context, key any, opts ...processlock.Option) (end func() error) {
	gate, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- s.c.WithLock(ctx, key, func(context.Context) error { <-gate; return nil }, opts...)
	}()
	synctest.Wait()
	return func() error {
		close(gate)
		err := <-over
		synctest.Wait()
		return err
	}
}

// every makes each thing that is counted happen, on keys of the kind.
func (s *scene) every(kind string) {
	t, ctx := s.t, s.t.Context()
	key := func(n int) processlock.Key { return processlock.MustKey(kind, n) }
	end := s.hold(ctx, key(1))
	next := s.hold(ctx, key(1)) // waits for 2 s
	time.Sleep(2 * time.Second)
	assert.NoError(t, end())
	time.Sleep(time.Second)

	// What doesn't get the key, while the second holds it.
	try := func(ctx context.Context, want error, opts ...processlock.Option) {
		t.Helper()
		assert.ErrorIs(t, s.c.WithLock(ctx, key(1), nothing, opts...), want)
	}
	try(ctx, processlock.ErrUnavailable, processlock.IfAvailable)
	try(ctx, processlock.ErrWaitTimeout, processlock.MaxWait(time.Second))
	for _, cause := range []error{nil, processlock.ErrUnavailable, &processlock.DeadlockError{}} {
		canceled, cancel := context.WithCancelCause(ctx)
		stop := time.AfterFunc(time.Second, func() { cancel(cause) })
		try(canceled, context.Canceled)
		stop.Stop()
	}
	clientCtx, client := s.c.WithClient(ctx, "w")
	time.AfterFunc(time.Second, client.Close)
	try(clientCtx, processlock.ErrClosed)
	try(context.WithoutCancel(clientCtx), processlock.ErrClosed)
	assert.NoError(t, next())

	assert.ErrorIs(t, s.c.WithLock(ctx, key(2), func(ctx context.Context) error {
		return errors.Join(
			s.c.WithLock(ctx, key(2), nothing, processlock.Reentrant), // not counted
			s.c.WithLock(ctx, key(2), nothing),
		)
	}), processlock.ErrDeadlock)

	clientCtx, client = s.c.WithClient(ctx, "w")
	lost := s.hold(clientCtx, processlock.All(key(3), key(4)))
	time.Sleep(30 * time.Second)
	client.Close()
	assert.ErrorIs(t, lost(), processlock.ErrLost)
}

const everyGauge = `
# HELP processlock_held Holders now, over all keys.
# TYPE processlock_held gauge
processlock_held{LABELS} 0
# HELP processlock_waiting Requests in a key's queue now.
# TYPE processlock_waiting gauge
processlock_waiting{LABELS} 0
`

// everyCounter are the counters after every, and everyTime the histograms with
// bounds 0, 1.5 and 10.
const everyCounter = `
# HELP processlock_acquired_total Locks that were obtained.
# TYPE processlock_acquired_total counter
processlock_acquired_total{LABELS} 5
# HELP processlock_canceled_total Requests that their context ended while they waited.
# TYPE processlock_canceled_total counter
processlock_canceled_total{LABELS} 3
# HELP processlock_closed_total Requests that the end of their client or coordinator ended or refused.
# TYPE processlock_closed_total counter
processlock_closed_total{LABELS} 2
# HELP processlock_deadlocks_total Requests refused since their wait would never have ended.
# TYPE processlock_deadlocks_total counter
processlock_deadlocks_total{LABELS} 1
# HELP processlock_lost_total Holds taken from a running function by the end of its client.
# TYPE processlock_lost_total counter
processlock_lost_total{LABELS} 2
# HELP processlock_unavailable_total Requests refused by IfAvailable, MaxWait or MaxWaiters.
# TYPE processlock_unavailable_total counter
processlock_unavailable_total{LABELS} 2
# HELP processlock_waited_total Requests that had to wait.
# TYPE processlock_waited_total counter
processlock_waited_total{LABELS} 6
`

const everyTime = `
# HELP processlock_hold_seconds How long the holds took that have ended.
# TYPE processlock_hold_seconds histogram
processlock_hold_seconds_bucket{LABELS,le="0"} 1
processlock_hold_seconds_bucket{LABELS,le="1.5"} 1
processlock_hold_seconds_bucket{LABELS,le="10"} 3
processlock_hold_seconds_bucket{LABELS,le="+Inf"} 5
processlock_hold_seconds_sum{LABELS} 68
processlock_hold_seconds_count{LABELS} 5
# HELP processlock_wait_seconds How long the waits took that have ended, in whatever way.
# TYPE processlock_wait_seconds histogram
processlock_wait_seconds_bucket{LABELS,le="0"} 0
processlock_wait_seconds_bucket{LABELS,le="1.5"} 5
processlock_wait_seconds_bucket{LABELS,le="10"} 6
processlock_wait_seconds_bucket{LABELS,le="+Inf"} 6
processlock_wait_seconds_sum{LABELS} 7
processlock_wait_seconds_count{LABELS} 6
`

const everything = everyGauge + everyCounter + everyTime

// compare fails the test unless what g gathers is want, with its LABELS.
func compare(t *testing.T, g prometheus.Gatherer, want, labels string, names ...string) {
	t.Helper()
	want = strings.ReplaceAll(want, "LABELS", labels)
	want = strings.ReplaceAll(strings.ReplaceAll(want, "{,", "{"), "{}", "")
	assert.NoError(t, testutil.GatherAndCompare(g, strings.NewReader(want), names...))
}

func bubble(t *testing.T, run func(t *testing.T, s *scene)) {
	synctest.Test(t, func(t *testing.T) { run(t, &scene{t, processlock.New(processlock.Options{})}) })
}
