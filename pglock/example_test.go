package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// exampleURL makes an empty database for an example.
func exampleURL() (url string, drop func()) {
	server, err := shared()
	if err != nil {
		log.Fatal(err)
	}
	db, err := server.Create(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return db.DSN(), func() {
		if err := db.Drop(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
}

// exampleLocker is a Locker on an empty database, which has what tables makes.
func exampleLocker(tables string) (pool *pgxpool.Pool, locks *pglock.Locker, end func()) {
	ctx := context.Background()
	url, drop := exampleURL()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		log.Fatal(err)
	}
	locks = pglock.New(pool, pglock.Options{})
	return pool, locks, func() {
		if err := locks.Close(ctx); err != nil {
			log.Fatal(err)
		}
		pool.Close()
		drop()
	}
}

func Example() {
	url, drop := exampleURL()
	defer drop()

	// README
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	locks := pglock.New(pool, pglock.Options{})
	defer locks.Close(ctx)

	err = locks.WithLock(ctx, []any{"invoice", 7}, func(ctx context.Context) error {
		fmt.Println("no other replica settles invoice 7 now")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: no other replica settles invoice 7 now
}

// A nightly job that every replica starts and one of them does.
func ExampleLocker_WithLock() {
	_, locks, end := exampleLocker("")
	defer end()
	ctx := context.Background()

	nightly := func(ctx context.Context) error {
		fmt.Println("one replica does it")
		// What another replica gets meanwhile:
		err := locks.WithLock(context.Background(), "nightly", func(context.Context) error { return nil }, processlock.IfAvailable)
		fmt.Println(errors.Is(err, processlock.ErrUnavailable))
		return nil
	}
	if err := locks.WithLock(ctx, "nightly", nightly, processlock.IfAvailable); err != nil {
		log.Fatal(err)
	}
	// Output:
	// one replica does it
	// true
}

// Migrations at the start of every replica: the first to come makes them, the
// others wait and find them made.
func ExampleLocker_WithConn() {
	pool, locks, end := exampleLocker("create table mail (sent timestamptz)")
	defer end()
	ctx := context.Background()

	// README
	err := locks.WithConn(ctx, "migrations", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "create index concurrently if not exists mail_sent on mail (sent)")
		return err
	})
	// README
	if err != nil {
		log.Fatal(err)
	}
	var n int
	err = pool.QueryRow(ctx, "select count(*) from pg_indexes where indexname = 'mail_sent'").Scan(&n)
	fmt.Println(n, err)
	// Output: 1 <nil>
}

func ExampleLocker_WithTx() {
	pool, locks, end := exampleLocker("create table account (id int, cents int); insert into account values (7, 100)")
	defer end()
	ctx := context.Background()

	// README
	err := locks.WithTx(ctx, []any{"account", 7}, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		var cents int
		if err := tx.QueryRow(ctx, "select cents from account where id = 7").Scan(&cents); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "update account set cents = $1 where id = 7", cents-30)
		return err
	})
	// README
	if err != nil {
		log.Fatal(err)
	}
	var cents int
	err = pool.QueryRow(ctx, "select cents from account").Scan(&cents)
	fmt.Println(cents, err)
	// Output: 70 <nil>
}

// In a transaction that is already there: it ends, and so does the lock.
func ExampleLocker_LockTx() {
	pool, locks, end := exampleLocker("")
	defer end()
	ctx := context.Background()

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := locks.LockTx(ctx, tx, "report"); err != nil {
			return err
		}
		fmt.Println("alone until the commit")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: alone until the commit
}

// The number that a session of psql, or a replica in another language, has to
// lock.
func ExampleLocker_LockID() {
	_, locks, end := exampleLocker("")
	defer end()

	id, err := locks.LockID("schema-install")
	fmt.Println(id, err)
	// Output: 8391191540082855336 <nil>
}
