package processlock

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A request whose MaxWait runs out looks at what keeps it waiting, and may yet be
// granted its key before it leaves. The holds that it has marked as warned of
// are nobody else's to warn of, so it does.
func TestSlowHoldIsWarnedOfThoughTheGrantComesFirst(t *testing.T) {
	var lines bytes.Buffer
	o := &observer{slowHold: 1, logger: slog.New(slog.NewTextHandler(&lines, nil))}
	tt := &sight{observer: o, ctx: context.Background(), start: 1, since: 2}
	tt.waits()
	tt.view.slow = []slowHold{{step: step{key: stringKey("k")}, held: 5}}
	tt.longest = &pastHold{}
	tt.granted()
	assert.Equal(t, 1, strings.Count(lines.String(), "\n"), lines.String())
	assert.Contains(t, lines.String(), "still held")
	assert.Zero(t, tt.view, "keeps alive what others hold")
	assert.Nil(t, tt.longest, "keeps alive what others held")
}
