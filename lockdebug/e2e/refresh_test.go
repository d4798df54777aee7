package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

const rows = `document.querySelectorAll("tbody tr").length`

// The page refreshes itself, without loading anew, and what a reader has done
// to it stays: the filter and its caret, scroll, focus, selection, and what is
// unfolded.
func TestRefreshKeepsTheReadersPlace(t *testing.T) {
	l := serve(t)
	l.crowd(60)
	for range 9 {
		l.hold("late", []any{"order", 59})
	}
	browser := launch(t)
	p := open(t, browser, l.page(""))
	p.screen(1280, 800, 1, "light")
	p.visit(l.page("?refresh=1"))
	require.Equal(t, 60, eval[int](p, rows))
	eval[bool](p, `window.same = true`) // gone after a reload

	t.Run("scroll, focus and what is unfolded", func(t *testing.T) {
		p.t = t
		eval[bool](p, `(() => { const d = [...document.querySelectorAll("details")].find(d => d.id.startsWith("rest-")); d.open = true; d.querySelector("summary").focus(); d.scrollIntoView(); window.unfolded = d; return true })()`)
		y := eval[float64](p, `scrollY`)
		require.Greater(t, y, 500.0)
		p.refreshes(2)
		require.Equal(t, y, eval[float64](p, `scrollY`))
		require.True(t, eval[bool](p, `unfolded.isConnected && unfolded.open`))
		require.True(t, eval[bool](p, `document.activeElement === unfolded.querySelector("summary")`))
	})

	t.Run("selection", func(t *testing.T) {
		p.t = t
		require.Equal(t, `"order",2`, eval[string](p, `(() => {
			const row = [...document.querySelectorAll("tbody tr")].find((r) => r.querySelector(".key").textContent === '["order",2]');
			window.age = row.querySelector(".waiters .age").firstChild;
			window.aged = age.data;
			const text = row.querySelector(".key").firstChild;
			getSelection().setBaseAndExtent(text, 1, text, text.length - 1);
			return getSelection().toString();
		})()`))
		p.refreshes(2)
		require.Equal(t, `"order",2`, eval[string](p, `getSelection().toString()`))
		require.True(t, eval[bool](p, `age.isConnected && age.data !== aged`), "the row has changed meanwhile")
	})

	t.Run("news come in", func(t *testing.T) {
		p.t = t
		y := eval[float64](p, `scrollY`)
		l.hold("newcomer", "fresh")
		p.until(`document.querySelector("#keys").textContent.includes("newcomer")`)
		require.Equal(t, 61, eval[int](p, rows))
		require.InDelta(t, y, eval[float64](p, `scrollY`), 1)
		require.True(t, eval[bool](p, `document.activeElement === unfolded.querySelector("summary")`))
	})

	t.Run("a row that moves", func(t *testing.T) {
		p.t = t
		long := strings.Repeat("long", 3000)
		l.hold("h", long)
		p.until(`!!document.querySelector("tbody details[id^=whole]")`)
		before := eval[int](p, `(() => { window.moved = document.querySelector("tbody details[id^=whole]"); moved.querySelector("summary").focus(); return moved.closest("tr").rowIndex })()`)
		l.hold("w", long)
		p.until(fmt.Sprintf(`moved.closest("tr").rowIndex < %d`, before))
		require.True(t, eval[bool](p, `moved.isConnected && document.activeElement === moved.querySelector("summary")`))
	})

	t.Run("filter", func(t *testing.T) {
		p.t = t
		p.run(chromedp.Focus(chromedp.CSS("#filter")), chromedp.SendKeys(chromedp.CSS("#filter"), "order\",5"))
		p.until(rows + ` === 11`) // 5, 50 to 59
		require.Contains(t, eval[string](p, `location.search`), "key=order%22%2C5")
		p.run(chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
		p.refreshes(2)
		require.Equal(t, 11, eval[int](p, rows))
		require.Equal(t, `order",5`, eval[string](p, `document.activeElement.value`))
		require.Equal(t, 6, eval[int](p, `document.activeElement.selectionStart`))
		require.Contains(t, eval[string](p, `document.querySelector("#links a:nth-of-type(3)").href`), "key=order", "links follow the filter")
		p.run(chromedp.KeyEvent(kb.Enter))
		p.refreshes(1)
		require.Equal(t, 11, eval[int](p, rows))
	})

	t.Run("pause", func(t *testing.T) {
		p.t = t
		p.run(chromedp.Click(chromedp.CSS("#toggle")))
		p.until(`document.querySelector("#toggle").textContent === "Resume"`)
		clicked := l.looks.Load()
		looks := clicked
		for still := false; !still; still = l.looks.Load() == looks {
			looks = l.looks.Load()
			p.run(chromedp.Sleep(3500 * time.Millisecond)) // a refresh would be due three times
		}
		require.LessOrEqual(t, looks, clicked+1, "but for one that the click has ended, of which the server may learn late")
		require.Equal(t, 11, eval[int](p, rows))
		p.run(chromedp.Click(chromedp.CSS("#again")))
		for l.looks.Load() == looks {
			p.run(chromedp.Sleep(20 * time.Millisecond)) // polls what it waits for
		}
		p.run(chromedp.Click(chromedp.CSS("#toggle")))
		p.until(`document.querySelector("#toggle").textContent === "Pause"`)
		p.refreshes(1)
	})
	p.t = t
	require.True(t, eval[bool](p, `window.same`))
	p.requireQuiet()
}

// While the server doesn't answer the page says so and stays as it was; then it
// goes on by itself. The browser itself complains of the answers.
func TestServerThatIsDown(t *testing.T) {
	l := serve(t)
	l.crowd(4)
	browser := launch(t)
	p := open(t, browser, l.page(""))
	p.visit(l.page("?refresh=1"))
	l.down.Store(true)
	p.until(`document.querySelector("#trouble").textContent === "This is not up to date: the server answers 503."`)
	require.Equal(t, 4, eval[int](p, rows))
	l.down.Store(false)
	p.until(`document.querySelector("#trouble").textContent === ""`)
	p.refreshes(1)

	l.login.Store(true) // as a proxy does once the session is over
	p.until(`document.querySelector("#trouble").textContent === "This is not up to date: the server answers with another page."`)
	require.Equal(t, 4, eval[int](p, rows))
	l.login.Store(false)
	p.until(`document.querySelector("#trouble").textContent === ""`)
	p.refreshes(1)
}

// A server that doesn't answer at all is given up after a while, and said so; then
// the page goes on by itself.
func TestServerThatHangs(t *testing.T) {
	l := serve(t)
	l.crowd(4)
	browser := launch(t)
	p := open(t, browser, l.page(""))
	p.visit(l.page("?refresh=1"))
	began := time.Now() // of a request that hangs it is known that it is later
	p.refreshes(1)
	l.hangs.Store(true)
	p.until(`document.querySelector("#trouble").textContent === "This is not up to date: the server takes too long."`)
	require.GreaterOrEqual(t, time.Since(began), 10*time.Second, "a busy server is given 15 s")
	require.Equal(t, 4, eval[int](p, rows))
	for l.left.Load() == 0 {
		p.run(chromedp.Sleep(20 * time.Millisecond)) // polls what it waits for
	}
	l.hangs.Store(false)
	p.until(`document.querySelector("#trouble").textContent === ""`)
	p.refreshes(1)
	p.requireQuiet()
}

// What a proxy in front of the page has put into its address is still there when
// the reader has clicked and filtered, with and without script, though it has the
// names of what a form is made of.
func TestParametersOfOthers(t *testing.T) {
	const others = "?token=a%26b&addEventListener=1&submit=2&action=3&elements=4&id=5&refresh=0"
	for _, script := range []bool{true, false} {
		t.Run(fmt.Sprintf("script=%t", script), func(t *testing.T) {
			l := serve(t)
			l.crowd(20)
			browser := launch(t)
			p := open(t, browser, l.page(""))
			call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script})
			p.visit(l.page(others))
			require.Equal(t, script, eval[bool](p, `document.documentElement.classList.contains("scripted")`))
			kept := func() {
				t.Helper()
				require.Equal(t, []string{"a&b", "1", "2", "3", "4", "5"}, eval[[]string](p,
					`["token", "addEventListener", "submit", "action", "elements", "id"].map((name) => new URLSearchParams(location.search).get(name))`))
			}
			p.run(chromedp.Click(chromedp.CSS("#toggle")))
			p.until(`document.readyState === "complete" && document.querySelector("#toggle")?.textContent === "Pause"`)
			kept()
			p.run(chromedp.Click(chromedp.CSS("#toggle")))
			p.until(`document.readyState === "complete" && document.querySelector("#toggle")?.textContent === "Resume"`)
			kept()
			p.run(chromedp.SendKeys(chromedp.CSS("#filter"), "order\",1"+kb.Enter))
			p.until(`document.readyState === "complete" && ` + rows + ` === 11`) // 1, 10 to 19
			kept()
			require.Equal(t, "0", eval[string](p, `new URLSearchParams(location.search).get("refresh")`))
			p.requireQuiet()
		})
	}
}

