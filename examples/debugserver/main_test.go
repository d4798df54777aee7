package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

// page is what the test reads of the JSON form.
type page struct {
	Now struct {
		LongestHold float64 `json:"longest_hold_seconds"`
	}
	Counters struct{ Acquired int }
	Keys     []struct {
		Key     string
		Holders []holder
		Waiters []struct{ Client string }
	}
	Chains []struct{ Roots, Keys []struct{ Key string } }
}

type holder struct {
	Client, Func, File string
	Held               float64 `json:"held_seconds"`
}

// stuck returns the holder of the key that is held the longest, if that has
// been so for a while, several wait for it, and all that hangs together with it
// is behind it.
func (p page) stuck() (key string, by holder, ok bool) {
	for _, k := range p.Keys {
		for _, h := range k.Holders {
			if h.Held > 0.5 && h.Held == p.Now.LongestHold && len(k.Waiters) > 2 {
				key, by = k.Key, h
			}
		}
	}
	for _, c := range p.Chains {
		if slices.ContainsFunc(c.Keys, func(k struct{ Key string }) bool { return k.Key == key }) {
			return key, by, len(c.Roots) == 1 && c.Roots[0].Key == key
		}
	}
	return "", holder{}, false
}

// start runs the program and returns the address of its page.
func start(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stdout, w := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, append([]string{"-addr", "localhost:0"}, args...), w, &stderr)
		w.Close()
		ended <- code
	}()
	t.Cleanup(func() {
		stop()
		require.Zero(t, <-ended, stderr.String())
		http.DefaultClient.CloseIdleConnections()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "it said nothing")
	address, ok := strings.CutPrefix(line, "look at ")
	require.True(t, ok, line)
	return strings.TrimSpace(address)
}

func look(t *testing.T, address string) (p page) {
	t.Helper()
	a, err := http.Get(address + "?format=json")
	require.NoError(t, err)
	defer a.Body.Close()
	require.NoError(t, json.NewDecoder(a.Body).Decode(&p))
	return p
}

// With -stuck the page alone tells which order hangs, in which function, and
// that all others are behind it.
func TestStuckOrderIsFound(t *testing.T) {
	address := start(t, "-load", "20", "-stuck")
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // polls what it waits for
		key, by, ok := look(t, address).stuck()
		if ok && key == `["order",13]` { // on a busy machine another may look stuck for a moment
			require.Contains(t, by.Client, "customer-")
			require.Equal(t, "shop.go", path.Base(by.File))
			require.True(t, strings.HasSuffix(by.Func, "debugserver.(*shop).ship.func1") || by.Func == "main.(*shop).ship.func1", by.Func)
			return
		}
		require.True(t, time.Now().Before(end), "within a minute what looks stuck is %s", key)
	}
}

func TestLoadKeepsGoing(t *testing.T) {
	address := start(t, "-load", "8")
	for end := time.Now().Add(time.Minute); look(t, address).Counters.Acquired < 200; time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(end))
	}
}

func TestRequests(t *testing.T) {
	address := start(t)
	base := strings.TrimSuffix(address, "/debug/locks")
	for _, test := range []struct {
		path, want string
		code       int
	}{
		{"/orders/7/ship", "order 7: parcel 1\n", 200},
		{"/orders/7/ship", "order 7: parcel 2\n", 200},
		{"/orders/7/merge/8", "order 7 is part of order 8\n", 200},
		{"/orders/8/ship", "order 8: parcel 3\n", 200},
		{"/orders/7/ship", "order 7: parcel 1\n", 200},
		{"/orders/40/ship", "there is no such order\n", 404},
		{"/orders/x/merge/7", "there is no such order\n", 404},
		{"/orders/7/merge/-1", "there is no such order\n", 404},
	} {
		a, err := http.Post(base+test.path, "", nil)
		require.NoError(t, err)
		body, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		require.Equal(t, test.want, string(body), test.path)
		require.Equal(t, test.code, a.StatusCode)
	}
	a, err := http.Post(base+"/orders/7/merge/7", "", nil)
	require.NoError(t, err)
	body, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, http.StatusConflict, a.StatusCode)
	require.Contains(t, string(body), "processlock: deadlock")
	a, err = http.Get(address)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, http.StatusOK, a.StatusCode)
}

// No two requests are at the carrier for one order at the same time.
func TestParcelsAreCounted(t *testing.T) {
	s := newShop(processlock.New(processlock.Options{}), false)
	mux := http.NewServeMux()
	s.register(mux)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "/orders/0/ship", nil)
			if err != nil {
				panic(err)
			}
			mux.ServeHTTP(discard{}, r)
		})
	}
	all.Wait()
	require.Equal(t, 50, s.sent[0])
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func TestUsage(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-h"}, 0, "-stuck"},
		{[]string{"-load", "-1"}, 2, "debugserver: want flags only"},
		{[]string{"x"}, 2, "debugserver: want flags only"},
		{[]string{"-nope"}, 2, "flag provided but not defined"},
		{[]string{"-addr", "nowhere.invalid:1"}, 1, "debugserver: listen tcp"},
		{[]string{"-addr", taken.Addr().String()}, 1, "; choose another address with -addr"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, test.code, run(t.Context(), test.args, &stdout, &stderr), test.args)
		require.Contains(t, stderr.String(), test.want)
		require.Empty(t, stdout.String())
	}
}
