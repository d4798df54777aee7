package pglock_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typed is a value as the vectors spell it.
type typed struct {
	T string
	V json.RawMessage
}

// vector is a key with the text and the lock id that TypeScript printed for it.
type vector struct {
	Key        typed
	Canonical  string
	AdvisoryID string
}

func vectors(t *testing.T) []vector {
	t.Helper()
	file, err := os.Open("../testdata/stable-keys.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var all []vector
	for lines := json.NewDecoder(file); lines.More(); {
		var v vector
		require.NoError(t, lines.Decode(&v))
		all = append(all, v)
	}
	require.Greater(t, len(all), 500)
	return all
}

// value is the Go value of a vector's key. There is none for undefined, nor for
// sets and maps of what Go can't compare.
func (v typed) value(t *testing.T) (value any, ok bool) {
	decode := func(into any) { require.NoError(t, json.Unmarshal(v.V, into)) }
	switch v.T {
	case "null":
		return nil, true
	case "string", "boolean":
		decode(&value)
		return value, true
	case "number":
		var text string
		decode(&text)
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case "bigint":
		var text string
		decode(&text)
		return new(big.Int).SetString(text, 10)
	case "date":
		var ms int64
		decode(&ms)
		return time.UnixMilli(ms), true
	case "array":
		var elements []typed
		decode(&elements)
		list := make([]any, len(elements))
		for i, e := range elements {
			if list[i], ok = e.value(t); !ok {
				return nil, false
			}
		}
		return list, true
	case "object":
		var entries [][2]json.RawMessage
		decode(&entries)
		object := make(map[string]any, len(entries))
		for _, entry := range entries {
			var name string
			var field typed
			require.NoError(t, json.Unmarshal(entry[0], &name))
			require.NoError(t, json.Unmarshal(entry[1], &field))
			if object[name], ok = field.value(t); !ok {
				return nil, false
			}
		}
		return object, true
	}
	return nil, false
}

// secondID is the lock id, derived anew from what is published of it: the first
// eight bytes of the canonical text's SHA-256, big endian; a bigint on its own
// is its own id.
func secondID(t *testing.T, v vector) int64 {
	if v.Key.T == "bigint" {
		number, ok := new(big.Int).SetString(strings.TrimPrefix(v.Canonical, "bigint:"), 10)
		require.True(t, ok)
		low := new(big.Int).And(number, new(big.Int).SetUint64(1<<64-1))
		return int64(low.Uint64())
	}
	sum := sha256.Sum256([]byte(v.Canonical))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func TestIdsAreThoseOfOtherLanguages(t *testing.T) {
	t.Parallel()
	l := offline(t, pglock.Options{})
	asked := 0
	for _, v := range vectors(t) {
		want, err := strconv.ParseInt(v.AdvisoryID, 10, 64)
		require.NoError(t, err)
		require.Equal(t, want, secondID(t, v), v.Canonical)
		key, ok := v.Key.value(t)
		if !ok {
			continue
		}
		id, err := l.LockID(key)
		require.NoError(t, err)
		require.Equal(t, want, id, v.Canonical)
		asked++
	}
	assert.Greater(t, asked, 300)
}

// shell is a psql that runs what it is told.
type shell struct {
	b   *bed
	in  *bufio.Writer
	out *bufio.Scanner
}

func (b *bed) psql() *shell {
	b.Helper()
	path, err := pgtest.Program("psql")
	require.NoError(b, err)
	cmd := exec.Command(path, "--no-psqlrc", "--tuples-only", "--no-align", "--quiet", b.db.DSN())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
	})
	s := &shell{b, bufio.NewWriter(in), bufio.NewScanner(out)}
	pid, err := strconv.Atoi(s.ask("select pg_backend_pid();"))
	require.NoError(b, err)
	b.hand = append(b.hand, pid)
	return s
}

// ask returns the one line that a statement answers.
func (s *shell) ask(statement string) string {
	s.b.Helper()
	_, err := s.in.WriteString(statement + "\n")
	require.NoError(s.b, err)
	require.NoError(s.b, s.in.Flush())
	require.True(s.b, s.out.Scan(), "psql has ended")
	return s.out.Text()
}

// Somebody at a terminal, or a program in any language, takes part by the id
// alone.
func TestPsqlThatHasThePublishedIdExcludesUs(t *testing.T) {
	b := newBed(t)
	psql := b.psql()
	l := b.locker(pglock.Options{})
	for _, p := range published {
		require.Equal(t, "t", psql.ask(fmt.Sprintf("select pg_try_advisory_lock(%d);", p.id)))
		b.refused(l.WithLock(t.Context(), p.key, nop, processlock.IfAvailable), processlock.ErrUnavailable)
		b.refused(l.WithLock(t.Context(), p.key, nop, processlock.IfAvailable, processlock.Shared), processlock.ErrUnavailable)
		waits := b.start(t.Context(), l, p.key)
		b.eventually(func() bool {
			waiting, err := b.db.Waiting(t.Context(), p.id)
			require.NoError(t, err)
			waits.pending()
			return len(waiting) == 1
		}, "nobody waits")
		require.Equal(t, "t", psql.ask(fmt.Sprintf("select pg_advisory_unlock(%d);", p.id)))
		waits.runs()
		require.Equal(t, "f", psql.ask(fmt.Sprintf("select pg_try_advisory_lock(%d);", p.id)))
		waits.ok()
		require.Equal(t, "t", psql.ask(fmt.Sprintf("select pg_try_advisory_lock_shared(%d);", p.id)))
		require.NoError(t, l.WithLock(t.Context(), p.key, nop, processlock.IfAvailable, processlock.Shared))
		b.refused(l.WithLock(t.Context(), p.key, nop, processlock.IfAvailable), processlock.ErrUnavailable)
		require.Equal(t, "t", psql.ask(fmt.Sprintf("select pg_advisory_unlock_shared(%d);", p.id)))
	}
}

// What stands in pg_stat_activity tells which key it is about.
func TestStatementsNameTheKey(t *testing.T) {
	b := newBed(t)
	l := b.locker(pglock.Options{})
	other := b.session()
	key := []any{"invoice", "*/ drop table t; /*", 7}
	b.take(other, key)
	waits := b.start(t.Context(), l, key).queued(1)
	found := ""
	for _, lock := range b.locks() {
		if !lock.Granted {
			found = lock.Query
		}
	}
	assert.Contains(t, found, "invoice")
	assert.Contains(t, found, strconv.FormatInt(idOf(key), 10))
	err := l.WithLock(t.Context(), key, nop, processlock.IfAvailable)
	assert.ErrorContains(t, err, "invoice")
	b.unlock(other, key)
	waits.runs().ok()
	require.NoError(t, l.WithConn(context.Background(), key, connNop))
}
