package processlock

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// checkNormal checks that k has the one form that its text has, whatever it was
// made from.
func checkNormal(t *testing.T, k Key) {
	t.Helper()
	text := k.Canonical()
	want := Key{kind: keyText, s: text}
	if parts := splitParts(text); len(parts) == 1 {
		switch {
		case strings.HasPrefix(text, "string:"):
			_, raw, _ := strings.Cut(strings.TrimPrefix(text, "string:"), ":")
			want = stringKey(raw)
		case strings.HasPrefix(text, "number:"):
			if n, ok := canonicalInt(strings.TrimPrefix(text, "number:")); ok {
				want = intKey(n)
			}
		}
	}
	assert.True(t, k.same(want), "%#v is not %#v", k, want)
	assert.Zero(t, k.compare(k))
}

// canonicalInt parses decimal int64s by hand.
func canonicalInt(s string) (n int64, ok bool) {
	digits, negative := strings.CutPrefix(s, "-")
	if digits == "" || len(digits) > 19 || strings.Trim(digits, "0123456789") != "" || digits == "0" && negative {
		return 0, false
	}
	var u uint64
	for _, d := range []byte(digits) {
		u = u*10 + uint64(d-'0')
	}
	switch {
	case negative && u <= 1<<63:
		return int64(-u), true
	case !negative && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}

// splitParts is a second reading of the grammar: it splits where a NUL is not
// the content of a string or of bytes.
func splitParts(text string) []string {
	if text == "" {
		return nil
	}
	var parts []string
	start, i := 0, 0
	for i < len(text) {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "string:"), strings.HasPrefix(rest, "bytes:"):
			tag, after, _ := strings.Cut(rest, ":")
			digits, raw, _ := strings.Cut(after, ":")
			n, _ := canonicalInt(digits)
			i += len(tag) + len(digits) + 2
			for n > 0 {
				r, size := utf8.DecodeRuneInString(raw)
				n--
				switch {
				case tag == "bytes":
					size = 1
				case r > 0xFFFF:
					n--
				}
				raw, i = raw[size:], i+size
			}
		case text[i] == 0:
			parts = append(parts, text[start:i])
			i++
			start = i
		default:
			i++
		}
	}
	return append(parts, text[start:])
}

// checkString checks what every String promises.
func checkString(t *testing.T, k Key) {
	t.Helper()
	s := k.String()
	assert.LessOrEqual(t, len(s), 200)
	assert.True(t, utf8.ValidString(s), "%q", s)
	for _, r := range s {
		if !unicode.IsPrint(r) {
			assert.Fail(t, "unprintable", "%q in %q", r, s)
		}
	}
	assert.True(t, strings.HasPrefix(s, "["), "%q", s)
	if !strings.HasSuffix(s, "...") {
		assert.True(t, strings.HasSuffix(s, "]"), "%q", s)
	}
}
