package pglock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nested calls hold on sessions that are idle, so that the server sees no cycle.
func TestField_P15_CycleOfProcessesIsFound(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			b := newBed(t)
			key := func(i int) string { return "k" + strconv.Itoa(i%n) }
			agents := make([]*agent, n)
			outer, inner := make([]*call, n), make([]*call, n)
			// The one session that each has for waiting is taken: a call that holds
			// something has another opened.
			other := b.session()
			b.take(other, "busy")
			busy := make([]*call, n)
			for i := range n {
				agents[i] = b.agent(pglock.Options{MaxConns: 2})
				outer[i] = agents[i].hold(key(i))
				busy[i] = agents[i].start("busy").queued(i + 1)
			}
			// One that waits for a key of the cycle is not on it.
			bystander := b.start(t.Context(), b.locker(pglock.Options{}), key(0)).let() // it may be next
			begin := time.Now()
			for i := range n {
				inner[i] = agents[i].under(outer[i], key(i+1)).let()
			}
			refused := -1
			b.eventually(func() bool {
				for i, c := range inner {
					if isClosed(c.over) {
						refused = i
					}
				}
				return refused >= 0
			}, "a cycle of processes is not found")
			t.Logf("found after %v: %v", time.Since(begin), inner[refused].err)
			assert.ErrorIs(t, inner[refused].err, processlock.ErrDeadlock)
			assert.Less(t, time.Since(begin), patience)

			// Its outer fn returns, and all others go on.
			for i := range n {
				at := (refused + n - i) % n
				if i > 0 {
					require.NoError(t, inner[at].returns())
				}
				outer[at].ok()
			}
			bystander.ok()
			b.unlock(other, "busy")
			for _, c := range busy {
				c.let()
			}
			for _, c := range busy {
				assert.NoError(t, c.returns())
			}
		})
	}
}

// A long chain of waits is no cycle.
func TestChainOfProcessesIsNoDeadlock(t *testing.T) {
	b := newBed(t)
	const n = 4
	agents, outer, inner := make([]*agent, n), make([]*call, n), make([]*call, n)
	for i := range n {
		agents[i] = b.agent(pglock.Options{})
		outer[i] = agents[i].hold("k" + strconv.Itoa(i))
	}
	for i := 1; i < n; i++ {
		inner[i] = agents[i].under(outer[i], "k"+strconv.Itoa(i-1))
	}
	time.Sleep(3 * time.Second) // both looks of a search are over
	for i := 1; i < n; i++ {
		inner[i].pending()
	}
	for i := range n {
		if i > 0 {
			inner[i].runs().ok()
		}
		outer[i].ok()
	}
}

func TestField_P27_WaitIsBoundedAndCanBeSeen(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	other := b.session()
	key := []any{"migrate", 7}
	b.take(other, key)
	begin := time.Now()
	e := b.refused(l.WithLock(t.Context(), key, nop, processlock.MaxWait(100*time.Millisecond)), processlock.ErrWaitTimeout)
	assert.Less(t, time.Since(begin), patience)
	assert.ErrorContains(t, e, "migrate")
	assert.True(t, e.Timeout())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	e = b.refused(l.WithLock(ctx, key, nop), context.DeadlineExceeded)
	assert.ErrorContains(t, e, "migrate")

	// Who waits for what, and who holds it, is in the server's own views.
	waits := b.start(t.Context(), l, key).queued(1)
	assert.Equal(t, []int{int(other.PgConn().PID())}, b.held(key))
	for _, lock := range b.locks() {
		if !lock.Granted {
			assert.Contains(t, lock.Query, "migrate")
		}
	}
	b.unlock(other, key)
	waits.runs().ok()
}
