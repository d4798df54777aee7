package main

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if isReplica() {
		exit(replica(context.Background()))
	}
	os.Exit(m.Run())
}

func TestSumIsRightAfterAKill(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, settings{replicas: 3, turns: 200, think: time.Millisecond}), out.String())
	assert.Contains(t, out.String(), "killed")
	assert.Contains(t, out.String(), "The sum is 200 after 200 turns, of 200")
}

// What the lock is for shows where there is none.
func TestTurnsMeetWithoutTheLock(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), &out, settings{replicas: 3, turns: 200, think: time.Millisecond, noLock: true})
	assert.ErrorContains(t, err, "not held by one at a time", out.String())
}

func TestSettingsAreChecked(t *testing.T) {
	assert.Error(t, run(t.Context(), &bytes.Buffer{}, settings{replicas: 1, turns: 90}))
}
