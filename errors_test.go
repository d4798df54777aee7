package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ltPrefix = "processlock: "

// Rule 13.
func TestErrorTexts(t *testing.T) {
	key := processlock.MustKey("invoice", 7)
	lock := func(reason error) error { return &processlock.AcquireError{Key: key, Err: reason} }
	rows := []struct {
		err  error
		want string
	}{
		{processlock.ErrClosed, `processlock: client or coordinator closed`},
		{processlock.ErrUnavailable, `processlock: not available now`},
		{processlock.ErrWaitTimeout, `processlock: not available within MaxWait`},
		{processlock.ErrQueueFull, `processlock: queue is full (Options.MaxWaiters)`},
		{processlock.ErrDeadlock, `processlock: deadlock`},
		{processlock.ErrKey, `processlock: key has no stable identity`},
		{processlock.ErrLost, `processlock: lock was lost while fn ran`},
		{lock(processlock.ErrUnavailable), `processlock: lock ["invoice",7]: not available now`},
		{lock(processlock.ErrWaitTimeout), `processlock: lock ["invoice",7]: not available within MaxWait`},
		{lock(processlock.ErrQueueFull), `processlock: lock ["invoice",7]: queue is full (Options.MaxWaiters)`},
		{lock(processlock.ErrClosed), `processlock: lock ["invoice",7]: client or coordinator closed`},
		{lock(context.Canceled), `processlock: lock ["invoice",7]: context canceled`},
		{lock(context.DeadlineExceeded), `processlock: lock ["invoice",7]: context deadline exceeded`},
		{&processlock.AcquireError{Err: processlock.ErrClosed}, `processlock: client or coordinator closed`},
		{&processlock.AcquireError{Key: key}, `processlock: lock ["invoice",7]: unknown reason`},
		{&processlock.AcquireError{}, `processlock: unknown reason`},
		{lock(&processlock.DeadlockError{Cycle: []processlock.Wait{{Key: key}}}),
			`processlock: deadlock: this call wants ["invoice",7], held by this call's own fn; Reentrant runs under the hold that is there, Detach(ctx) is for a goroutine that outlives fn`},
	}
	for _, row := range rows {
		assert.EqualError(t, row.err, row.want)
	}
	ltOneLine(t, (&processlock.DeadlockError{}).Error(), "an empty cycle")
}

// Rule 13.
func TestErrorTextsOfRealCalls(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, []any{"invoice", 7})
		canceled, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("drained for deploy"))
		closed, cl := c.WithClient(t.Context(), "w")
		cl.Close()
		rows := []struct {
			ctx  context.Context
			key  any
			opts []processlock.Option
			want string
		}{
			{t.Context(), []any{"invoice", 7}, []processlock.Option{processlock.IfAvailable}, `processlock: lock ["invoice",7]: not available now`},
			{t.Context(), []any{"invoice", 7}, []processlock.Option{processlock.MaxWait(1)}, `processlock: lock ["invoice",7]: not available within MaxWait`},
			{canceled, 7, nil, `processlock: lock [7]: context canceled: drained for deploy`},
			{closed, 7, nil, `processlock: lock [7]: context canceled: client or coordinator closed`},
			{context.WithoutCancel(closed), 7, nil, `processlock: lock [7]: client or coordinator closed`},
			{t.Context(), func() {}, nil, `processlock: key: func() has no stable identity`},
			{canceled, func() {}, nil, `processlock: context canceled: drained for deploy`},
		}
		for _, row := range rows {
			assert.EqualError(t, c.WithLock(row.ctx, row.key, ltNop, row.opts...), row.want)
		}
		holder.open()
	})
}

// ltNasty are texts that break a line, a terminal or a log, or look like ours.
var ltNasty = []string{
	"two\nlines", "a\r\nb", "tab\t", "nul\x00", "\x1b[31mred\x1b[0m", "bell\a", "\u2028separator\u2029", "\u202eright to left",
	"bad \xff\xfe utf8", "\ufeffmark", "zero\u200bwidth", `quo"te`, "processlock: lock was here", "", strings.Repeat("long ", 200),
}

// ltOneLine fails the test unless text is one line of ours.
func ltOneLine(t *testing.T, text, from string) {
	t.Helper()
	assert.True(t, strings.HasPrefix(text, ltPrefix), "%s: no prefix: %q", from, text)
	assert.True(t, utf8.ValidString(text), "%s: %q", from, text)
	assert.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%s: %q", from, text)
}

// Rules 13 and 31.
func TestErrorTextsStayOnOneLine(t *testing.T) {
	for _, nasty := range ltNasty {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			ctx, cl := c.WithClient(t.Context(), nasty)
			key := []any{nasty, 1}
			var all []error
			note := func(err error) {
				assert.Error(t, err)
				all = append(all, err)
			}
			canceled, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New(nasty))
			note(c.WithLock(canceled, key, ltNop))
			note(c.WithLock(t.Context(), []any{nasty, map[string]any{nasty: func() {}}}, ltNop))

			holder := ltGoLast(ctx, c, key, func(context.Context) error { return errors.New(nasty) })
			note(c.WithLock(t.Context(), key, ltNop, processlock.IfAvailable))
			note(c.WithLock(holder.ctx, key, ltNop))
			other := ltGo(ctx, c, []any{nasty, 2})
			waiter := ltGo(other.ctx, c, key)
			note(c.WithLock(holder.ctx, []any{nasty, 2}, ltNop))
			cl.Close()
			synctest.Wait()
			note(waiter.err)
			holder.open()
			other.open()
			note(holder.err)
			assert.ErrorIs(t, holder.err, processlock.ErrLost)

			for _, err := range all {
				ltOneLine(t, err.Error(), fmt.Sprintf("%T with %q", err, nasty))
				if !strings.Contains(nasty, ltPrefix) {
					assert.Equal(t, 1, strings.Count(err.Error(), ltPrefix), err.Error())
				}
			}
			// The key is quoted, so that it can't be taken for the text around it.
			quoted := processlock.MustKey(key).String()
			for _, err := range all {
				var refusal *processlock.AcquireError
				if errors.As(err, &refusal) && refusal.Key == processlock.MustKey(key) {
					assert.Contains(t, err.Error(), quoted)
				}
			}
		})
	}
}

