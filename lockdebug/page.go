package lockdebug

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"sync"
	"time"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// shownChains is how many chains are in sight before the rest is unfolded.
const shownChains = 3

// document is the page as parsed, and the policy under which its style and
// script run: theirs is the only text that a browser takes for either.
type document struct {
	template *template.Template
	policy   string
}

// page is made at the first visit: importing the package costs nothing.
var page = sync.OnceValue(func() document {
	t := template.New("page").Funcs(template.FuncMap{
		"count":  func(n any) string { return countAny(n) },
		"plural": plural,
		"runs":   runs,
		"from":   func(i int, w []waiter) []waiter { return w[min(i, len(w)):] },
		"to":     func(i int, w []waiter) []waiter { return w[:min(i, len(w))] },
		"add":    func(a, b int) int { return a + b },
	})
	return document{
		template: template.Must(t.Parse(pageHTML)),
		policy: "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'; img-src data:; " +
			"style-src '" + digest(pageCSS) + "'; script-src '" + digest(pageJS) + "'",
	}
})

// digest is how a policy names a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// countAny is count for a template, which has ints and int64s.
func countAny(n any) string {
	if n, ok := n.(int); ok {
		return count(n)
	}
	return count(n.(int64))
}

// view is what the template sees.
type view struct {
	*report
	Query  query
	Style  template.CSS
	Script template.JS

	Chains, MoreChains []*chain

	// WaitedLongest and HeldLongest lead to the keys with the longest wait and
	// hold: to their rows, or to a page that lists them.
	WaitedLongest, HeldLongest *lead

	// Addresses of this page otherwise: the key filter is kept unless they say
	// otherwise.
	Self, JSON, Text, All, Toggle string
}

// ShownWaiters is how many of a queue are in sight before the rest is unfolded.
func (view) ShownWaiters() int { return 5 }

// ShownFilter is the filter where it is not to be edited.
func (v view) ShownFilter() string { return printable(v.Filter, maxName) }

// Usual is the refresh in seconds that the address need not say.
func (view) Usual() int { return int(defaultRefresh / time.Second) }

// lead is a key and the address where its row is.
type lead struct {
	keyRef
	Address string
}

// lead leads to ref, from the page for q.
func (r *report) lead(ref *keyRef, q query) *lead {
	switch {
	case ref == nil:
		return nil
	case r.listed(*ref):
		return &lead{*ref, "#" + ref.Anchor()}
	}
	q.key = ref.Text
	return &lead{*ref, q.link()}
}

func writePage(w *bytes.Buffer, r *report, q query) error {
	v := view{
		report: r, Query: q, Style: template.CSS(pageCSS), Script: template.JS(pageJS),
		Chains: r.Chains[:min(len(r.Chains), shownChains)], MoreChains: r.Chains[min(len(r.Chains), shownChains):],
		Self: q.link(),
	}
	v.WaitedLongest, v.HeldLongest = r.lead(r.Now.WaitKey, q), r.lead(r.Now.HoldKey, q)
	other := q
	other.format = "json"
	v.JSON = other.link()
	other.format = "text"
	v.Text = other.link()
	other = q
	other.key = ""
	v.All = other.link()
	other = q
	other.refresh = 0
	if q.refresh == 0 {
		other.refresh = defaultRefresh
	}
	v.Toggle = other.link()
	return page().template.Execute(w, v)
}
