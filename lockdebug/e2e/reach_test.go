package e2e_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// Everything that can be clicked is reached with the keyboard, in order, and
// seen when it is.
func TestKeyboard(t *testing.T) {
	l := serve(t)
	l.hold("a", "root")
	l.hold("b", "next", "root")
	for range 8 {
		l.hold("c", "next")
	}
	browser := launch(t)
	p := open(t, browser, l.page(""))
	p.visit(l.page("?refresh=0"))
	reached := map[string]bool{}
	for range eval[int](p, `[...document.querySelectorAll("a, button, input, summary, [tabindex='0']")].filter((e) => e.checkVisibility()).length`) {
		p.run(chromedp.KeyEvent(kb.Tab))
		at := eval[string](p, `(() => { const e = document.activeElement; return e.id.replace(/-.*/, "-") || e.getAttribute("class") || e.localName })()`)
		reached[at] = true
		require.True(t, eval[bool](p, `(() => {
			const e = document.activeElement, r = e.getBoundingClientRect(), shape = e.querySelector(":scope > rect");
			const ring = shape ? getComputedStyle(shape).stroke !== "none" : getComputedStyle(e).outlineStyle !== "none";
			return e.matches(":focus-visible") && r.width > 0 && r.right > 0 && (ring || e.matches(".skip"));
		})()`), "%s is not seen to have the focus", at)
	}
	for _, want := range []string{"skip", "filter", "toggle", "scroll", "tab queue", "summary", "a"} {
		require.True(t, reached[want], "%s is not reached: %v", want, reached)
	}
	p.requireQuiet()
}

// A screen reader is told of a table with headers at any width, though on a
// phone it is laid out as a list.
func TestAccessibilityTree(t *testing.T) {
	l := serve(t)
	l.crowd(3)
	browser := launch(t)
	p := open(t, browser, l.page(""))
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			p.t = t
			p.screen(width, 800, 1, "light")
			p.visit(l.page("?refresh=0"))
			stacked := eval[bool](p, `document.querySelector("tbody th").getBoundingClientRect().left === document.querySelector("tbody td").getBoundingClientRect().left`)
			require.Equal(t, width < 500, stacked)
			tree, err := chromedp.Call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
			require.NoError(t, err)
			named := map[string][]string{}
			for _, n := range tree.Nodes {
				if n.Role == nil || n.Ignored {
					continue
				}
				name := ""
				if n.Name != nil {
					name = fmt.Sprint(n.Name.Value)
				}
				named[string(n.Role.Value)] = append(named[string(n.Role.Value)], name)
			}
			require.Len(t, named[`"table"`], 1, named)
			require.Contains(t, named[`"table"`][0], "Keys, longest wait first")
			require.Equal(t, []string{`"Key"`, `"Longest wait"`, `"Held by"`, `"Waiting, in order"`}, named[`"columnheader"`])
			require.Len(t, named[`"rowheader"`], 3)
			require.Len(t, named[`"row"`], 4)
			require.Len(t, named[`"search"`], 1)
			require.Equal(t, []string{`"Filter"`}, named[`"searchbox"`])
		})
	}
}
