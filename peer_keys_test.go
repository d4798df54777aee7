package processlock_test

import (
	"context"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Strings are keys as they are, byte for byte: empty, with NUL, with what is no
// UTF-8 (surrogates, alone and in the wrong order), with a noncharacter, with
// what a decoder would replace, composed and decomposed. Each excludes itself
// and none of the others, alone and as a part of a list.
//
// Rules 1 and 2.
func TestPeer_W63_W64_W65_W66_W67_W68_W69_AnyStringIsAKeyOfItsOwn(t *testing.T) {
	texts := []string{
		"",                           // W63
		"abc\x00def", "abc", "abcde", // W64
		"\xed\xa0\x80",             // W65: a lone high surrogate
		"\xed\xb0\x80",             // W66: a lone low one
		"\xed\xb0\x80\xed\xa0\x80", // W67: both, in the wrong order
		"\xed\xa0\x80\xed\xb0\x80", // and in the right one, which is no UTF-8 either
		"\U00010000",               // which this is
		"\uffff",                   // W68
		"\xff", "\ufffd", "\xfe",   // W69
		"é", "e\u0301",
	}
	for _, spell := range []func(text string) any{
		func(text string) any { return text },
		func(text string) any { return []any{text, 1} },
	} {
		c := processlock.New(processlock.Options{})
		var nest func(ctx context.Context, held int) error
		nest = func(ctx context.Context, held int) error {
			if held == len(texts) {
				return nil
			}
			key := spell(texts[held])
			return c.WithLock(ctx, key, func(ctx context.Context) error {
				assert.False(t, ltFree(c, key), "%q does not exclude itself", texts[held])
				assert.Equal(t, processlock.MustKey(key), pfLock(c, key).Key)
				assert.Contains(t, pfLock(c, key).Key.Canonical(), texts[held], "reported as something else")
				return nest(ctx, held+1)
			}, processlock.IfAvailable)
		}
		require.NoError(t, nest(t.Context(), 0), "two are one lock")
		ltIdle(t, c)
	}
}

// A list and the string that its parts look like when joined are two locks, and
// the result comes from the inner.
//
// Rules 2 and 14.
func TestPeer_DBX_P4_ListIsNotItsPartsJoined(t *testing.T) {
	c := processlock.New(processlock.Options{})
	ctx := processlock.WithCoordinator(t.Context(), c)
	got, err := processlock.WithLockValue(ctx, []any{"invoice", 7}, func(ctx context.Context) (string, error) {
		return processlock.WithLockValue(ctx, "invoice_7", func(context.Context) (string, error) {
			return "inner", nil
		}, processlock.IfAvailable)
	})
	require.NoError(t, err)
	require.Equal(t, "inner", got)
}
