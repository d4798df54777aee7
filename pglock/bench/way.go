package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5/pgxpool"
)

// way is a way to lock a key.
type way struct {
	name string
	lock func(ctx context.Context, key any, fn func(context.Context) error) error
	stop func()
}

// byHand is what one would write: a connection for each lock, and two
// statements.
const byHand = "by hand"

// ways are all ways by name. Each makes its own pool, of as many connections as
// goroutines for what is done by hand.
var ways = map[string]pglock.Options{
	"pglock":             {},
	"pglock, no handoff": {Handoff: pglock.Handoff{Max: 1}},
	"pglock, poll":       {Wait: pglock.Poll},
}

func open(ctx context.Context, dsn, name string, goroutines int) (*way, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(goroutines)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if name == byHand {
		return &way{name, func(ctx context.Context, key any, fn func(context.Context) error) error {
			return lockByHand(ctx, pool, processlock.MustKey(key).ID(), fn)
		}, pool.Close}, nil
	}
	opts, ok := ways[name]
	if !ok {
		return nil, fmt.Errorf("no way is called %q", name)
	}
	l := pglock.New(pool, opts)
	return &way{name, func(ctx context.Context, key any, fn func(context.Context) error) error {
		return l.WithLock(ctx, key, fn)
	}, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
		pool.Close()
	}}, nil
}

func lockByHand(ctx context.Context, pool *pgxpool.Pool, id int64, fn func(context.Context) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", id); err != nil {
		return err
	}
	ferr := fn(ctx)
	if _, err := conn.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)", id); err != nil {
		return err
	}
	return ferr
}
