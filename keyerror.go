package processlock

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// keyError says which part of a value has no stable identity, and why.
type keyError struct {
	root  string   // what the path begins with; "key" if empty
	path  []string // the steps to the part, innermost first: the order in which they become known
	why   string   // one line, with the caller's data quoted and cut
	cause error    // what MarshalText returned, else nil
}

// noIdentity ends the reason where a part is by its nature no key.
const noIdentity = " has no stable identity"

func refused(why string) *keyError { return &keyError{why: why} }

// Bytes of an error's text. The path of a key of a thousand levels, a type that
// spells out its fields or an error of the caller's may be of any length.
const (
	maxPathHead = 160
	maxPathTail = 80
	maxWhat     = 120
	maxCause    = 300
	maxStep     = 48 // a map's key inside a path
)

// at returns e with one more step in front of its path.
func (e *keyError) at(step string) *keyError {
	e.path = append(e.path, step)
	return e
}

// Error returns the path and the reason, on one line.
func (e *keyError) Error() string {
	path := "key"
	if e.root != "" {
		path = e.root
	}
	for _, step := range slices.Backward(e.path) {
		path += step
		if len(path) > maxPathHead+maxPathTail {
			path = cutPath(path, e.path)
			break
		}
	}
	text := prefix + path + ": " + e.why
	if e.cause != nil {
		text += ": " + cutText(strings.TrimPrefix(e.cause.Error(), prefix), maxCause)
	}
	return text
}

// cutPath keeps both ends of a long path: the start of head, which is a
// beginning of it, and its last steps.
func cutPath(head string, steps []string) string {
	tail := ""
	for _, step := range steps {
		if len(step)+len(tail) > maxPathTail {
			break
		}
		tail = step + tail
	}
	return cutText(head, maxPathHead) + tail
}

// Unwrap returns [ErrKey] and, if there is one, MarshalText's error.
func (e *keyError) Unwrap() []error {
	if e.cause != nil {
		return []error{ErrKey, e.cause}
	}
	return []error{ErrKey}
}

// cutText returns s on one line, cut to some max bytes before escaping.
func cutText(s string, max int) string {
	if len(s) <= max {
		return oneLine(s)
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return oneLine(s[:max]) + cutMark
}
