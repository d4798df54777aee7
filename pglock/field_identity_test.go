package pglock_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestField_P17_IdsAre64BitsOfAHash(t *testing.T) {
	l := offline(t, pglock.Options{})
	const n = 100_000
	seen := make(map[int64]int, n)
	for i := range n {
		id, err := l.LockID([]any{"invoice", i, map[string]any{"tenant": i % 7}})
		require.NoError(t, err)
		if other, ok := seen[id]; ok {
			t.Fatalf("keys %d and %d have one id", i, other)
		}
		seen[id] = i
	}
	// Big endian, the first eight bytes.
	sum := sha256.Sum256([]byte("string:14:schema-install"))
	id, err := l.LockID("schema-install")
	require.NoError(t, err)
	assert.Equal(t, int64(binary.BigEndian.Uint64(sum[:8])), id)
}

// offline returns a Locker that is asked for ids alone.
func offline(t *testing.T, opts pglock.Options) *pglock.Locker {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/nowhere")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pglock.New(pool, opts)
}

func TestField_P18_NamespacesAndSmallNumbersDoNotCollide(t *testing.T) {
	b := newBed(t)
	red := b.locker(pglock.Options{Namespace: "red"})
	blue := b.locker(pglock.Options{Namespace: "blue"})
	plain := b.locker(pglock.Options{})
	agent := b.agent(pglock.Options{Namespace: "red"})
	held := []*call{b.hold(red, "k"), b.hold(blue, "k"), b.hold(plain, "k")}
	assert.Len(t, b.locks(), 3)
	require.ErrorIs(t, agent.start("k", "ifavailable").returns(), processlock.ErrUnavailable)
	for _, c := range held {
		c.ok()
	}
	agent.start("k").runs().ok()

	// Numbers that others lock by hand, in both of the server's key spaces.
	hand := b.session()
	b.exec(hand, "select pg_advisory_lock(n) from generate_series(1::int8, 1000) n")
	b.exec(hand, "select pg_advisory_lock(n, m) from generate_series(1, 30) n, generate_series(1, 30) m")
	for i := range 100 {
		require.NoError(t, plain.WithLock(t.Context(), i, nop, processlock.IfAvailable))
	}
	b.refused(plain.WithLock(t.Context(), big.NewInt(7), nop, processlock.IfAvailable), processlock.ErrUnavailable)
	b.exec(hand, "select pg_advisory_unlock_all()")
}

func TestField_P19_ScopeIsTheDatabase(t *testing.T) {
	b := newBed(t)
	elsewhere := bedOn(t, b.db.Server)
	held := b.hold(b.locker(pglock.Options{}), "k")
	require.NoError(t, elsewhere.locker(pglock.Options{}).WithLock(t.Context(), "k", nop, processlock.IfAvailable))

	// A schema is not part of the identity, unless the namespace says it.
	pool := b.pool(b.db.DSN(), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = "tenant" })
	for namespace, refused := range map[string]bool{"": true, "tenant": false} {
		l := pglock.New(pool, pglock.Options{Namespace: namespace})
		err := l.WithLock(t.Context(), "k", nop, processlock.IfAvailable)
		if refused {
			b.refused(err, processlock.ErrUnavailable)
		} else {
			assert.NoError(t, err)
		}
		require.NoError(t, l.Close(t.Context()))
	}
	held.ok()
}

// idKeys are keys of many kinds, made anew in each process.
func idKeys() []any {
	keys := []any{nil, true, 7, -0.5, "k", []any{}, []any{"k"}, []any{[]any{"k"}}, map[int]struct{}{1: {}, 2: {}},
		big.NewInt(7), struct{ A, B int }{1, 2}, []byte("k"), processlock.MustKey("k", 7)}
	for i := range 100 {
		keys = append(keys, map[string]any{"b": i, "a": strconv.Itoa(i), "λ": []any{i, i}})
	}
	return keys
}

// idsRole prints the ids of idKeys.
func idsRole() error {
	l, err := roleLocker()
	if err != nil {
		return err
	}
	for _, key := range idKeys() {
		id, err := l.LockID(key)
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	return nil
}

func TestField_P20_EveryProcessDerivesTheSameIds(t *testing.T) {
	b := newBed(t)
	for _, opts := range []pglock.Options{{}, {Namespace: "billing"}} {
		l := offline(t, opts)
		want := ""
		for _, key := range idKeys() {
			id, err := l.LockID(key)
			require.NoError(t, err)
			want += fmt.Sprintln(id)
		}
		for range 3 {
			out, err := b.child("ids", opts).Output()
			require.NoError(t, err)
			assert.Equal(t, want, string(out))
		}
	}
}

// published are ids that other software knows.
var published = []struct {
	key any
	id  int64
}{
	{"schema-install", 8391191540082855336},
	{[]any{"schema-install", "v2"}, -6627415645816226415},
	{map[string]any{"b": 2, "a": 1}, 8289569017560903448},
	{[]any{"unicode", "λ"}, 5028212226534770301},
	{[]any{1, "1", true, nil}, 1977673129255614398},
	{big.NewInt(-9223372036854771659), -9223372036854771659},
	{new(big.Int).SetUint64(1<<64 - 1), -1},
}

func TestField_P22_IdsAreThePublishedOnes(t *testing.T) {
	l := offline(t, pglock.Options{})
	for _, p := range published {
		id, err := l.LockID(p.key)
		require.NoError(t, err)
		assert.Equal(t, p.id, id, "%v", p.key)
	}
	_, err := l.LockID(func() {})
	assert.ErrorIs(t, err, processlock.ErrKey)
}

// The lock that the server sees is the id, bit for bit.
func TestServerSeesThePublishedIds(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	for _, p := range published {
		for name, lock := range ways {
			require.NoError(t, lock(l, t.Context(), p.key, func(context.Context) error {
				held, err := b.db.Held(t.Context(), p.id)
				require.NoError(t, err)
				assert.Len(t, held, 1, "%s(%v)", name, p.key)
				return nil
			}))
		}
	}
}
