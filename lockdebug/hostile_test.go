package lockdebug_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// hostile are keys and names that try to be more than text.
var hostile = []string{
	"<script>alert(1)</script>",
	`"><svg onload=alert(1)>`,
	"</style><script>", "</title>", "</noscript>", "<!--", "]]>",
	"' onfocus='x", "javascript:alert(1)", "{{.}}", "&lt;&#0;",
	"\x00NUL", "\x1b[2J\x1b]0;title\a", "\r\nSet-Cookie: x=1", "\t\v\f\b\x7f\u0085",
	"\u202ekcolb\u202c", "\u2066\u2069\u200f\u061c", "\u200b\ufeff\u2028\u2029", "\U000e0001\U000e0041",
	"\xff\xfe\xc0\x80", "\xed\xa0\x80", "שלום עולם", "مفتاح", "鍵🔑", "e" + strings.Repeat("\u0301", 500),
	strings.Repeat("<b>", 4000), strings.Repeat("\u202e", 4000), strings.Repeat("x", 10_000), strings.Repeat("\x00", 10_000),
}

// Nothing of a key or a client's name gets out as anything but text, in any
// form, and long ones are cut.
func TestHostile(t *testing.T) {
	play(t, processlock.Options{TrackHolds: true}, func(t *testing.T, s *scene) {
		for _, h := range hostile {
			s.ask(h, []any{h})
			s.ask(h, []any{[]any{h, h}, h})
			s.ask(h, []any{map[string]string{h: h}, h})
			time.Sleep(time.Millisecond)
		}
		doc := s.json("")
		require.Equal(t, doc.Now.Keys, len(doc.Keys), "nothing is cut")
		require.GreaterOrEqual(t, len(doc.Keys), 3*len(hostile)-2)

		page := s.get("/").Body.String()
		requireSafe(t, page)
		tree := parse(t, page) // whatever broke out would make it no XML
		require.Len(t, tree.all(named("script")), 1)
		require.Len(t, tree.all(named("style")), 1)
		require.Len(t, filterName(tree.all(with("role", "row")), "tr"), 1+len(doc.Keys))
		for _, e := range tree.all(func(*element) bool { return true }) {
			require.Contains(t, strings.Fields(`html head meta title link style noscript body a header h1 form label input button
				nav span time p main section dl div dt dd h2 details summary figure figcaption i code svg path rect text
				table caption strong em thead tr th tbody td ul ol li b bdi tspan script `), orText(e.Name))
		}
		for _, code := range tree.all(with("class", "whole")) {
			require.LessOrEqual(t, len(code.text()), 2000)
		}
		require.Len(t, tree.all(with("class", "whole")), strings.Count(page, `class="whole"`))
		require.NotZero(t, strings.Count(page, `class="whole"`))

		text := s.get("/?format=text").Body.String()
		requireSafe(t, text)
		requireSafe(t, s.get("/?format=json").Body.String())
		for _, k := range doc.Keys {
			require.LessOrEqual(t, len(k.Key), 200)
			require.Equal(t, strings.HasSuffix(k.Key, "..."), k.Canonical != "")
			require.Equal(t, k.Canonical != "", k.CanonicalBytes > 0)
			require.Contains(t, text, k.Key+"\n")
			for _, p := range append(k.Holders, k.Waiters...) {
				require.LessOrEqual(t, len(p.Client), 120)
				require.NotEmpty(t, p.Client)
			}
		}
	})
}

func orText(name string) string {
	if name == "" {
		return "text"
	}
	return name
}

// requireSafe demands that text has no byte that a terminal or a browser would
// take for more than a glyph.
func requireSafe(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	for i, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) || r == utf8.RuneError {
			t.Fatalf("%q at %d: %q", r, i, text[max(0, i-60):min(len(text), i+60)])
		}
	}
}

// A filter is the visitor's own text, and comes back in the page no more than
// keys do. In the address of a link it is encoded.
func TestHostileFilter(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		s.ask("h", []any{"k"})
		for _, h := range hostile {
			page := s.html("key=" + url.QueryEscape(h))
			require.Len(t, page.all(named("script")), 1)
			shown := page.one(t, with("class", "filter")).text()
			require.LessOrEqual(t, len(shown), 120)
			requireSafe(t, shown)
			text := s.get("/?format=text&key=" + url.QueryEscape(h)).Body.String()
			requireSafe(t, text)
			require.Less(t, len(text), 500)
		}
	})
}

// Two keys that look alike, cut, are two rows.
func TestTwins(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		long := strings.Repeat("x", 10_000)
		s.ask("h", []any{long + "1"})
		s.ask("h", []any{long + "2"})
		doc := s.json("")
		require.Equal(t, doc.Keys[0].Key, doc.Keys[1].Key)
		require.NotEqual(t, doc.Keys[0].ID, doc.Keys[1].ID)
		ids := map[string]bool{}
		for _, e := range s.html("").all(has("id")) {
			require.False(t, ids[e.Attr["id"]], "two elements are %s", e.Attr["id"])
			ids[e.Attr["id"]] = true
		}
		require.True(t, ids["k"+doc.Keys[0].ID] && ids["k"+doc.Keys[1].ID])
	})
}

// A word that is read from right to left stays in its place in the key.
func TestRightToLeft(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		s.ask("h", []any{[]any{"שלום", 1}})
		s.ask("w", []any{"other", []any{"שלום", 1}})
		for _, e := range s.html("").all(named("code")) {
			if strings.Contains(e.text(), "שלום") {
				require.Equal(t, "שלום", e.one(t, named("bdi")).text())
			}
		}
		require.Len(t, s.html("").all(named("bdi")), 3, "in the totals, over the drawing and in the table")
		require.Equal(t, "שלום", s.html("").one(t, with("class", "rtl")).text())
	})
}
