package e2e_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/lockdebug"
	"github.com/dbx-tools/processlock/lockdebug/e2e/internal/shop"
)

// stage runs a scene in a bubble, where minutes pass at once, and returns what
// the handler answers at its end.
func stage(t *testing.T, target string) *http.Response {
	t.Helper()
	var answer *http.Response
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(14*time.Hour + 2*time.Minute + 21*time.Second)
		c := processlock.New(processlock.Options{TrackHolds: true})
		ctx := processlock.WithCoordinator(t.Context(), c)
		over := make(chan struct{})
		wait := func(context.Context) error { <-over; return nil }
		as := func(client string, work func(ctx context.Context) error) {
			t.Helper()
			go func() { _ = processlock.Worker(client, work)(ctx) }() // it ends with the scene
			synctest.Wait()
		}
		ship := func(order int) func(context.Context) error {
			return func(ctx context.Context) error { return shop.Ship(ctx, order, wait) }
		}
		cancel := func(order int) func(context.Context) error {
			return func(ctx context.Context) error { return shop.Cancel(ctx, order, wait) }
		}
		settle := func(account string) func(context.Context) error {
			return func(ctx context.Context) error { return shop.Settle(ctx, account, wait) }
		}
		transfer := func(from, to string) func(context.Context) error {
			return func(ctx context.Context) error { return shop.Transfer(ctx, from, to, wait) }
		}

		// A day's work, over by now: some of it waited, some gave up.
		for i := range 18_204 {
			require.NoError(t, shop.Ship(ctx, i, func(context.Context) error { return nil }))
		}
		for i := range 312 {
			release := make(chan struct{})
			as("worker-1", func(ctx context.Context) error {
				return shop.Ship(ctx, i, func(context.Context) error { <-release; return nil })
			})
			hurried, give := context.WithCancel(ctx)
			go func() { _ = shop.Cancel(hurried, i, func(context.Context) error { return nil }) }()
			synctest.Wait()
			time.Sleep(9 * time.Millisecond)
			if i%20 == 0 {
				give()
				synctest.Wait()
			}
			close(release)
			synctest.Wait()
			give()
		}

		as("worker-3", ship(8841))
		time.Sleep(14 * time.Second)
		as("worker-5", ship(8841))
		time.Sleep(97 * time.Second)
		as("desk-2", cancel(8841))
		time.Sleep(61 * time.Second)
		as("worker-7", ship(8841))
		time.Sleep(42 * time.Second)
		as("settler-1", settle("alice"))
		time.Sleep(4300 * time.Millisecond)
		as("transfer-2", transfer("bob", "alice"))
		time.Sleep(7200 * time.Millisecond)
		as("worker-1", ship(8841))
		as("transfer-4", transfer("carol", "bob"))
		time.Sleep(1400 * time.Millisecond)
		as("settler-5", settle("alice"))
		as("settler-6", settle("carol"))
		time.Sleep(9800 * time.Millisecond)
		as("desk-1", cancel(8841))
		for _, client := range []string{"shelf-1", "shelf-2", "shelf-4"} {
			as(client, func(ctx context.Context) error { return shop.Price(ctx, "summer", wait) })
			time.Sleep(310 * time.Millisecond)
		}
		as("buyer", func(ctx context.Context) error { return shop.Reprice(ctx, "summer", wait) })
		time.Sleep(940 * time.Millisecond)
		as("shelf-3", func(ctx context.Context) error { return shop.Price(ctx, "summer", wait) })
		time.Sleep(390 * time.Millisecond)
		for i, tenant := range []string{"acme", "globex", "initech", "umbrella"} {
			as(fmt.Sprint("render-", i+1), func(ctx context.Context) error {
				return shop.Render(ctx, tenant, 2041+7*i, wait)
			})
			time.Sleep(53 * time.Millisecond)
		}
		as("worker-8", ship(9017))
		time.Sleep(18 * time.Millisecond)

		w := httptest.NewRecorder()
		lockdebug.Handler(c).ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		answer = w.Result()
		close(over)
	})
	return answer
}

