package promlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/promlock"
)

// Scrapes as fast as they go, while calls of every kind go on and collectors
// come and go.
func TestScrapesDisturbNobody(t *testing.T) {
	c := processlock.New(processlock.Options{MaxWaiters: 3})
	r := prometheus.NewPedanticRegistry()
	lasting := promlock.NewCollector(c, nil, promlock.Class(firstPart))
	r.MustRegister(lasting)
	until := time.Now().Add(300 * time.Millisecond)
	var workers, scrapers sync.WaitGroup
	acquired := make([]int, 4)
	for g := range acquired {
		workers.Go(func() {
			for i := 0; acquired[g] == 0 || time.Now().Before(until); i++ {
				ctx, client := c.WithClient(context.Background(), "w")
				ctx, cancel := context.WithTimeout(ctx, time.Duration(i%3)*20*time.Microsecond+time.Microsecond)
				if i%7 == 0 {
					go client.Close()
				}
				_ = c.WithLock(ctx, processlock.MustKey([]string{"orders", "users"}[i%2], 1), func(context.Context) error {
					acquired[g]++
					return nil
				})
				cancel()
				client.Close()
			}
		})
	}
	over := make(chan struct{})
	for g := range 2 {
		scrapers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if g == 0 {
					mine := promlock.NewCollector(c, nil)
					testutil.CollectAndCount(mine)
					mine.Close()
					continue
				}
				if _, err := r.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	close(over)
	scrapers.Wait()
	sum := 0
	for _, n := range acquired {
		sum += n
	}
	got, held := 0.0, 0.0
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			switch f.GetName() {
			case "processlock_acquired_total":
				got += m.GetCounter().GetValue()
			case "processlock_held", "processlock_waiting":
				held += m.GetGauge().GetValue()
			}
		}
	}
	assert.EqualValues(t, c.Stats().Acquired, got)
	assert.GreaterOrEqual(t, int(got), sum)
	assert.NotZero(t, sum)
	assert.Zero(t, held)
}
