package processlock

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Once no key is held Shutdown has returned, and nothing is admitted that was
// found to belong to a running fn a moment before.
//
// Rule 29.
func TestNothingRisesFromNothing(t *testing.T) {
	var d drain
	assert.False(t, d.rise())
	assert.Zero(t, d.remaining.Load())
	d.remaining.Store(1)
	assert.True(t, d.rise())
	assert.EqualValues(t, 2, d.remaining.Load())
}
