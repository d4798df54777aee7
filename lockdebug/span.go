package lockdebug

import (
	"encoding/json"
	"strconv"
	"time"
)

// span is how long something has lasted, if that is known. In JSON it is a
// number of seconds, and absent (with omitzero) where it isn't known.
type span struct {
	d     time.Duration
	known bool
}

func spanOf(d time.Duration) span { return span{max(d, 0), true} }

// since is the span from t, if that is known, to now.
func since(t, now time.Time) span {
	if t.IsZero() {
		return span{}
	}
	return spanOf(now.Sub(t))
}

// longer reports whether s is known to be longer than o, or known where o
// isn't.
func (s span) longer(o span) bool {
	return s.known && (!o.known || s.d > o.d)
}

// compare orders the longest first and what isn't known last.
func (s span) compare(o span) int {
	switch {
	case s.longer(o):
		return -1
	case o.longer(s):
		return 1
	}
	return 0
}

func (s span) IsZero() bool { return !s.known }

func (s span) MarshalJSON() ([]byte, error) { return json.Marshal(s.d.Seconds()) }

// Seconds is the span as JSON has it, or "".
func (s span) Seconds() string {
	if !s.known {
		return ""
	}
	return strconv.FormatFloat(s.d.Seconds(), 'f', -1, 64)
}

// String is the span for people: two units, or three digits.
func (s span) String() string {
	if !s.known {
		return "unknown"
	}
	switch d := s.d; {
	case d < time.Microsecond:
		return strconv.Itoa(int(d)) + " ns"
	case d < time.Millisecond:
		return digits(float64(d)/1e3) + " µs"
	case d < 999_500*time.Microsecond:
		return digits(float64(d)/1e6) + " ms"
	case d < 59_950*time.Millisecond:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return units(d.Truncate(time.Second), time.Minute, " m ", time.Second, " s")
	case d < 24*time.Hour:
		return units(d, time.Hour, " h ", time.Minute, " m")
	default:
		return units(d, 24*time.Hour, " d ", time.Hour, " h")
	}
}

// Level is how bad a wait of that length looks: "", "long" or "stuck". The
// bounds only colour: what is long depends on the work.
func (s span) Level() string {
	switch {
	case s.d >= 30*time.Second:
		return "stuck"
	case s.d >= time.Second:
		return "long"
	}
	return ""
}

// digits writes three digits of x, which is less than 1000.
func digits(x float64) string {
	switch {
	case x < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

func units(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	return strconv.Itoa(int(d/big)) + bigName + strconv.Itoa(int(d%big/small)) + smallName
}

// count writes n with its thousands apart: 10,000.
func count[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
