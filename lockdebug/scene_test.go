package lockdebug_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/lockdebug"
)

// scene is a coordinator in a bubble, where nothing moves between two looks:
// what two requests answer can be compared.
type scene struct {
	*testing.T
	*processlock.Coordinator
	handler http.Handler
	over    chan struct{} // closed when all who hold something are to release it
}

func play(t *testing.T, opts processlock.Options, act func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := processlock.New(opts)
		s := &scene{t, c, lockdebug.Handler(c), make(chan struct{})}
		defer func() {
			close(s.over)
			synctest.Wait()
			if held := c.Stats().Held; held != 0 {
				t.Errorf("%d holds are left", held)
			}
		}()
		act(t, s)
	})
}

// ask has client ask for keys, each inside the hold of the one before, and
// keep what it gets until the scene is over. It returns when client waits.
func (s *scene) ask(client string, keys []any, opts ...processlock.Option) {
	go func() {
		ctx, c := s.WithClient(s.Context(), client)
		defer c.Close()
		s.nest(ctx, keys, opts)
	}()
	synctest.Wait()
}

func (s *scene) nest(ctx context.Context, keys []any, opts []processlock.Option) error {
	return s.WithLock(ctx, keys[0], func(ctx context.Context) error {
		if len(keys) > 1 {
			return s.nest(ctx, keys[1:], opts)
		}
		<-s.over
		return nil
	}, opts...)
}

func (s *scene) get(target string) *httptest.ResponseRecorder {
	s.Helper()
	return get(s.handler, target)
}

func get(h http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

// document is the JSON form as its documentation has it.
type document struct {
	Taken  time.Time
	Filter string
	Now    struct {
		Keys, Holders, Waiters int
		WaitedFor              int      `json:"keys_waited_for"`
		LongestWait            *float64 `json:"longest_wait_seconds"`
		LongestHold            *float64 `json:"longest_hold_seconds"`
		WaitKey                *name    `json:"longest_wait_key"`
		HoldKey                *name    `json:"longest_hold_key"`
		Unknown                int      `json:"holders_since_unknown"`
	}
	Counters struct {
		Acquired, Waited, Canceled, Unavailable, Deadlocks, Closed, Lost int
		WaitTime                                                         float64 `json:"wait_seconds"`
	}
	Matching int `json:"keys_matching"`
	Cut      int `json:"keys_cut"`
	Keys     []struct {
		name
		Canonical      string
		CanonicalBytes int      `json:"canonical_bytes"`
		LongestWait    *float64 `json:"longest_wait_seconds"`
		Holders        []person
		HoldersCut     int `json:"holders_cut"`
		Waiters        []person
		WaitersCut     int `json:"waiters_cut"`
	}
	Chains []struct {
		Keys        []name
		KeysCut     int `json:"keys_cut"`
		Roots       []name
		Waiters     int
		LongestWait *float64 `json:"longest_wait_seconds"`
		Prone       bool
	}
	ChainsCut int `json:"chains_cut"`
}

type name struct{ Key, ID string }

// person is a holder or a waiter.
type person struct {
	Client, Func, File, Mode string
	Line                     int
	Since                    *time.Time
	Held                     *float64 `json:"held_seconds"`
	Running                  *bool
	Position                 int
	Waited                   *float64 `json:"waited_seconds"`
	Holding                  []name
	HoldingCut               int `json:"holding_cut"`
}

// json reads the JSON form and demands that no field in it is unknown.
func (s *scene) json(query string) document {
	s.Helper()
	w := s.get("/?format=json" + query)
	require.Equal(s, http.StatusOK, w.Code, w.Body)
	require.Equal(s, "application/json", w.Header().Get("Content-Type"))
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	var doc document
	require.NoError(s, d.Decode(&doc))
	return doc
}

// keys are the texts of the keys listed.
func (d document) keys() []string {
	texts := []string{}
	for _, k := range d.Keys {
		texts = append(texts, k.Key)
	}
	return texts
}