// An error of ours that comes in again, as a cause or from fn, keeps the prefix
// to the front.
//
// Rule 13.
func TestErrorTextsHaveOnePrefix(t *testing.T) {
	inner := &processlock.AcquireError{Key: processlock.MustKey("inner"), Err: processlock.ErrUnavailable}
	for _, ours := range []error{
		processlock.ErrClosed,
		inner,
		&processlock.AcquireError{Key: processlock.MustKey("outer"), Err: inner},
		&processlock.DeadlockError{Cycle: []processlock.Wait{{Key: processlock.MustKey("a")}}},
		processlock.ErrLost,
	} {
		ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
			canceled, cancel := context.WithCancelCause(t.Context())
			cancel(ours)
			late := c.WithLock(canceled, "k", ltNop)
			assert.ErrorIs(t, late, ours)

			ctx, cl := c.WithClient(t.Context(), "w")
			holder := ltGoLast(ctx, c, "k", func(context.Context) error { return ours })
			cl.Close()
			holder.open()
			assert.ErrorIs(t, holder.err, ours)
			assert.ErrorIs(t, holder.err, processlock.ErrLost)

			for _, err := range []error{late, holder.err} {
				ltOneLine(t, err.Error(), "ours inside ours")
				assert.Equal(t, 1, strings.Count(err.Error(), ltPrefix), err.Error())
			}
		})
	}
}

// Rules 13, 20, 21 and 31.
func TestErrorsFindWhatTheyAre(t *testing.T) {
	all := []error{
		processlock.ErrClosed, processlock.ErrUnavailable, processlock.ErrWaitTimeout, processlock.ErrQueueFull,
		processlock.ErrDeadlock, processlock.ErrKey, processlock.ErrLost, context.Canceled, context.DeadlineExceeded,
	}
	rows := []struct {
		reason error
		is     []error
	}{
		{processlock.ErrClosed, []error{processlock.ErrClosed}},
		{processlock.ErrUnavailable, []error{processlock.ErrUnavailable}},
		{processlock.ErrWaitTimeout, []error{processlock.ErrWaitTimeout, processlock.ErrUnavailable}},
		{processlock.ErrQueueFull, []error{processlock.ErrQueueFull, processlock.ErrUnavailable}},
		{processlock.ErrKey, []error{processlock.ErrKey}},
		{&processlock.DeadlockError{}, []error{processlock.ErrDeadlock}},
		{processlock.ErrLost, []error{processlock.ErrLost}},
		{context.Canceled, []error{context.Canceled}},
		{context.DeadlineExceeded, []error{context.DeadlineExceeded}},
	}
	for _, row := range rows {
		for _, err := range []error{row.reason, &processlock.AcquireError{Err: row.reason}, fmt.Errorf("while settling: %w", &processlock.AcquireError{Err: row.reason})} {
			for _, target := range all {
				want := false
				for _, is := range row.is {
					want = want || is == target
				}
				assert.Equal(t, want, errors.Is(err, target), "%v is %v", err, target)
			}
		}
	}
	var deadlock *processlock.DeadlockError
	assert.ErrorAs(t, error(&processlock.AcquireError{Err: &processlock.DeadlockError{}}), &deadlock)
}

// Rule 20.
func TestTimeoutTellsWhetherTimeRanOut(t *testing.T) {
	ltBubble(t, func(t *testing.T, c *processlock.Coordinator) {
		holder := ltGo(t.Context(), c, "k")
		late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-1))
		defer cancelLate()
		soon, cancelSoon := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too slow"))
		defer cancelSoon()
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		rows := []struct {
			name string
			ctx  context.Context
			key  any
			opts []processlock.Option
			want bool
		}{
			{"MaxWait", t.Context(), "k", []processlock.Option{processlock.MaxWait(time.Second)}, true},
			{"deadline passed", late, "k", nil, true},
			{"deadline", soon, "k", nil, true},
			{"cancel", dead, "k", nil, false},
			{"IfAvailable", t.Context(), "k", []processlock.Option{processlock.IfAvailable}, false},
			{"MaxWait of none", t.Context(), "k", []processlock.Option{processlock.MaxWait(0)}, false},
			{"deadlock", holder.ctx, "k", nil, false},
			{"key", t.Context(), func() {}, nil, false},
		}
		for _, row := range rows {
			err := c.WithLock(row.ctx, row.key, ltNop, row.opts...)
			var timeout interface{ Timeout() bool }
			if assert.ErrorAs(t, err, &timeout, row.name) {
				assert.Equal(t, row.want, timeout.Timeout(), row.name)
			}
			var refusal *processlock.AcquireError
			require.ErrorAs(t, err, &refusal, row.name)
			assert.Equal(t, row.want, refusal.Timeout(), row.name)
			assert.Equal(t, row.want, os.IsTimeout(err), row.name)
		}
		holder.open()
	})
}
