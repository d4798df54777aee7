package pglock_test

import (
	"context"
	"errors"
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

// So does that of a deadlock, for each key on the cycle, wherever it is found.
func TestDeadlocksNameTheIds(t *testing.T) {
	b := newBed(t)
	local := processlock.New(processlock.Options{})
	one := b.locker(pglock.Options{Namespace: "billing", Local: local})
	two := b.locker(pglock.Options{Namespace: "billing"})
	id := func(key string) string {
		id, err := one.LockID(key)
		require.NoError(t, err)
		return strconv.FormatInt(id, 10)
	}
	names := func(err error, keys ...string) {
		t.Helper()
		b.refused(err, processlock.ErrDeadlock)
		var d *processlock.DeadlockError
		require.ErrorAs(t, err, &d)
		assert.Len(t, d.Cycle, len(keys))
		for _, key := range keys {
			assert.ErrorContains(t, err, `["`+key+`"]`)
			assert.ErrorContains(t, err, id(key))
		}
	}
	a, z := b.hold(one, "a"), b.hold(one, "z")
	names(one.WithLock(a.ctx, "a", nop), "a")
	tx := b.begins()
	names(one.LockTx(a.ctx, tx, "a"), "a")
	require.NoError(t, tx.Rollback(t.Context()))
	inner := b.start(a.ctx, one, "z")
	b.eventually(func() bool { return local.Stats().Waiting == 1 }, "nobody waits")
	names(one.WithLock(z.ctx, "a", nop), "a", "z")
	z.ok()
	inner.runs().ok()

	other := b.hold(two, "b")
	there, back := b.start(a.ctx, one, "b"), b.start(other.ctx, two, "a")
	select {
	case <-there.over:
		names(there.err, "a", "b")
		a.ok()
		back.runs().ok()
		other.ok()
	case <-back.over:
		names(back.err, "a", "b")
		other.ok()
		there.runs().ok()
		a.ok()
	case <-time.After(patience):
		require.Fail(t, "the deadlock is not found")
	}
}

// And that of a loss, where it is not ErrLost itself.
func TestLossNamesTheId(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{Namespace: "billing"})
	id, err := l.LockID("k")
	require.NoError(t, err)
	mine := errors.New("mine")
	for _, result := range []error{mine, nil} {
		err := l.WithLock(t.Context(), "k", func(ctx context.Context) error {
			b.terminate(b.pids()...)
			<-ctx.Done()
			return result
		})
		require.ErrorIs(t, err, processlock.ErrLost)
		if result == nil {
			assert.Equal(t, processlock.ErrLost, err)
			continue
		}
		assert.ErrorIs(t, err, mine)
		assert.ErrorContains(t, err, `["k"]`)
		assert.ErrorContains(t, err, strconv.FormatInt(id, 10))
	}
}

// An answer that is late says which option bounds it.
func TestProbeThatIsTooShortIsNamed(t *testing.T) {
	b := newBed(t)
	p := b.proxy()
	p.Delay(50 * time.Millisecond)
	for name, lock := range ways {
		l := b.lockerAt(p.Addr(), pglock.Options{Probe: 100 * time.Millisecond})
		assert.ErrorContains(t, b.refused(lock(l, t.Context(), "k", nop)), "Options.Probe", name)
	}
}
