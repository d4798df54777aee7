package processlock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// htLogged returns what the handlers of log/slog write of v, as v="text" and as
// JSON.
func htLogged(t *testing.T, v any) (text, object string) {
	t.Helper()
	var b bytes.Buffer
	opts := &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}}
	slog.New(slog.NewTextHandler(&b, opts)).Info("", "v", v)
	text = strings.TrimSpace(b.String())
	b.Reset()
	slog.New(slog.NewJSONHandler(&b, opts)).Info("", "v", v)
	return text, strings.TrimSpace(b.String())
}

// htWait is a step of a cycle as a test gives it.
func htWait(key, client, fn, file string, line int) processlock.Wait {
	return processlock.Wait{Key: processlock.MustKey(key), Client: client, Func: fn, File: file, Line: line}
}

func TestLogValues(t *testing.T) {
	k := processlock.MustKey("invoice", 7)
	cycle := &processlock.DeadlockError{Cycle: []processlock.Wait{
		htWait("b", "worker-2", "store.Save", "/src/store.go", 88),
		htWait("a", "", "main.handle", "", 0),
		htWait("c", "", "", "", 0),
	}}
	const msg = `deadlock: this call wants ["b"], held by worker-2 at store.go:88, which wants ["a"], held by an fn in main.handle, which wants ["c"], held by this call's own fn`
	quoted := strings.ReplaceAll(msg, `"`, `\"`)
	for _, row := range []struct {
		name         string
		v            any
		text, object string
	}{
		{"Key", k, `v="[\"invoice\",7]"`, `{"v":"[\"invoice\",7]"}`},
		{"zero Key", processlock.Key{}, `v="<zero Key>"`, `{"v":"<zero Key>"}`},
		{"AcquireError", &processlock.AcquireError{Key: k, Err: processlock.ErrWaitTimeout},
			`v.key="[\"invoice\",7]" v.reason="not available within MaxWait"`,
			`{"v":{"key":"[\"invoice\",7]","reason":"not available within MaxWait"}}`},
		{"AcquireError without a key", &processlock.AcquireError{Err: context.Canceled},
			`v.reason="context canceled"`, `{"v":{"reason":"context canceled"}}`},
		{"AcquireError without a reason", &processlock.AcquireError{Key: k},
			`v.key="[\"invoice\",7]" v.reason="unknown reason"`, `{"v":{"key":"[\"invoice\",7]","reason":"unknown reason"}}`},
		{"AcquireError of a hostile reason", &processlock.AcquireError{Key: processlock.MustKey("\n\x1b[2J"), Err: errors.New("a\nlevel=ERROR\x00")},
			`v.key="[\"\\n\\x1b[2J\"]" v.reason="a\\nlevel=ERROR\\x00"`,
			`{"v":{"key":"[\"\\n\\x1b[2J\"]","reason":"a\\nlevel=ERROR\\x00"}}`},
		{"DeadlockError", cycle,
			`v.msg="` + quoted + `" v.1.key="[\"b\"]" v.1.holder.client=worker-2 v.1.holder.func=store.Save v.1.holder.source=store.go:88` +
				` v.2.key="[\"a\"]" v.2.holder.func=main.handle v.3.key="[\"c\"]"`,
			`{"v":{"msg":"` + quoted + `","1":{"key":"[\"b\"]","holder":{"client":"worker-2","func":"store.Save","source":"store.go:88"}},` +
				`"2":{"key":"[\"a\"]","holder":{"func":"main.handle"}},"3":{"key":"[\"c\"]"}}}`},
		{"AcquireError of a deadlock", &processlock.AcquireError{Key: k, Err: &processlock.DeadlockError{}},
			`v.key="[\"invoice\",7]" v.reason.msg="deadlock: this call"`,
			`{"v":{"key":"[\"invoice\",7]","reason":{"msg":"deadlock: this call"}}}`},
	} {
		text, object := htLogged(t, row.v)
		assert.Equal(t, row.text, text, row.name)
		assert.Equal(t, row.object, object, row.name)
		assert.True(t, json.Valid([]byte(object)), row.name)
	}
}

// What a call returned is logged with its key, its reason and, of a deadlock,
// who holds what.
func TestLogValueOfWhatACallReturned(t *testing.T) {
	var c processlock.Coordinator
	ctx, client := c.WithClient(t.Context(), "w")
	defer client.Close()
	err := c.WithLock(ctx, "k", func(ctx context.Context) error { return c.WithLock(ctx, "k", ltNop) })
	require.ErrorIs(t, err, processlock.ErrDeadlock)
	_, object := htLogged(t, err)
	var got struct {
		V struct {
			Key    string
			Reason struct {
				Msg string
				One struct {
					Key    string
					Holder struct{ Client, Func, Source string }
				} `json:"1"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(object), &got))
	assert.Equal(t, `["k"]`, got.V.Key)
	assert.Equal(t, `["k"]`, got.V.Reason.One.Key)
	assert.Equal(t, "processlock: "+got.V.Reason.Msg, err.Error())
	holder := got.V.Reason.One.Holder
	assert.Equal(t, "w", holder.Client)
	assert.Contains(t, holder.Func, "TestLogValueOfWhatACallReturned")
	assert.Regexp(t, `^logvalue_test.go:\d+$`, holder.Source)
}

// Stats is an expvar.Var: its text is JSON, with each field's name in lower
// case.
//
// Rule 41.
func TestStatsString(t *testing.T) {
	s := processlock.Stats{Held: 1, Waiting: 2, Acquired: 3, Waited: 4, Canceled: 5, Unavailable: 6, Deadlocks: 7, Closed: 8, Lost: 9, WaitDuration: 1500e6}
	assert.Equal(t, `{"held":1,"waiting":2,"acquired":3,"waited":4,"canceled":5,"unavailable":6,"deadlocks":7,"closed":8,"lost":9,"wait_seconds":1.5}`, s.String())
	for _, d := range []time.Duration{0, 1, time.Hour, math.MaxInt64} {
		s.WaitDuration = d
		var got map[string]float64
		require.NoError(t, json.Unmarshal([]byte(s.String()), &got), s.String())
		assert.Equal(t, d.Seconds(), got["wait_seconds"])
		assert.Len(t, got, reflect.TypeFor[processlock.Stats]().NumField(), "a field is missing")
	}
	var _ expvar.Var = s
}
