package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// The command runs itself again as a replica, which these tell what to do.
const (
	nameVariable  = "REPLICAS_NAME"
	dsnVariable   = "REPLICAS_DSN"
	tableVariable = "REPLICAS_TABLE"
	turnsVariable = "REPLICAS_TURNS"
	thinkVariable = "REPLICAS_THINK"
	noLock        = "REPLICAS_NOLOCK"
)

func isReplica() bool { return os.Getenv(nameVariable) != "" }

// errDone says that all turns have been made.
var errDone = errors.New("all turns are made")

// replica makes turns until all are made.
func replica(ctx context.Context) error {
	turns, err := strconv.Atoi(os.Getenv(turnsVariable))
	if err != nil {
		return err
	}
	think, err := time.ParseDuration(os.Getenv(thinkVariable))
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, os.Getenv(dsnVariable))
	if err != nil {
		return err
	}
	defer pool.Close()
	locker := pglock.New(pool, pglock.Options{})
	table := os.Getenv(tableVariable)
	withLock := locker.WithLock
	if os.Getenv(noLock) != "" {
		withLock = func(ctx context.Context, _ any, fn func(context.Context) error, _ ...processlock.Option) error {
			return fn(ctx)
		}
	}

	var workers errgroup.Group
	for range 3 {
		workers.Go(func() error {
			for {
				err := withLock(ctx, []any{"replicas", table}, func(ctx context.Context) error {
					return turn(ctx, pool, table, turns, think)
				})
				switch {
				case errors.Is(err, errDone):
					return nil
				case err != nil:
					return fmt.Errorf("replica %s: %w", os.Getenv(nameVariable), err)
				}
			}
		})
	}
	return errors.Join(workers.Wait(), locker.Close(ctx))
}

// turn reads, thinks and writes. Two at once would read the same, and one of
// their turns would be lost: so a turn writes only if the row is still what it
// read, and is noted as overtaken if not.
//
// With the lock that happens once at most. Where a replica is killed its lock is
// free at once, and a COMMIT that it has sent may come through after that. WithTx,
// which has lock and transaction on one session, rules out that, too.
func turn(ctx context.Context, pool *pgxpool.Pool, table string, turns int, think time.Duration) error {
	note := "insert into " + table + "_turns values ($1, $2, $3, clock_timestamp())"
	var begin time.Time
	overtaken := false
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var n, allowed int
		err := tx.QueryRow(ctx, "select t.n, a.n, clock_timestamp() from "+table+" t, "+table+"_allowed a").Scan(&n, &allowed, &begin)
		if err != nil {
			return err
		}
		if n >= turns {
			return errDone
		}
		time.Sleep(think)
		if n >= allowed {
			return nil // the next turn looks again
		}
		tag, err := tx.Exec(ctx, "update "+table+" set n = $1 where n = $2", n+1, n)
		if overtaken = err == nil && tag.RowsAffected() == 0; err != nil || overtaken {
			return err
		}
		_, err = tx.Exec(ctx, note, n+1, os.Getenv(nameVariable), begin)
		return err
	})
	if err == nil && overtaken {
		_, err = pool.Exec(ctx, note, nil, os.Getenv(nameVariable), begin)
	}
	return err
}
