package pglock_test

import (
	"math"
	"testing"
	"time"

	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A wait goes on in slices, each of which is a request of its own to the server,
// which may have no room for the next.
func TestLockTableFillsUpWhileACallWaits(t *testing.T) {
	b := ownBed(t, small)
	l := b.locker(pglock.Options{Slice: 20 * time.Millisecond})
	holder := b.session()
	b.take(holder, "busy")
	waits := b.start(t.Context(), l, "busy").queued(1)
	tx := b.begins()

	// One session takes all the locks there are room for. Others join it in them,
	// for which another table is needed, and that of the wait between two slices.
	var fillers []*pgx.Conn
	for range 4 {
		fillers = append(fillers, b.session())
	}
	// fill goes on where the session has come to, until there is no room.
	next := make([]int, len(fillers))
	fill := func(i, most int) {
		for ; next[i] < most; next[i]++ {
			_, err := fillers[i].Exec(t.Context(), "select pg_advisory_lock_shared($1)", pgx.QueryExecModeSimpleProtocol, next[i])
			if err != nil {
				require.ErrorContains(t, err, "53200")
				return
			}
		}
	}
	fill(0, math.MaxInt)
	for end := time.Now().Add(patience); !isClosed(waits.over) && time.Now().Before(end); {
		for i := 1; i < len(fillers); i++ {
			fill(i, next[0])
		}
	}
	assert.ErrorContains(t, b.refused(waits.returns()), "max_locks_per_transaction")

	// A transaction has no room for its lock either.
	assert.ErrorContains(t, b.refused(l.LockTx(t.Context(), tx, "k")), "max_locks_per_transaction")
	assert.Equal(t, byte('E'), tx.Conn().PgConn().TxStatus())
	for _, conn := range fillers {
		b.exec(conn, "select pg_advisory_unlock_all()", pgx.QueryExecModeSimpleProtocol)
	}
	require.NoError(t, tx.Rollback(t.Context()))
	b.unlock(holder, "busy")
	require.NoError(t, l.WithLock(t.Context(), "busy", nop))
}
