package pglock

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dbx-tools/processlock"
)

// Function names are qualified, so that no search_path leads elsewhere.
const (
	unlockAll = "pg_catalog.pg_advisory_unlock_all()"
	rollback  = "rollback"
)

// lockRef is a lock as the server knows it.
type lockRef struct {
	id   int64
	mode processlock.Mode
}

// function returns the name of function for r's mode.
func (r lockRef) function(function string) string {
	if r.mode == processlock.ModeShared {
		function += "_shared"
	}
	return "pg_catalog." + function
}

func (r lockRef) call(function string) string {
	return r.function(function) + "(" + strconv.FormatInt(r.id, 10) + ")"
}

func (r lockRef) try() string    { return r.call("pg_try_advisory_lock") }
func (r lockRef) lock() string   { return r.call("pg_advisory_lock") }
func (r lockRef) unlock() string { return r.call("pg_advisory_unlock") }

// release gives r up on a session that holds no other key. It may hold r more
// than once, since a lock statement that failed may have been granted.
func (r lockRef) release() string { return "select " + r.unlock() + ", " + unlockAll }

// comment returns the key as a comment for those who read pg_stat_activity. It
// is printable ASCII, which every encoding of a database has, and, since comments
// nest, holds neither of their marks.
func comment(key processlock.Key) string {
	text := strconv.QuoteToASCII(key.String())
	text = strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`)
	text = strings.ReplaceAll(text, "*/", "* /")
	text = strings.ReplaceAll(text, "/*", "/ *")
	return " /* " + text + " */"
}

// bounded is a statement that waits for r in the server's queue for at most
// slice. The settings last as long as the statement; those of the role, which
// might end the wait or shorten it, don't apply.
func bounded(r lockRef, slice time.Duration, key processlock.Key) string {
	return "set local statement_timeout=0; set local lock_timeout=" + millis(slice) +
		"; select " + r.lock() + comment(key)
}

// longest is the longest time that a setting of the server can say.
const longest = math.MaxInt32 * time.Millisecond

func millis(d time.Duration) string {
	return strconv.FormatInt(max(1, min(d, longest).Milliseconds()), 10)
}
