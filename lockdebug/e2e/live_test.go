package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/lockdebug"
)

// live is a coordinator that is at work while its page is looked at.
type live struct {
	*processlock.Coordinator
	*httptest.Server
	t     *testing.T
	ctx   context.Context
	calls sync.WaitGroup

	looks atomic.Int64 // requests for the page
	down  atomic.Bool  // the page answers 503
	login atomic.Bool  // it answers with another page
	hangs atomic.Bool  // it does not answer
	left  atomic.Int64 // requests that their sender gave up then
}

// hostile are keys that try to be more than text.
var hostile = []string{
	"<script>window.hacked = 1</script>",
	`"><img src=x onerror="window.hacked = 1">`,
	"</style></title></noscript></svg><script>window.hacked = 1</script>",
	"\u202eright to left\u202c", "\x00\x01\x1b[2J", "שלום", strings.Repeat("long ", 2000), strings.Repeat("W", 10_000), "e" + strings.Repeat("\u0301", 90),
}

// serve starts a coordinator whose keys are held until the test ends.
func serve(t *testing.T) *live {
	t.Helper()
	l := &live{Coordinator: processlock.New(processlock.Options{TrackHolds: true}), t: t}
	ctx, stop := context.WithCancel(context.Background())
	l.ctx = ctx
	h := lockdebug.Handler(l.Coordinator)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/locks" {
			http.NotFound(w, r)
			return
		}
		l.looks.Add(1)
		if l.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		if l.hangs.Load() {
			<-r.Context().Done()
			l.left.Add(1)
			return
		}
		if l.login.Load() {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><title>Sign in</title><form></form>")
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		stop()
		l.calls.Wait()
		l.Server.Close()
	})
	return l
}

func (l *live) page(query string) string { return l.URL + "/debug/locks" + query }

// hold has client hold a key, or wait for it; nested keys are taken one inside
// the other. It returns when the last is held or waited for.
func (l *live) hold(client string, keys ...any) {
	l.t.Helper()
	before := l.Stats()
	l.calls.Go(func() {
		_ = processlock.Worker(client, func(ctx context.Context) error { return l.nest(ctx, keys) })(processlock.WithCoordinator(l.ctx, l.Coordinator))
	})
	for {
		s := l.Stats()
		if s.Waiting > before.Waiting || s.Held == before.Held+int64(len(keys)) {
			return
		}
		runtime.Gosched()
	}
}

func (l *live) nest(ctx context.Context, keys []any) error {
	return l.WithLock(ctx, keys[0], func(ctx context.Context) error {
		if len(keys) > 1 {
			return l.nest(ctx, keys[1:])
		}
		<-ctx.Done()
		return nil
	})
}

// churn keeps keys changing hands, with waits, until the test ends.
func (l *live) churn() {
	for i := range 8 {
		l.calls.Go(func() {
			for n := 0; l.ctx.Err() == nil; n++ {
				_ = l.WithLock(l.ctx, []any{"busy", n % 3}, func(ctx context.Context) error {
					return l.WithLock(ctx, []any{"inner", i % 2}, func(context.Context) error {
						for range 100_000 {
							_ = n
						}
						return nil
					})
				})
			}
		})
	}
}

// crowd holds n keys, half of them with a waiter.
func (l *live) crowd(n int) {
	for i := range n {
		l.hold(fmt.Sprint("holder-", i), []any{"order", i})
		if i%2 == 0 {
			l.hold(fmt.Sprint("waiter-", i), []any{"order", i})
		}
	}
}

// clipped lists the keys of which a part is cut off at their right.
const clipped = `[...document.querySelectorAll(".key, .holding, figcaption")].filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth).map((e) => e.textContent.slice(0, 80))`

func TestPageIsQuietUnderHostileKeysAndContention(t *testing.T) {
	l := serve(t)
	for _, h := range hostile {
		l.hold(h, h)
		l.hold(h, []any{h, 1}, h)
		l.hold(h, []any{h, 1})
	}
	l.churn()
	browser := launch(t)
	p := open(t, browser, l.page(""))
	p.screen(1280, 900, 1, "light")
	p.visit(l.page("?refresh=1"))
	p.refreshes(3)
	require.False(t, eval[bool](p, `"hacked" in window`))
	require.Equal(t, 1, eval[int](p, `document.scripts.length`))
	require.Zero(t, eval[int](p, `document.images.length`))
	for _, h := range hostile {
		k := processlock.MustKey(h)
		require.True(t, eval[bool](p, fmt.Sprintf(`[...document.querySelectorAll("tbody .key")].some(e => e.textContent === %q)`, k.String())),
			"the text of the key is what the page shows: %s", k)
	}
	require.GreaterOrEqual(t, eval[int](p, `document.querySelectorAll("details .whole").length`), 3)
	require.True(t, eval[bool](p, `document.documentElement.scrollWidth <= innerWidth`), "the page can be scrolled sideways")
	require.Empty(t, eval[[]string](p, clipped))
	p.picture("hostile.png", true)

	p.screen(390, 844, 2, "dark")
	p.refreshes(1)
	require.Equal(t, 390, eval[int](p, `innerWidth`))
	require.True(t, eval[bool](p, `document.documentElement.scrollWidth <= innerWidth`), "the page can be scrolled sideways on a phone")
	require.Empty(t, eval[[]string](p, clipped))
	p.picture("hostile-phone.png", true)
	p.requireQuiet()
}
