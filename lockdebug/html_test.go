package lockdebug_test

import (
	"encoding/xml"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// element is an element of the page. What has no Name is text.
type element struct {
	Name     string
	Attr     map[string]string
	Text     string
	Children []*element
}

var raw = regexp.MustCompile(`(?s)<(style|script)>(.*?)</(style|script)>`)

// parse reads the page as strictly as XML allows: every tag closed, in order,
// every attribute quoted. Style and script, which aren't XML, are put back
// afterwards.
func parse(t *testing.T, page string) *element {
	t.Helper()
	texts := map[string]string{}
	page = raw.ReplaceAllStringFunc(page, func(s string) string {
		m := raw.FindStringSubmatch(s)
		require.Equal(t, m[1], m[3])
		require.NotContains(t, texts, m[1], "twice")
		texts[m[1]] = m[2]
		return "<" + m[1] + "></" + m[1] + ">"
	})
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict = false
	d.AutoClose = []string{"meta", "link", "input"}
	root := &element{}
	stack := []*element{root}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		top := stack[len(stack)-1]
		switch k := token.(type) {
		case xml.StartElement:
			e := &element{Name: k.Name.Local, Attr: map[string]string{}, Text: texts[k.Name.Local]}
			for _, a := range k.Attr {
				require.NotContains(t, e.Attr, a.Name.Local)
				e.Attr[a.Name.Local] = a.Value
			}
			top.Children = append(top.Children, e)
			stack = append(stack, e)
		case xml.EndElement:
			require.Equal(t, top.Name, k.Name.Local)
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.Children = append(top.Children, &element{Text: string(k)})
		}
	}
	require.Len(t, stack, 1, "unclosed %s", stack[len(stack)-1].Name)
	return root
}

// all returns what matches below e, in order.
func (e *element) all(match func(*element) bool) []*element {
	var found []*element
	for _, c := range e.Children {
		if match(c) {
			found = append(found, c)
		}
		found = append(found, c.all(match)...)
	}
	return found
}

// named and with are matches by name, and by an attribute and one of its words.
func named(name string) func(*element) bool {
	return func(e *element) bool { return e.Name == name }
}

func with(attr, word string) func(*element) bool {
	return func(e *element) bool {
		return slices.Contains(strings.Fields(e.Attr[attr]), word)
	}
}

func has(attr string) func(*element) bool {
	return func(e *element) bool { _, ok := e.Attr[attr]; return ok }
}

// one is the only match.
func (e *element) one(t *testing.T, match func(*element) bool) *element {
	t.Helper()
	found := e.all(match)
	require.Len(t, found, 1)
	return found[0]
}

// text is all text in e.
func (e *element) text() string {
	if e.Name == "" {
		return e.Text
	}
	var b strings.Builder
	for _, c := range e.Children {
		b.WriteString(c.text())
	}
	return b.String()
}

func (s *scene) html(query string) *element {
	s.Helper()
	w := s.get("/?" + query)
	require.Equal(s, 200, w.Code, w.Body)
	return parse(s.T, w.Body.String())
}
