package lockdebug_test

import (
	"net/url"
	"strings"
	"testing"

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
