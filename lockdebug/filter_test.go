package lockdebug_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

func TestFilter(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		long := strings.Repeat("x", 10_000) + "Needle"
		for _, key := range []any{"invoice", []any{"Invoice", 7}, "a\nb", "a<b>&'\"c", "ärger", long, 7} {
			s.ask("h", []any{key})
		}
		for filter, want := range map[string]int{
			"":                    7,
			"invoice":             2,
			"INVOICE":             2,
			`["Invoice",7]`:       1,
			`",7`:                 1,
			"7":                   2,
			"a\nb":                1, // looked for as it is shown
			`a\nb`:                1,
			"<b>&'":               1,
			"ÄRGER":               1,
			"needle":              1, // beyond what is shown
			"nothing of the kind": 0,
		} {
			q := url.QueryEscape(filter)
			doc := s.json("&key=" + q)
			require.Equal(t, want, doc.Matching, filter)
			require.Len(t, doc.Keys, want)
			require.Equal(t, 7, doc.Now.Keys, "the totals are of all keys")

			page := s.html("key=" + q)
			filter = strings.ReplaceAll(filter, "\n", `\n`)
			require.Equal(t, filter, doc.Filter)
			require.Equal(t, filter, page.one(t, with("id", "filter")).Attr["value"])
			if want == 0 {
				require.Contains(t, page.one(t, with("class", "empty")).text(), "None of 7 keys contains")
			}
			// Every way on keeps the filter, but for the one that drops it.
			links := page.one(t, with("id", "links")).all(named("a"))
			require.Len(t, links, 4)
			for _, a := range links {
				v, err := url.ParseQuery(strings.TrimPrefix(a.Attr["href"], "?"))
				require.NoError(t, err)
				require.Equal(t, filter, v.Get("key"), a.text())
			}
		}
	})
}

// The refresh works without script, can be told and turned off, and is kept by
// the form.
func TestRefresh(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		for query, want := range map[string]string{"": "3", "refresh=3": "3", "refresh=10": "10", "refresh=0": ""} {
			page := s.html(query)
			meta := page.all(has("http-equiv"))
			if want == "" {
				require.Empty(t, meta)
			} else {
				require.Len(t, meta, 1)
				require.Equal(t, "refresh", meta[0].Attr["http-equiv"])
				require.Equal(t, want, meta[0].Attr["content"])
				require.Equal(t, meta, page.one(t, named("noscript")).all(named("meta")))
			}
			toggle := page.one(t, with("id", "toggle"))
			if want == "" {
				require.Equal(t, "Resume", toggle.text())
				require.Equal(t, "?", toggle.Attr["href"])
			} else {
				require.Equal(t, "Pause", toggle.text())
				require.Equal(t, "?refresh=0", toggle.Attr["href"])
			}
			hidden := page.one(t, named("form")).all(with("name", "refresh"))
			require.Len(t, hidden, map[bool]int{true: 0, false: 1}[want == "3"])
		}
	})
}

// What a proxy has put into the address, to know the visitor by, stays in it
// whichever way the visitor goes on.
func TestParametersOfOthersAreKept(t *testing.T) {
	play(t, processlock.Options{TrackHolds: true}, func(t *testing.T, s *scene) {
		s.ask("h", []any{"one"})
		time.Sleep(time.Second)
		s.ask("h", []any{"two"})
		const token = `a&b="><c>'שלום +%`
		others := url.Values{"token": {token, ""}, "addEventListener": {"x"}}
		for _, query := range []string{"", "&key=two", "&refresh=0", "&refresh=10&key=nothing+of+the+kind"} {
			page := s.html(others.Encode() + query)
			links := 0
			for _, a := range page.all(named("a")) {
				address, ok := strings.CutPrefix(a.Attr["href"], "?")
				if !ok {
					require.True(t, strings.HasPrefix(a.Attr["href"], "#"))
					continue
				}
				links++
				v, err := url.ParseQuery(address)
				require.NoError(t, err)
				for name, want := range others {
					require.Equal(t, want, v[name], "%s in %s", name, a.text())
				}
				for _, mine := range []string{"format", "key", "refresh"} {
					require.LessOrEqual(t, len(v[mine]), 1)
				}
			}
			require.GreaterOrEqual(t, links, 4)
			sent := url.Values{}
			for _, field := range page.one(t, named("form")).all(named("input")) {
				if field.Attr["name"] != "key" && field.Attr["name"] != "refresh" {
					require.Equal(t, "hidden", field.Attr["type"])
					sent.Add(field.Attr["name"], field.Attr["value"])
				}
			}
			require.Equal(t, others, sent)
		}
		lead := s.html(others.Encode()+"&key=two").one(t, with("id", "totals")).one(t, named("a"))
		require.Contains(t, lead.Attr["href"], "key=%5B%22one%22%5D&token=", "to the longest hold, which the filter leaves out")
	})
}

// They are kept if a form sends them as they are, and as far as they don't blow
// up a page that has them in each of its links.
func TestParametersOfOthersAreBounded(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		others := url.Values{"": {"no name"}, "a": {strings.Repeat("x", 10_000), "short"}, "b": {strings.Repeat("y", 3000)}, "c": {strings.Repeat("z", 3000)}, "d": {"d"}}
		for _, hidden := range hostile {
			if unprintable(hidden) {
				others.Add("e", hidden)
				others.Add(hidden, "e")
			}
		}
		w := s.get("/?" + others.Encode())
		requireSafe(t, w.Body.String())
		page := parse(t, w.Body.String())
		toggle, err := url.ParseQuery(strings.TrimPrefix(page.one(t, with("id", "toggle")).Attr["href"], "?"))
		require.NoError(t, err)
		require.Equal(t, url.Values{"a": {"short"}, "b": others["b"], "d": {"d"}, "refresh": {"0"}}, toggle)
		require.Len(t, page.one(t, named("form")).all(with("type", "hidden")), 3)

		many := strings.Repeat("p=&", 100_000)
		require.Less(t, s.get("/?"+many).Body.Len(), 200_000)
	})
}

// unprintable tells of a text whether it has a character without a glyph.
func unprintable(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) })
}