// A page that is out of sight asks for nothing, and is brought up to date as soon
// as it is in sight again.
func TestHiddenPage(t *testing.T) {
	l := serve(t)
	l.crowd(1)
	browser := launch(t)
	p := open(t, browser, l.page(""))
	p.visit(l.page("?refresh=1"))
	show := func(state bool) {
		eval[bool](p, fmt.Sprintf(`(() => { Object.defineProperty(document, "hidden", { value: %t, configurable: true }); return document.dispatchEvent(new Event("visibilitychange")) })()`, !state))
	}
	p.refreshes(1)
	show(false)
	looks := l.looks.Load()
	eval[bool](p, `document.querySelector("#again").click() ?? true`) // one that comes back while it is out of sight
	p.run(chromedp.Sleep(5500 * time.Millisecond))                    // a refresh would be due five times
	require.LessOrEqual(t, l.looks.Load(), looks+2, "but for that, and one that was under way")
	show(true)
	p.refreshes(2)
	p.requireQuiet()
}

// Without script: the page loads anew by itself, and its form and links do the
// rest.
func TestWithoutScript(t *testing.T) {
	l := serve(t)
	l.crowd(20)
	browser := launch(t)
	p := open(t, browser, l.page(""))
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	looked := func(n int64, do ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		looks := l.looks.Load()
		p.run(do...)
		for l.looks.Load() < looks+n {
			p.run(chromedp.Sleep(50 * time.Millisecond)) // polls what it waits for
		}
	}
	p.visit(l.page("?refresh=3600")) // it stays while it is looked at
	require.Equal(t, 20, eval[int](p, rows))
	require.False(t, eval[bool](p, `document.documentElement.classList.contains("scripted")`))

	p.run(chromedp.Click(chromedp.CSS("#toggle")))
	p.until(`document.readyState === "complete" && document.querySelector("#toggle")?.textContent === "Resume"`)
	p.run(chromedp.SendKeys(chromedp.CSS("#filter"), "order\",1"+kb.Enter))
	p.until(`document.readyState === "complete" && ` + rows + ` === 11`) // 1, 10 to 19
	require.Contains(t, eval[string](p, `location.search`), "refresh=0", "the form keeps the refresh")
	require.Equal(t, `order",1`, eval[string](p, `document.querySelector("#filter").value`))
	looked(1, chromedp.Click(chromedp.CSS("#again")))
	p.until(`document.readyState === "complete" && ` + rows + ` === 11`)

	p.visit(l.page("?refresh=1"))
	looked(2)
	p.requireQuiet()
}
