package lockdebug_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/lockdebug"
)

// The handler goes onto a mux, behind whatever tells operators from others.
func ExampleHandler() {
	locks := processlock.New(processlock.Options{TrackHolds: true})
	operatorsOnly := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, password, ok := r.BasicAuth(); !ok || password != "the operators' own" {
				w.Header().Set("WWW-Authenticate", `Basic realm="operators"`)
				http.Error(w, "operators only", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", operatorsOnly(lockdebug.Handler(locks)))

	visit := func(password string) int {
		r := httptest.NewRequest("GET", "/debug/locks?format=text", nil)
		r.SetBasicAuth("op", password)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code
	}
	err := locks.WithLock(context.Background(), []any{"invoice", 7}, func(ctx context.Context) error {
		fmt.Println(visit("a guess"), visit("the operators' own"))
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 401 200
}
