package pglock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Calls that are served by one query get each its own answer.
func TestCallsOfOneQueryGetTheirOwnAnswer(t *testing.T) {
	const keys = 90
	for name, shared := range map[string]func(i int) bool{
		"exclusive": func(int) bool { return false },
		"shared":    func(int) bool { return true },
		"mixed":     func(i int) bool { return i%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			other := b.session()
			for i := 0; i < keys; i += 3 {
				b.take(other, i)
			}
			p := b.proxy()
			l := b.lockerAt(p.Addr(), pglock.Options{})
			require.NoError(t, l.WithLock(t.Context(), "warm", nop))
			p.Delay(50 * time.Millisecond) // who comes meanwhile is served together
			p.Wire()
			calls := make([]*call, keys)
			var wg sync.WaitGroup
			for i := range calls {
				opts := []processlock.Option{processlock.IfAvailable}
				if shared(i) {
					opts = append(opts, processlock.Shared)
				}
				calls[i] = b.start(t.Context(), l, i, opts...)
				wg.Go(func() {
					select {
					case <-calls[i].entered:
					case <-calls[i].over:
					}
				})
			}
			wg.Wait()
			for i, c := range calls {
				if i%3 == 0 {
					b.refused(c.returns(), processlock.ErrUnavailable)
				} else {
					assert.Len(t, b.held(i), 1, "key %d", i)
				}
			}
			for _, c := range calls {
				c.let()
			}
			for i, c := range calls {
				if i%3 != 0 {
					require.NoError(t, c.returns())
				}
			}
			w := p.Wire()
			assert.Less(t, w.Executes, keys/3, "they were not served together")
			assert.Equal(t, name != "mixed", w.Count("unnest") > 0)
		})
	}
}
