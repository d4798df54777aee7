package processlock

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// What the texts of a value begin with. Null has none.
const (
	tagBool   = "boolean:"
	tagNumber = "number:"
	tagBigint = "bigint:"
	tagString = "string:" // length in UTF-16 code units, ':', the string
	tagBytes  = "bytes:"  // length, ':', the bytes
	tagDate   = "date:"
	tagArray  = "array:"  // '[', texts, ']'
	tagSet    = "set:"    // '[', texts in order, ']'
	tagObject = "object:" // '{', string=text in order, '}'
	tagMap    = "map:"    // '{', text=text in order, '}'
)

func appendBool(dst []byte, b bool) []byte {
	return strconv.AppendBool(append(dst, tagBool...), b)
}

func appendInt(dst []byte, n int64) []byte {
	return strconv.AppendInt(append(dst, tagNumber...), n, 10)
}

func appendUint(dst []byte, n uint64) []byte {
	return strconv.AppendUint(append(dst, tagNumber...), n, 10)
}

// appendFloat appends a finite float as ECMAScript's Number::toString writes it,
// except that -0 keeps its sign: the fewest digits that tell the float from its
// neighbours, filled up with zeros below 1e21, with an exponent from there on and
// below 1e-6.
func appendFloat(dst []byte, f float64) []byte {
	dst = append(dst, tagNumber...)
	if abs := math.Abs(f); abs == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go writes at least two digits of exponent.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(appendStringHead(dst, s), s...)
}

// appendStringHead appends the text of s up to s itself.
func appendStringHead(dst []byte, s string) []byte {
	dst = strconv.AppendInt(append(dst, tagString...), int64(utf16Len(s)), 10)
	return append(dst, ':')
}

func appendBytes(dst []byte, b []byte) []byte {
	dst = strconv.AppendInt(append(dst, tagBytes...), int64(len(b)), 10)
	return append(append(dst, ':'), b...)
}

// appendDate appends t as ECMAScript's Date.toISOString writes it, with more
// than three digits of fraction only where there is something below the
// millisecond.
//
// It counts the calendar itself, in int64: the methods of Time return an int,
// which on a 32-bit machine is too small for the years that a Time can hold.
func appendDate(dst []byte, t time.Time) []byte {
	// Seconds since the year 1, which is what a Time counts. Unix overflows
	// for instants near the ends, and the addition wraps back.
	const year1ToUnix = 62_135_596_800
	sec := t.Unix() + year1ToUnix

	day, sec := floorDiv(sec, 24*60*60)
	// Years that begin in March, in eras of 400 such years, so that the leap
	// day is the last of its year; 306 days lie between 1 March of the year 0
	// and the year 1.
	era, day := floorDiv(day+306, 146_097)
	year := (day - day/1460 + day/36_524 - day/146_096) / 365
	day -= 365*year + year/4 - year/100
	month := (5*day + 2) / 153
	day -= (153*month + 2) / 5
	year += era * 400
	if month += 3; month > 12 {
		month -= 12
		year++
	}

	dst = append(dst, tagDate...)
	switch {
	case year >= 0 && year <= 9999:
		dst = appendDigits(dst, year, 4)
	case year < 0:
		dst = appendDigits(append(dst, '-'), -year, 6)
	default:
		dst = appendDigits(append(dst, '+'), year, 6)
	}
	dst = appendDigits(append(dst, '-'), month, 2)
	dst = appendDigits(append(dst, '-'), day+1, 2)
	dst = appendDigits(append(dst, 'T'), sec/3600, 2)
	dst = appendDigits(append(dst, ':'), sec/60%60, 2)
	dst = appendDigits(append(dst, ':'), sec%60, 2)
	dst = appendDigits(append(dst, '.'), int64(t.Nanosecond()), 9)
	for range 6 {
		if dst[len(dst)-1] != '0' {
			break
		}
		dst = dst[:len(dst)-1]
	}
	return append(dst, 'Z')
}

// floorDiv returns the quotient rounded down and the rest, which is never
// negative.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// appendDigits appends n with at least width digits.
func appendDigits(dst []byte, n int64, width int) []byte {
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], n, 10)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// isJSONNumber reports whether s is a number in JSON's grammar, which is
// narrower than that of strconv.
func isJSONNumber(s string) bool {
	rest := s
	digits := func() (n int) {
		for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
			n++
		}
		rest = rest[n:]
		return n
	}
	next := func(any string) bool {
		if rest == "" || !bytes.ContainsRune([]byte(any), rune(rest[0])) {
			return false
		}
		rest = rest[1:]
		return true
	}
	next("-")
	if !next("0") && digits() == 0 {
		return false
	}
	if next(".") && digits() == 0 {
		return false
	}
	if next("eE") {
		next("+-")
		if digits() == 0 {
			return false
		}
	}
	return rest == ""
}
