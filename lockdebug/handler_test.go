package lockdebug_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/lockdebug"
)

func nothing(context.Context) error { return nil }

func TestMisuse(t *testing.T) {
	require.PanicsWithValue(t, "lockdebug: nil *processlock.Coordinator; for the package-level one pass processlock.Default()", func() { lockdebug.Handler(nil) })

	used := processlock.New(processlock.Options{})
	require.NoError(t, used.WithLock(t.Context(), "k", nothing))
	other := processlock.New(processlock.Options{})
	reflect.ValueOf(other).Elem().Set(reflect.ValueOf(used).Elem()) // go vet sees any other way
	require.Panics(t, func() { lockdebug.Handler(other) })
}

// The handler answers wherever it is mounted, and nothing is registered by
// itself.
func TestMount(t *testing.T) {
	h := lockdebug.Handler(new(processlock.Coordinator))
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", h)
	mux.Handle("GET /tenants/{tenant}/locks", h)
	mux.Handle("/deep/", http.StripPrefix("/deep", h))
	for _, path := range []string{"/debug/locks", "/tenants/x/locks", "/deep/down"} {
		w := get(mux, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Body.String(), "No key is held.")
	}
	require.Equal(t, http.StatusNotFound, get(http.DefaultServeMux, "/debug/locks").Code)
}

func TestMethods(t *testing.T) {
	server := httptest.NewServer(lockdebug.Handler(new(processlock.Coordinator)))
	defer server.Close()
	ask := func(method, query string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+query, nil)
		require.NoError(t, err)
		a, err := server.Client().Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		return a, string(body)
	}
	for _, query := range []string{"", "?format=json", "?format=text"} {
		got, body := ask("GET", query)
		require.Equal(t, http.StatusOK, got.StatusCode)
		require.NotEmpty(t, body)
		head, body := ask("HEAD", query)
		require.Equal(t, http.StatusOK, head.StatusCode)
		require.Empty(t, body)
		require.Equal(t, got.Header.Get("Content-Type"), head.Header.Get("Content-Type"))
		require.NotEmpty(t, head.Header.Get("Content-Length"))
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "get"} {
			a, body := ask(method, query)
			require.Equal(t, http.StatusMethodNotAllowed, a.StatusCode, method)
			require.Equal(t, "GET, HEAD", a.Header.Get("Allow"))
			require.Equal(t, "lockdebug: only GET and HEAD are served here, not "+strconv.Quote(method)+"\n", body)
		}
	}
	// A HEAD writes no body even where net/http would not drop it.
	for _, target := range []string{"/", "/?format=xml"} {
		w := httptest.NewRecorder()
		lockdebug.Handler(new(processlock.Coordinator)).ServeHTTP(w, httptest.NewRequest("HEAD", target, nil))
		require.Zero(t, w.Body.Len(), target)
	}
}

func TestBadQueries(t *testing.T) {
	h := lockdebug.Handler(new(processlock.Coordinator))
	for query, want := range map[string]string{
		"?format=xml":                   `unknown format "xml"; want html, json or text`,
		"?format=HTML":                  `unknown format "HTML"; want html, json or text`,
		"?format=<script>":              `unknown format "<script>"; want html, json or text`,
		"?format=%E2%80%AE":             `unknown format "\u202e"; want html, json or text`,
		"?refresh=-1":                   `refresh is "-1"; want whole seconds from 1 to 3600, or 0 for no refresh`,
		"?refresh=3601":                 `refresh is "3601"; want whole seconds from 1 to 3600, or 0 for no refresh`,
		"?refresh=5s":                   `refresh is "5s"; want whole seconds from 1 to 3600, or 0 for no refresh`,
		"?refresh=99999999999999999999": `refresh is "99999999999999999999"; want whole seconds from 1 to 3600, or 0 for no refresh`,
		"?key=%zz":                      `malformed query: "invalid URL escape \"%zz\""`,
	} {
		w := get(h, "/"+query)
		require.Equal(t, http.StatusBadRequest, w.Code, query)
		require.Equal(t, "lockdebug: "+want+"\n", w.Body.String())
		require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		requireGuarded(t, w.Header())
	}
	w := get(h, "/?format="+strings.Repeat("x", 10_000))
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Less(t, w.Body.Len(), 200)
	require.Equal(t, http.StatusOK, get(h, "/?token=of-a-proxy&format=&refresh=").Code)
}

func requireGuarded(t *testing.T, h http.Header) {
	t.Helper()
	require.Equal(t, "no-store", h.Get("Cache-Control"))
	require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
	require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
	require.True(t, strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; "), h.Get("Content-Security-Policy"))
	require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
	require.NotContains(t, h.Get("Content-Security-Policy"), "*")
	require.Len(t, h.Values("Content-Security-Policy"), 1)
}

func TestHeaders(t *testing.T) {
	h := lockdebug.Handler(new(processlock.Coordinator))
	for query, want := range map[string]string{
		"":             "text/html; charset=utf-8",
		"?format=html": "text/html; charset=utf-8",
		"?format=json": "application/json",
		"?format=text": "text/plain; charset=utf-8",
	} {
		w := get(h, "/"+query)
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, want, w.Header().Get("Content-Type"))
		require.Equal(t, strconv.Itoa(w.Body.Len()), w.Header().Get("Content-Length"))
		requireGuarded(t, w.Header())
	}
}

// The policy lets in the page's own style and script, which are there once
// each, and the page needs nothing that it keeps out.
func TestPolicy(t *testing.T) {
	play(t, processlock.Options{}, func(t *testing.T, s *scene) {
		busy(s)
		w := s.get("/?key=a")
		page := parse(t, w.Body.String())
		policy := w.Header().Get("Content-Security-Policy")
		for name, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
			text := page.one(t, named(name)).Text
			require.Greater(t, len(text), 1000)
			sum := sha256.Sum256([]byte(text))
			require.Contains(t, policy, directive+" 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		}
		for _, e := range page.all(func(*element) bool { return true }) {
			require.NotContains(t, []string{"iframe", "object", "embed", "img", "base"}, e.Name)
			for attr, value := range e.Attr {
				require.False(t, strings.HasPrefix(attr, "on"), "%s is a handler", attr)
				require.NotEqual(t, "style", attr)
				require.NotEqual(t, "src", attr)
				if attr == "href" && e.Name == "link" {
					require.True(t, strings.HasPrefix(value, "data:image/svg+xml,"))
				} else if attr == "href" || attr == "action" {
					require.Regexp(t, `^([?#].*)?$`, value, "not of this page")
				}
			}
		}
	})
}
