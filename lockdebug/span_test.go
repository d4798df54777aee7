package lockdebug

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpanString(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "0 ns"},
		{0, "0 ns"},
		{999, "999 ns"},
		{1000, "1.00 µs"},
		{9994, "9.99 µs"},
		{9995, "10.0 µs"},
		{99_949, "99.9 µs"},
		{99_950, "100 µs"},
		{12_345_678, "12.3 ms"},
		{999_499_999, "999 ms"},
		{999_500_000, "1.0 s"},
		{59_949 * time.Millisecond, "59.9 s"},
		{59_950 * time.Millisecond, "0 m 59 s"},
		{time.Minute, "1 m 0 s"},
		{time.Hour - 1, "59 m 59 s"},
		{time.Hour, "1 h 0 m"},
		{26*time.Hour + 61*time.Minute, "1 d 3 h"},
		{math.MaxInt64, "106751 d 23 h"},
	} {
		require.Equal(t, test.want, spanOf(test.d).String(), test.d)
	}
	require.Equal(t, "unknown", span{}.String())
}

// What is shown never goes back while time goes on.
func TestSpanStringIsMonotonic(t *testing.T) {
	last := ""
	seen := map[string]bool{}
	for d := time.Duration(1); d < 100*time.Hour; d += d/700 + 1 {
		if s := spanOf(d).String(); s != last {
			require.False(t, seen[s], "%s again at %d", s, d)
			seen[s], last = true, s
		}
	}
}

func TestSpanJSON(t *testing.T) {
	type row struct {
		Held span `json:"held_seconds,omitzero"`
	}
	for _, test := range []struct {
		s    span
		want string
	}{
		{span{}, `{}`},
		{spanOf(0), `{"held_seconds":0}`},
		{spanOf(1), `{"held_seconds":1e-9}`},
		{spanOf(1500 * time.Millisecond), `{"held_seconds":1.5}`},
	} {
		got, err := json.Marshal(row{test.s})
		require.NoError(t, err)
		require.Equal(t, test.want, string(got))
	}
	require.Equal(t, "", span{}.Seconds())
	require.Equal(t, "0", spanOf(0).Seconds())
	require.Equal(t, "0.000000001", spanOf(1).Seconds())
}

func TestSpanOrder(t *testing.T) {
	s := []span{{}, spanOf(1), spanOf(0), {}, spanOf(2)}
	slices.SortStableFunc(s, span.compare)
	require.Equal(t, []span{spanOf(2), spanOf(1), spanOf(0), {}, {}}, s)
	require.False(t, since(time.Time{}, time.Now()).known)
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567",
		-999: "-999", -1000: "-1,000", -123456: "-123,456", math.MaxInt64: "9,223,372,036,854,775,807",
	} {
		require.Equal(t, want, count(n))
	}
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{
		"":                                     "",
		"worker-1":                             "worker-1",
		`say "hi" \ 'bye'`:                     `say "hi" \ 'bye'`,
		"ärger 鍵 שלום":                         "ärger 鍵 שלום",
		"a\nb\x00\x1b[2J":                      `a\nb\x00\x1b[2J`,
		"\u202ex\u2028\xff":                    `\u202ex\u2028\xff`,
		strings.Repeat("x", 41):                strings.Repeat("x", 37) + "...",
		strings.Repeat("鍵", 20):                strings.Repeat("鍵", 12) + "...",
		strings.Repeat("\x00", 11):             strings.Repeat(`\x00`, 9) + `\...`,
		strings.Repeat("x", 36) + "鍵" + "more": strings.Repeat("x", 36) + "...",
	} {
		require.Equal(t, want, printable(s, 40))
	}
}

func TestCaller(t *testing.T) {
	for name, want := range map[string]string{
		"main.main.func1": "main.main.func1",
		"github.com/dbx-tools/processlock/lockdebug_test.play":           "lockdebug_test.play",
		"example.com/shop.(*Store).Ship":                                 "shop.(*Store).Ship",
		"example.com/shop.Do[go.shape.struct { example.com/x.T }].func1": "shop.Do[go.shape.struct { example.com/x.T }].func1",
		"": "",
	} {
		require.Equal(t, want, caller{Func: name}.ShortFunc())
	}
	require.Equal(t, "store.go:88", caller{File: "/src/shop/store.go", Line: 88}.Place())
	require.Equal(t, "store.go:88", caller{File: `C:\src\shop\store.go`, Line: 88}.Place())
	require.Equal(t, "", caller{}.Place())
	require.Equal(t, "f", caller{Func: "f"}.Name())
	require.Equal(t, "c", caller{Func: "f", Client: "c"}.Name())
}
