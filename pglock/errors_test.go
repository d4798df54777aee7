package pglock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An error names the key, and the id by which the server knows it.
func TestErrorsNameTheId(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{Namespace: "billing"})
	id, err := l.LockID("k")
	require.NoError(t, err)
	other := b.session()
	b.exec(other, "select pg_advisory_lock($1)", id)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	tx, err := b.session().Begin(t.Context())
	require.NoError(t, err)
	for _, err := range []error{
		l.WithLock(t.Context(), "k", nop, processlock.IfAvailable),
		l.WithLock(t.Context(), "k", nop, processlock.MaxWait(10*time.Millisecond)),
		l.WithLock(done, "k", nop),
		l.LockTx(t.Context(), tx, "k", processlock.IfAvailable),
	} {
		b.refused(err)
		assert.ErrorContains(t, err, `["k"]`)
		assert.ErrorContains(t, err, strconv.FormatInt(id, 10))
	}
	require.NoError(t, tx.Rollback(t.Context()))
}
