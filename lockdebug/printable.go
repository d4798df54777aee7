package lockdebug

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// cutMark ends a text that was cut, as in Key.String.
const cutMark = "..."

// cut returns s within max bytes, ending in cutMark if it was longer.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max - len(cutMark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + cutMark
}

// printable returns s as shown, within max bytes.
func printable(s string, max int) string {
	return cut(shown(cut(s, max)), max)
}

// shown returns s for showing: what has no glyph of its own, or would turn the
// text around it, is escaped as in Go source. Names of clients are other
// people's strings, like keys.
func shown(s string) string {
	plain := func(r rune) bool { return strconv.IsPrint(r) && r != utf8.RuneError }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	var b strings.Builder
	var buf [16]byte
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if plain(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.AppendQuote(buf[:0], s[:size])
			b.Write(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}