// served serves one answer for ever.
func served(t *testing.T, answer *http.Response) *httptest.Server {
	body := new(strings.Builder)
	require.NoError(t, answer.Write(body))
	_, content, found := strings.Cut(body.String(), "\r\n\r\n")
	require.True(t, found)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		fmt.Fprint(w, content)
	}))
	t.Cleanup(s.Close)
	return s
}

// contrast lists the texts that stand out from what is behind them by less than
// 4.5 to 1.
const contrast = `(() => {
	const rgb = (c) => c.match(/[\d.]+/g).map(Number);
	const light = (c) => {
		const [r, g, b] = rgb(c).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		const shape = e.closest("a.tab")?.querySelector("rect") ?? e.closest("svg.box")?.querySelector(".frame");
		if (shape) return getComputedStyle(shape).fill;
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor;
			if (rgb(c)[3] !== 0) return c;
		}
	};
	const weak = [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let seen = 0;
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		if (!texts.currentNode.data.trim() || !e.getClientRects().length || e.closest("title, script")) continue;
		seen++;
		const style = getComputedStyle(e);
		const [a, b] = [light(e.namespaceURI.endsWith("svg") ? style.fill : style.color), light(behind(e))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) weak.push(ratio.toFixed(2) + " " + texts.currentNode.data.trim());
	}
	if (seen < 50) weak.push("only " + seen + " texts");
	return weak;
})()`

// texts are all that the page shows to be read, but for what is folded.
const texts = `(() => {
	const shown = [], all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (all.nextNode()) {
		const e = all.currentNode.parentElement, text = all.currentNode.data.replace(/\s+/g, " ").trim();
		if (text && e.getClientRects().length && !e.closest("title, script")) shown.push(text);
	}
	return shown;
})()`

// caption is what screenshot.txt has of a picture: which one it is, and the texts
// of the page that it was taken of.
func caption(png []byte, texts []string) string {
	return fmt.Sprintf("sha256 %x\n%s\n", sha256.Sum256(png), strings.Join(texts, "\n"))
}

// The pictures of a scene: a wide window, a phone, and both by night. The
// README's is a copy of screenshot.png, of which screenshot.txt says what it
// shows, so that it is known when the page has changed since.
func TestPictures(t *testing.T) {
	s := served(t, stage(t, "/debug/locks"))
	browser := launch(t)
	for _, view := range []struct {
		name          string
		width, height int64
		scale         float64
		scheme        string
	}{
		{"screenshot", 1280, 1041, 1.5, "light"},
		{"desktop", 1280, 860, 2, "light"},
		{"desktop-dark", 1280, 860, 2, "dark"},
		{"phone", 390, 844, 2, "light"},
		{"phone-dark", 390, 844, 2, "dark"},
	} {
		t.Run(view.name, func(t *testing.T) {
			p := open(t, browser, s.URL)
			p.screen(view.width, view.height, view.scale, view.scheme)
			p.visit(s.URL)
			require.Equal(t, view.scheme == "dark", eval[bool](p, `getComputedStyle(document.body).backgroundColor.match(/\d+/g)[0] < 128`))
			require.LessOrEqual(t, eval[int64](p, `document.documentElement.scrollWidth`), view.width, "the page can be scrolled sideways")
			require.Empty(t, eval[[]string](p, contrast))
			png := p.picture(view.name+".png", view.name != "screenshot")
			if view.name == "screenshot" {
				now := eval[[]string](p, texts)
				p.keep("screenshot.txt", []byte(caption(png, now)))
				png, err := os.ReadFile("../screenshot.png")
				require.NoError(t, err)
				was, err := os.ReadFile("../screenshot.txt")
				require.NoError(t, err)
				require.Equal(t, string(was), caption(png, now), "the README's picture is of another page: take it anew, with "+
					"LOCKDEBUG_ARTIFACTS=/some/folder go test -run TestPictures, and copy screenshot.png and screenshot.txt from there to lockdebug")
			}
			p.requireQuiet()
		})
	}
}
