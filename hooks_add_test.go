package processlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// Hooks come and go at any time, of a Coordinator that was used or not, and
// removing them again changes nothing.
//
// Rule 42.
func TestHooksCanBeAddedAndRemoved(t *testing.T) {
	var c processlock.Coordinator
	logs := []*htLog{{}, {}}
	lock := func(name string) {
		ctx, client := c.WithClient(t.Context(), name)
		defer client.Close()
		require.NoError(t, c.WithLock(ctx, "k", ltNop))
	}
	var remove []func()
	for _, l := range logs {
		remove = append(remove, c.AddHooks(l.hooks()))
	}
	same := c.AddHooks(logs[1].hooks()) // once more is once more
	lock("all")
	same()
	lock("two")
	remove[0]()
	remove[0]()
	same()
	lock("one")
	remove[1]()
	lock("none")
	for i, want := range [][]string{{"all 1", "two 1", "one 0", "none 0"}, {"all 2", "two 1", "one 1", "none 0"}} {
		got := []string{}
		for _, name := range []string{"all", "two", "one", "none"} {
			got = append(got, fmt.Sprint(name, " ", len(logs[i].of(name))/2))
		}
		assert.Equal(t, want, got)
	}
	ctRequireIdle(t, &c)
}

// Configure sets Default's hooks, and takes away those that AddHooks gave it.
//
// Rule 42.
func TestConfigureSetsHooks(t *testing.T) {
	ctInChild(t, func(t *testing.T) {
		added, configured := &htLog{}, &htLog{}
		remove := processlock.Default().AddHooks(added.hooks())
		processlock.Configure(processlock.Options{Hooks: configured.hooks()})
		require.NoError(t, processlock.WithLock(t.Context(), "k", ltNop))
		remove()
		require.NoError(t, processlock.WithLock(t.Context(), "k", ltNop))
		added.told(t, "")
		assert.Equal(t, []string{"Acquired", "Released", "Acquired", "Released"}, htKinds(configured.of("")))
	})
}

// Whatever happens at once, each hook is told of a request in one of few ways.
//
// Rules 38 and 42.
func TestHooksComeInPairsInAStorm(t *testing.T) {
	c := processlock.New(processlock.Options{MaxWaiters: 6})
	var lasting htPairs
	defer c.AddHooks(lasting.hooks())()
	until := time.Now().Add(ltStress(t))
	all := []*htPairs{&lasting}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range uint64(6) {
		rnd := rand.New(rand.NewPCG(42, g))
		wg.Go(func() {
			for i := 0; time.Now().Before(until); i++ {
				remove := func() {}
				if rnd.IntN(8) == 0 {
					p := &htPairs{}
					mu.Lock()
					all = append(all, p)
					mu.Unlock()
					remove = c.AddHooks(p.hooks())
				}
				htRequest(c, rnd, fmt.Sprint(g, "-", i))
				remove()
			}
		})
	}
	wg.Wait()
	one := regexp.MustCompile(`^(W?(AR|Al|lA)|W?F)$`)
	seen := map[string]int{}
	for _, p := range all {
		for request, word := range p.words {
			seen[word]++
			assert.Regexp(t, one, word, request)
		}
	}
	for _, word := range []string{"AR", "WAR", "F", "WF"} {
		assert.NotZero(t, seen[word], "%s: %v", word, seen)
	}
	ctRequireIdle(t, c)
}

// htRequest makes a request of a random kind as a client that has its name for
// itself, and closes it at a random time.
func htRequest(c *processlock.Coordinator, rnd *rand.Rand, name string) {
	ctx, client := c.WithClient(context.Background(), name)
	defer client.Close()
	var opts []processlock.Option
	switch rnd.IntN(6) {
	case 0:
		opts = append(opts, processlock.IfAvailable)
	case 1:
		opts = append(opts, processlock.MaxWait(time.Duration(rnd.IntN(100))*time.Microsecond))
	case 2:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(100))*time.Microsecond)
		defer cancel()
	}
	if rnd.IntN(3) == 0 {
		opts = append(opts, processlock.Shared)
	}
	closing := make(chan struct{})
	spins := rnd.IntN(20)
	if rnd.IntN(4) > 0 {
		spins = -1
	}
	go func() {
		defer close(closing)
		if spins >= 0 {
			ctYield(spins)
			client.Close()
		}
	}()
	var key any = rnd.IntN(3)
	if rnd.IntN(3) == 0 {
		key = processlock.All(rnd.IntN(3), 7)
	}
	n := rnd.IntN(5)
	_ = c.WithLock(ctx, key, func(ctx context.Context) error {
		ctYield(n)
		if n == 0 { // another key, so that there are cycles
			return c.WithLock(ctx, "j", func(ctx context.Context) error { return nil })
		}
		return nil
	}, opts...)
	<-closing
}
