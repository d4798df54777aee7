package pglock_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is wrong in the program itself panics before anything is connected.
func TestMisusePanics(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "host=127.0.0.1 port=1")
	require.NoError(t, err)
	defer pool.Close()
	l := pglock.New(pool, pglock.Options{})
	var none *pglock.Locker
	var noContext context.Context
	ctx := t.Context()
	for name, misuse := range map[string]func(){
		"pool":        func() { pglock.New(nil, pglock.Options{}) },
		"MaxConns 1":  func() { pglock.New(pool, pglock.Options{MaxConns: 1}) },
		"MaxConns -1": func() { pglock.New(pool, pglock.Options{MaxConns: -1}) },
		"MaxKeys":     func() { pglock.New(pool, pglock.Options{MaxKeys: -1}) },
		"Wait":        func() { pglock.New(pool, pglock.Options{Wait: 2}) },
		"Slice":       func() { pglock.New(pool, pglock.Options{Slice: time.Microsecond}) },
		"For":         func() { pglock.New(pool, pglock.Options{Handoff: pglock.Handoff{For: -1}}) },
		"Max":         func() { pglock.New(pool, pglock.Options{Handoff: pglock.Handoff{Max: -1}}) },
		"Probe":       func() { pglock.New(pool, pglock.Options{Probe: time.Millisecond}) },
		"Release":     func() { pglock.New(pool, pglock.Options{Release: -1}) },
		"Locker":      func() { _ = none.WithLock(ctx, "k", nop) },
		"LockID":      func() { _, _ = none.LockID("k") },
		"zero Locker": func() { _ = new(pglock.Locker).WithLock(ctx, "k", nop) },
		"context":     func() { _ = l.WithLock(noContext, "k", nop) },
		"fn":          func() { _ = l.WithLock(ctx, "k", nil) },
		"fn of conn":  func() { _ = l.WithConn(ctx, "k", nil) },
		"fn of tx":    func() { _ = l.WithTx(ctx, "k", pgx.TxOptions{}, nil) },
		"tx":          func() { _ = l.LockTx(ctx, nil, "k") },
		"option":      func() { _ = l.WithLock(ctx, "k", nop, nil) },
		"Close":       func() { _ = l.Close(noContext) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text, _ := recover().(string)
				assert.Regexp(t, "^processlock: ", text)
			}()
			misuse()
		})
	}
	require.NoError(t, l.Close(ctx))
}

func TestKeysThatCanNotBe(t *testing.T) {
	t.Parallel()
	l := offline(t, pglock.Options{})
	_, err := l.LockID(processlock.All("a", "b"))
	assert.ErrorIs(t, err, processlock.ErrKey)
	assert.ErrorContains(t, err, "2 keys")
	id, err := l.LockID(processlock.All("a", []any{"a"}))
	require.NoError(t, err)
	assert.Equal(t, idOf("a"), id)
	var a *processlock.AcquireError
	assert.ErrorAs(t, l.WithConn(t.Context(), processlock.All(), connNop), &a)
	ran := false
	require.NoError(t, l.WithLock(t.Context(), processlock.All(), func(context.Context) error { ran = true; return nil }))
	assert.True(t, ran)
}
