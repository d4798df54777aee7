package processlock

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Canonical text holds whatever the strings and bytes of a key hold, brackets
// and NULs too: only their lengths tell what is content and what is grammar.

// grammar yields the bytes of canonical text, and where they are, that are not
// the content of a string or of bytes.
func grammar(text string) iter.Seq2[int, byte] {
	return func(yield func(int, byte) bool) {
		for i := 0; i < len(text); i++ {
			// Outside of content these two words are tags: no other word of
			// the grammar contains them.
			switch rest := text[i:]; {
			case strings.HasPrefix(rest, tagString):
				n, raw := cutDigits(rest[len(tagString):])
				i = len(text) - len(raw) + utf16Prefix(raw, n)
			case strings.HasPrefix(rest, tagBytes):
				n, raw := cutDigits(rest[len(tagBytes):])
				i = len(text) - len(raw) + n
			}
			if i < len(text) && !yield(i, text[i]) {
				return
			}
		}
	}
}

// depth returns how many brackets of canonical text lie inside each other.
func depth(text string) int {
	deepest, open := 0, 0
	for _, c := range grammar(text) {
		switch c {
		case '[', '{':
			open++
			deepest = max(deepest, open)
		case ']', '}':
			open--
		}
	}
	return deepest
}

// cutDigits splits what follows tagString or tagBytes into the length and what
// follows the colon behind it.
func cutDigits(text string) (n int, rest string) {
	i := 0
	for ; text[i] != ':'; i++ {
		n = n*10 + int(text[i]-'0')
	}
	return n, text[i+1:]
}

// utf16Len counts UTF-16 code units. A byte that is not UTF-8 counts as one.
func utf16Len(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			for _, r := range s[i:] {
				n += utf16Units(r)
			}
			break
		}
		n++
	}
	return n
}

// utf16Prefix returns how many bytes of s have n UTF-16 code units.
func utf16Prefix(s string, n int) int {
	for i, r := range s {
		if n <= 0 {
			return i
		}
		n -= utf16Units(r)
	}
	return len(s)
}

func utf16Units(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// compareUTF16 orders two texts by their UTF-16 code units, as ECMAScript sorts
// strings.
//
// For valid UTF-8 that is the order of the bytes, except that 0xEE and 0xEF rank
// above all others. Where two texts first differ, either both bytes are inside
// the same rune's encoding, after an equal lead byte, or both are lead bytes.
// In the first case the runes are both in the BMP or both above it, where UTF-16
// and UTF-8 both keep the order of code points. In the second, lead bytes order
// runes by code point, and UTF-16 differs from that order only in putting the
// runes above the BMP, which are surrogates D800-DFFF there and begin with 0xF0
// to 0xF4 here, before U+E000 to U+FFFF, which begin with 0xEE or 0xEF. Those
// two bytes only ever are lead bytes. Bytes that are not UTF-8 have no order in
// ECMAScript; any fixed one will do.
func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return rankUTF16(a[i]) - rankUTF16(b[i])
		}
	}
	return len(a) - len(b)
}

func rankUTF16(c byte) int {
	if c == 0xEE || c == 0xEF {
		return int(c) + 0x100
	}
	return int(c)
}
