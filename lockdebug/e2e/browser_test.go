package e2e_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// flags start a browser that talks to nobody but the page under test.
var flags = []chromedp.ExecAllocatorOption{
	chromedp.Flag("headless", true),
	chromedp.Flag("no-sandbox", true),
	chromedp.Flag("disable-gpu", true),
	chromedp.Flag("disable-quic", true),
	chromedp.Flag("disable-dev-shm-usage", true),
	chromedp.Flag("no-first-run", true),
	chromedp.Flag("no-default-browser-check", true),
	chromedp.Flag("disable-background-networking", true),
	chromedp.Flag("disable-component-update", true),
	chromedp.Flag("disable-default-apps", true),
	chromedp.Flag("disable-extensions", true),
	chromedp.Flag("disable-sync", true),
	chromedp.Flag("hide-scrollbars", true),
	chromedp.Flag("force-color-profile", "srgb"),
	chromedp.Flag("font-render-hinting", "none"),
}

// launch finds the browser or says how to get it, and starts it. It ends with
// the test.
func launch(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("there is no Chromium in PATH: install it, on Debian with apt-get install chromium fonts-dejavu-core fonts-liberation")
	}
	options := append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(time.Minute), // a machine under load starts it slowly
	}, flags...)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, _ := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		if err := chromedp.Cancel(browser); err != nil { // waits until its processes are gone
			t.Errorf("ending the browser: %v", err)
		}
		stop()
	})
	require.NoError(t, chromedp.Do(browser))
	return browser
}

// tab is a page of the browser, with what it did that it should not do.
type tab struct {
	context.Context
	t      *testing.T
	origin string

	mu       sync.Mutex
	complain []string // console, exceptions, violations of the policy
	requests []string
}

// open makes a tab that is to stay with the origin of address.
func open(t *testing.T, browser context.Context, address string) *tab {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	p := &tab{t: t, origin: u.Scheme + "://" + u.Host}
	ctx, done := chromedp.NewContext(browser, chromedp.WithListener(p.listen))
	t.Cleanup(done)
	require.NoError(t, chromedp.Do(ctx))
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(stop)
	p.Context = ctx
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		text := "console." + e.Type.String()
		for _, a := range e.Args {
			text += " " + string(a.Value) + a.Description
		}
		p.complain = append(p.complain, text)
	case *runtime.EventExceptionThrown:
		p.complain = append(p.complain, "exception: "+e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case *log.EventEntryAdded:
		p.complain = append(p.complain, "log: "+e.Entry.Text+" "+e.Entry.URL)
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p, actions...))
}

// call sends a command of the browser's protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) {
	p.t.Helper()
	_, err := chromedp.Call(p, command, params)
	require.NoError(p.t, err)
}

// eval returns the value of a script's expression.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return v
}

// until waits until a script's expression is true. It asks from here, since the
// page's policy forbids it to compile a script that asks; one that is being left
// for the next answers with an error.
func (p *tab) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		yes, err := chromedp.Run(p, chromedp.Evaluate[bool](expression, chromedp.EvalAwaitPromise))
		if err == nil && yes {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("not within a minute: %s (%v)", expression, err)
		}
		p.run(chromedp.Sleep(20 * time.Millisecond))
	}
}

// visit loads an address.
func (p *tab) visit(address string) {
	p.t.Helper()
	p.run(chromedp.Navigate(address))
}

// refreshes waits until the page has been brought up to date n times.
func (p *tab) refreshes(n int) {
	p.t.Helper()
	for range n {
		was := eval[string](p, `document.querySelector(".when time").dateTime`)
		p.until(`document.querySelector(".when time").dateTime !== "` + was + `"`)
	}
}

// screen makes the tab a screen of that size, with a preference of colours.
func (p *tab) screen(width, height int64, scale float64, scheme string) {
	p.t.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: scale, Mobile: width < 500,
	})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// requireQuiet demands that the page has complained of nothing and asked
// nobody but its own server.
func (p *tab) requireQuiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.t, p.complain)
	require.NotEmpty(p.t, p.requests)
	for _, r := range p.requests {
		u, err := url.Parse(r)
		require.NoError(p.t, err)
		if u.Scheme == "data" {
			continue // is in the page
		}
		require.Equal(p.t, p.origin, u.Scheme+"://"+u.Host, r)
	}
}

// picture keeps a screenshot as an artifact: in LOCKDEBUG_ARTIFACTS if that is
// set, else where go test -artifacts keeps them.
func (p *tab) picture(name string, full bool) (png []byte) {
	p.t.Helper()
	take := chromedp.CaptureScreenshot()
	if full {
		take = chromedp.FullScreenshot(100)
	}
	png, err := chromedp.Run(p, take)
	require.NoError(p.t, err)
	require.NotEmpty(p.t, png)
	p.keep(name, png)
	return png
}

// keep keeps a file beside the pictures.
func (p *tab) keep(name string, content []byte) {
	p.t.Helper()
	dir := os.Getenv("LOCKDEBUG_ARTIFACTS")
	if dir == "" {
		dir = p.t.ArtifactDir()
	}
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
}
