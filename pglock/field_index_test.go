package pglock_test

import (
	"context"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CREATE INDEX CONCURRENTLY waits for every snapshot that is older, and a
// statement that waits for a lock has one: where fn builds the index, each would
// wait for the other.
func TestField_P14_IndexIsBuiltWhileOthersWait(t *testing.T) {
	for _, mode := range []pglock.WaitMode{pglock.Queue, pglock.Poll} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBed(t)
			// That nobody is called a victim is seen more often if the server
			// looks for one sooner.
			b.set("deadlock_timeout", "300ms")
			opts := pglock.Options{Wait: mode, Slice: 200 * time.Millisecond}
			l := b.locker(opts)
			others := []*agent{b.agent(opts), b.agent(opts)}
			b.exec(b.session(), "create table t as select generate_series(1, 1000) as x")
			builds := map[string]func(ctx context.Context, held *pgx.Conn) error{
				"on the session that holds the lock": func(ctx context.Context, held *pgx.Conn) error {
					_, err := held.Exec(ctx, "create index concurrently on t (x)")
					return err
				},
				"on another session": func(ctx context.Context, _ *pgx.Conn) error {
					_, err := b.session().Exec(ctx, "create index concurrently on t (x)")
					return err
				},
				"anew on the session that holds the lock": func(ctx context.Context, held *pgx.Conn) error {
					_, err := held.Exec(ctx, "reindex table concurrently t")
					return err
				},
			}
			for name, build := range builds {
				var waits []*call
				require.NoError(t, l.WithConn(t.Context(), "k", func(ctx context.Context, conn *pgx.Conn) error {
					for _, a := range others {
						waits = append(waits, a.start("k"), a.start("k"))
					}
					b.eventually(func() bool { return mode == pglock.Poll || len(b.waiting("k")) == len(others) }, "nobody waits")
					ctx, cancel := context.WithTimeout(ctx, patience)
					defer cancel()
					begin := time.Now()
					err := build(ctx, conn)
					t.Logf("%s: %v", name, time.Since(begin))
					for _, c := range waits {
						c.pending()
					}
					return err
				}), name)
				for _, c := range waits {
					c.let()
				}
				for _, c := range waits {
					assert.NoError(t, c.returns(), name)
				}
			}
		})
	}
}
