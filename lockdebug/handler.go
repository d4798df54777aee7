package lockdebug

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dbx-tools/processlock"
)

// Handler serves what c's keys look like at the moment of the request, in the
// forms that the package documentation describes. Serving a request locks no
// key and changes nothing in c; each costs one [processlock.Coordinator.Snapshot].
//
// The handler answers at whatever path it is mounted, GET and HEAD only, and
// never lets an answer be stored. It does not ask who is there: guard it, see
// the package documentation. Handler panics if c is nil or a copy of a used
// Coordinator. The handler may be used by any number of goroutines at once.
func Handler(c *processlock.Coordinator) http.Handler {
	if c == nil {
		panic("lockdebug: nil *processlock.Coordinator; for the package-level one pass processlock.Default()")
	}
	c.Stats() // panics on a copy here rather than at the first visit
	return &handler{c}
}

type handler struct{ coordinator *processlock.Coordinator }

// format is one of the forms of a report.
type format struct {
	contentType string
	write       func(*bytes.Buffer, *report, query) error
}

var formats = map[string]format{
	"html": {"text/html; charset=utf-8", writePage},
	"json": {"application/json", writeJSON},
	"text": {"text/plain; charset=utf-8", writeText},
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, r, http.StatusMethodNotAllowed, "only GET and HEAD are served here, not "+strconv.QuoteToASCII(cut(r.Method, 40)))
		return
	}
	q, problem := parseQuery(r.URL.RawQuery)
	if problem != "" {
		refuse(w, r, http.StatusBadRequest, problem)
		return
	}
	f := formats[q.format]
	// The whole answer before its first byte: an error can still be told, and
	// a slow client keeps nothing waiting.
	var body bytes.Buffer
	if err := f.write(&body, newReport(h.coordinator, q.key), q); err != nil {
		refuse(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	if q.format == "html" {
		w.Header().Set("Content-Security-Policy", page().policy)
	}
	send(w, r.Method, http.StatusOK, body.Bytes())
}

// guard sets what every answer carries. The page replaces the policy by one
// that lets its own style and script in.
func guard(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer") // the filter is part of the address
	h.Set("X-Content-Type-Options", "nosniff")
}

func refuse(w http.ResponseWriter, r *http.Request, status int, reason string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	send(w, r.Method, status, []byte("lockdebug: "+reason+"\n"))
}

func send(w http.ResponseWriter, method string, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if method != http.MethodHead {
		w.Write(body) // an error is the client's leaving
	}
}

// query is what a request asks for.
type query struct {
	format  string
	key     string        // part of a key's text, as shown; "" is all keys
	refresh time.Duration // of the page; 0: it stays as it is

	// Others are the parameters that are not the handler's, such as the token of
	// a proxy in front of it: its links and its form keep them.
	Others []parameter
}

type parameter struct{ Name, Value string }

// maxOthers is how many bytes of them are kept: a page has them in every link.
const maxOthers = 4000

const (
	defaultRefresh = 3 * time.Second
	maxRefresh     = time.Hour
)

// parseQuery reads a request's query, or says what is wrong with it.
func parseQuery(raw string) (q query, problem string) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query{}, "malformed query: " + strconv.QuoteToASCII(cut(err.Error(), 200))
	}
	q = query{format: values.Get("format"), key: shown(values.Get("key")), refresh: defaultRefresh}
	if q.format == "" {
		q.format = "html"
	}
	if _, ok := formats[q.format]; !ok {
		return query{}, "unknown format " + strconv.QuoteToASCII(cut(q.format, 40)) + "; want html, json or text"
	}
	if s := values.Get("refresh"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > int(maxRefresh/time.Second) {
			return query{}, "refresh is " + strconv.QuoteToASCII(cut(s, 40)) + "; want whole seconds from 1 to 3600, or 0 for no refresh"
		}
		q.refresh = time.Duration(n) * time.Second
	}
	q.Others = others(values)
	return q, ""
}

// others returns the parameters that are other people's, as far as they are
// kept: those that are text, since a form sends nothing else unchanged.
func others(values url.Values) (kept []parameter) {
	room := maxOthers
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name == "format" || name == "key" || name == "refresh" || name == "" {
			continue
		}
		for _, value := range values[name] {
			size := len(name) + len(value) + len("&=")
			if size > room || shown(name) != name || shown(value) != value {
				continue
			}
			room -= size
			kept = append(kept, parameter{name, value})
		}
	}
	return kept
}

// Seconds is the refresh as the query spells it.
func (q query) Seconds() int { return int(q.refresh / time.Second) }

// link is the address of the same handler, relative to the page's own, for what
// q asks for.
func (q query) link() string {
	v := url.Values{}
	for _, p := range q.Others {
		v.Add(p.Name, p.Value)
	}
	if q.format != "html" {
		v.Set("format", q.format)
	}
	if q.key != "" {
		v.Set("key", q.key)
	}
	if q.refresh != defaultRefresh {
		v.Set("refresh", strconv.Itoa(q.Seconds()))
	}
	return "?" + v.Encode()
}
