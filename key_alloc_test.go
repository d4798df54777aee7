//go:build !race

package processlock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A string or an integer is not encoded, and a short list costs one allocation:
// its text.
func TestKeyAllocs(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name string
		key  any
		want float64
	}{
		{"string", "invoice", 0}, {"long string", long, 0}, {"int", 7, 0}, {"named string", namedString("invoice"), 0}, {"named int", namedInt16(7), 0},
		{"uint64", uint64(7), 0}, {"Key", MustKey("invoice", 7), 0}, {"list", []any{"invoice", 7}, 1}, {"strings", []string{"a", "b"}, 1}, {"struct", struct {
			A string
			b int
		}{"a", 1}, 1}, {"nested list", []any{"invoice", []any{7, 8}}, 1},
	} {
		got := testing.AllocsPerRun(200, func() {
			if _, err := keyOf(c.key); err != nil {
				t.Error(err)
			}
		})
		assert.LessOrEqual(t, got, c.want, c.name)
	}
	k := MustKey("invoice", 7)
	assert.Zero(t, testing.AllocsPerRun(200, func() { k.ID() }))
}
