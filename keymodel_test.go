package processlock

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// keyNode is a value of the identity's model, as it is before any Go spelling.
type keyNode struct {
	kind    string // null boolean number bigint string date bytes array set object map
	text    string // boolean, bigint, string, bytes; number unless float
	float   float64
	isFloat bool
	date    [2]int64  // seconds and nanoseconds since 1970
	keys    []keyNode // object, map
	kids    []keyNode // array, set, object, map
	direct  bool      // array: as a key of a map, spelled as a Go array and not behind a pointer
}

// canonical is the reference for the encoder: as obvious as it can be, over the
// model. asKey is set where -0 is 0.
func (n keyNode) canonical(asKey bool) string {
	texts := func(open string, asKey bool, shut string) string {
		var all []string
		for i, kid := range n.kids {
			text := kid.canonical(asKey)
			if n.keys != nil {
				text = n.keys[i].canonical(n.kind == "map") + "=" + text
			}
			all = append(all, text)
		}
		if n.kind != "array" {
			slices.SortFunc(all, func(a, b string) int {
				return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
			})
			all = slices.Compact(all)
		}
		return n.kind + ":" + open + strings.Join(all, ",") + shut
	}
	switch n.kind {
	case "null":
		return "null"
	case "number":
		if n.isFloat {
			return "number:" + referenceFloat(n.float, asKey)
		}
	case "string":
		units := 0
		for s := n.text; s != ""; {
			r, size := utf8.DecodeRuneInString(s)
			units += len(utf16.Encode([]rune{r}))
			s = s[size:]
		}
		return fmt.Sprintf("string:%d:%s", units, n.text)
	case "bytes":
		return fmt.Sprintf("bytes:%d:%s", len(n.text), n.text)
	case "date":
		at := time.Unix(n.date[0], n.date[1]).UTC() // of the years 0 to 9999
		text := at.Format("2006-01-02T15:04:05.000000000")
		for strings.HasSuffix(text, "0") && len(text) > len("2006-01-02T15:04:05.000") {
			text = text[:len(text)-1]
		}
		return "date:" + text + "Z"
	case "array":
		return texts("[", asKey && n.direct, "]")
	case "set":
		return texts("[", true, "]")
	case "object", "map":
		return texts("{", false, "}")
	}
	return n.kind + ":" + n.text
}

// referenceFloat is ECMAScript's Number::toString, step by step as the standard
// has it: k digits, of which n stand before the point.
func referenceFloat(f float64, asKey bool) string {
	if f == 0 {
		if math.Signbit(f) && !asKey {
			return "-0"
		}
		return "0"
	}
	if f < 0 {
		return "-" + referenceFloat(-f, asKey)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	e, _ := strconv.Atoi(exponent)
	k, n := len(digits), e+1
	switch {
	case k <= n && n <= 21:
		return digits + strings.Repeat("0", n-k)
	case 0 < n && n <= 21:
		return digits[:n] + "." + digits[n:]
	case -6 < n && n <= 0:
		return "0." + strings.Repeat("0", -n) + digits
	case k == 1:
		return fmt.Sprintf("%se%+d", digits, n-1)
	}
	return fmt.Sprintf("%s.%se%+d", digits[:1], digits[1:], n-1)
}

// lock is the text of n as a whole key.
func (n keyNode) lock() string {
	if n.kind != "array" {
		return n.canonical(false)
	}
	var parts []string
	for _, kid := range n.kids {
		parts = append(parts, kid.canonical(false))
	}
	return strings.Join(parts, "\x00")
}
