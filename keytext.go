package processlock

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxString bounds what String returns, in bytes.
const maxString = 200

// cutMark ends a text that was cut.
const cutMark = "..."

// String returns the key on one line for people to read, as the list of its
// parts: ["invoice",7]. It depends on the canonical text alone, so two keys that
// are one lock print alike.
//
// Strings are quoted as [strconv.Quote] does, bytes likewise behind the word
// bytes; 7n is a big.Int; dates are in ISO 8601; lists, sets, objects and maps
// look like [1,2], set[1,2], {"a":1} and map{1:"a"}. A text of more than 200
// bytes is cut to at most 200 that end in "...", and costs no more for a longer
// key. The zero Key is <zero Key>.
func (k Key) String() string {
	w := textWriter{max: maxString}
	switch k.kind {
	case keyInvalid:
		return "<zero Key>"
	case keyString:
		if w.add("[") && w.quote(k.s) {
			w.add("]")
		}
	case keyInt:
		return "[" + strconv.FormatInt(k.n, 10) + "]"
	case keyText:
		w.parts(k.s)
	}
	return string(w.out)
}

// shorten returns the value at the beginning of a canonical text as String
// writes it, within max bytes.
func shorten(text string, max int) string {
	w := textWriter{max: max}
	w.value(text)
	return string(w.out)
}

// quote returns s quoted, within max bytes.
func quote(s string, max int) string {
	w := textWriter{max: max}
	w.quote(s)
	return string(w.out)
}

// textWriter writes the readable form of canonical text until it has max bytes.
// Everything in it returns false once there is no more room; then out is cut and
// the rest of the text need not be looked at.
type textWriter struct {
	out []byte
	max int
	cut int // the last end of a token that leaves room for the mark
}

// add writes a token, whole or not at all.
func (w *textWriter) add(token string) bool {
	if len(w.out)+len(token) > w.max {
		w.out = append(w.out[:w.cut], cutMark...)
		return false
	}
	w.out = append(w.out, token...)
	if len(w.out) <= w.max-len(cutMark) {
		w.cut = len(w.out)
	}
	return true
}

// quote writes s quoted, rune by rune and escape by escape.
func (w *textWriter) quote(s string) bool {
	if !w.add(`"`) {
		return false
	}
	var buf [16]byte
	for len(s) > 0 {
		_, size := utf8.DecodeRuneInString(s)
		quoted := strconv.AppendQuote(buf[:0], s[:size])
		if !w.add(string(quoted[1 : len(quoted)-1])) {
			return false
		}
		s = s[size:]
	}
	return w.add(`"`)
}

// parts writes the list whose parts text is.
func (w *textWriter) parts(text string) bool {
	if !w.add("[") {
		return false
	}
	for i := 0; text != ""; i++ {
		if i > 0 {
			text = text[1:] // NUL
			if !w.add(",") {
				return false
			}
		}
		var ok bool
		if text, ok = w.value(text); !ok {
			return false
		}
	}
	return w.add("]")
}

// value writes the value at the beginning of text and returns what follows it.
func (w *textWriter) value(text string) (rest string, ok bool) {
	tag := ""
	if !strings.HasPrefix(text, "null") {
		tag = text[:strings.IndexByte(text, ':')+1]
	}
	rest = text[len(tag):]
	switch tag {
	case tagString:
		n, raw := cutDigits(rest)
		// Each unit takes a byte or more, so one more than there is room for
		// is enough to overflow: the end of a long string is never looked for.
		end := utf16Prefix(raw, min(n, w.max+1))
		return raw[end:], w.quote(raw[:end])
	case tagBytes:
		n, raw := cutDigits(rest)
		return raw[n:], w.add("bytes") && w.quote(raw[:n])
	case tagArray:
		return w.list(rest, "[")
	case tagSet:
		return w.list(rest, "set[")
	case tagObject:
		return w.list(rest, "{")
	case tagMap:
		return w.list(rest, "map{")
	case tagDate:
		return w.until(rest, "Z")
	}
	// null, a boolean, a number or a bigint runs up to the next delimiter.
	rest, ok = w.until(rest, "")
	if tag == tagBigint {
		ok = ok && w.add("n")
	}
	return rest, ok
}

// until writes text up to and with the byte end, or up to a delimiter or the end
// of the text if there is no end.
func (w *textWriter) until(text, end string) (rest string, ok bool) {
	for i := range len(text) {
		c := text[i : i+1]
		if end == "" && strings.Contains(",]}=\x00", c) {
			return text[i:], true
		}
		if !w.add(c) {
			return "", false
		}
		if c == end {
			return text[i+1:], true
		}
	}
	return "", true
}

// list writes the elements or entries of text, which begins with the opening
// bracket and holds the closing one.
func (w *textWriter) list(text, open string) (rest string, ok bool) {
	if !w.add(open) {
		return "", false
	}
	for text = text[1:]; ; {
		sep := text[:1]
		switch sep {
		case ",":
			text = text[1:]
		case "=":
			sep, text = ":", text[1:]
		case "]", "}":
			return text[1:], w.add(sep)
		default: // the first
			sep = ""
		}
		if !w.add(sep) {
			return "", false
		}
		if text, ok = w.value(text); !ok {
			return "", false
		}
	}
}
