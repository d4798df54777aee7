package processlock_test

import (
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
)

// Rules 19, 20 and 23.
func TestResolveReadsAsWithLockDoes(t *testing.T) {
	key := func(parts ...any) processlock.Key { return processlock.MustKey(parts...) }
	rows := []struct {
		name string
		key  any
		opts []processlock.Option
		want processlock.Request
	}{
		{"plain", "k", nil, processlock.Request{Keys: []processlock.Key{key("k")}}},
		{"list", []any{"k", 1}, nil, processlock.Request{Keys: []processlock.Key{key("k", 1)}}},
		{"Key", key("k", 1), nil, processlock.Request{Keys: []processlock.Key{key("k", 1)}}},
		{"shared", "k", []processlock.Option{processlock.Shared},
			processlock.Request{Keys: []processlock.Key{key("k")}, Mode: processlock.ModeShared}},
		{"if available", "k", []processlock.Option{processlock.IfAvailable},
			processlock.Request{Keys: []processlock.Key{key("k")}, IfAvailable: true}},
		{"reentrant", "k", []processlock.Option{processlock.Reentrant},
			processlock.Request{Keys: []processlock.Key{key("k")}, Reentrant: true}},
		{"max wait", "k", []processlock.Option{processlock.MaxWait(time.Second)},
			processlock.Request{Keys: []processlock.Key{key("k")}, MaxWait: time.Second}},
		{"shortest of several", "k", []processlock.Option{processlock.MaxWait(3), processlock.MaxWait(1), processlock.MaxWait(2)},
			processlock.Request{Keys: []processlock.Key{key("k")}, MaxWait: 1}},
		{"max wait of none", "k", []processlock.Option{processlock.MaxWait(0)},
			processlock.Request{Keys: []processlock.Key{key("k")}, IfAvailable: true}},
		{"max wait beside none", "k", []processlock.Option{processlock.MaxWait(1), processlock.MaxWait(-1)},
			processlock.Request{Keys: []processlock.Key{key("k")}, IfAvailable: true}},
		{"every option, twice", "k", []processlock.Option{
			processlock.Shared, processlock.Reentrant, processlock.MaxWait(1), processlock.Shared, processlock.Reentrant, processlock.MaxWait(1)},
			processlock.Request{Keys: []processlock.Key{key("k")}, Mode: processlock.ModeShared, Reentrant: true, MaxWait: 1}},
		{"all", processlock.All("b", "a", []any{"b"}, processlock.All("c", "a")), nil,
			processlock.Request{Keys: []processlock.Key{key("a"), key("b"), key("c")}}},
		{"all of none", processlock.All(), nil, processlock.Request{}},
	}
	for _, row := range rows {
		got, err := processlock.Resolve(row.key, row.opts...)
		assert.NoError(t, err, row.name)
		assert.Equal(t, row.want, got, row.name)
	}
}

// Rule 17.
func TestResolveRefusesWhatWithLockRefuses(t *testing.T) {
	for name, key := range map[string]any{
		"func":            func() {},
		"func in a list":  []any{1, func() {}},
		"func in All":     processlock.All("a", func() {}),
		"zero Key":        processlock.Key{},
		"Keys inside":     []any{processlock.All("a")},
		"zero Key in All": processlock.All(processlock.Key{}),
	} {
		got, err := processlock.Resolve(key)
		var refusal *processlock.AcquireError
		if assert.ErrorAs(t, err, &refusal, name) {
			assert.ErrorIs(t, err, processlock.ErrKey, name)
			assert.Zero(t, refusal.Key, name)
		}
		assert.Zero(t, got, name)
	}
}

// What Resolve returns is the caller's, and does not reach into the Keys.
func TestResolveReturnsACopyOfTheKeys(t *testing.T) {
	all := processlock.All("a", "b")
	first, err := processlock.Resolve(all)
	assert.NoError(t, err)
	first.Keys[0], first.Keys[1] = processlock.MustKey("x"), processlock.MustKey("y")
	second, err := processlock.Resolve(all)
	assert.NoError(t, err)
	assert.Equal(t, []processlock.Key{processlock.MustKey("a"), processlock.MustKey("b")}, second.Keys)
}
