package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/dbx-tools/processlock"
)

const (
	orders     = 40
	stuckOrder = 13 // whose carrier never answers, with -stuck
)

// shop works on orders. What it does to one order it does under that order's
// key, so that two requests never ask its carrier at the same time.
type shop struct {
	locks  *processlock.Coordinator
	stuck  bool
	closed chan struct{} // when the carriers hang up

	// sent counts the parcels of each order, each guarded by its order's key.
	sent [orders]int
}

func newShop(locks *processlock.Coordinator, stuck bool) *shop {
	return &shop{locks: locks, stuck: stuck, closed: make(chan struct{})}
}

func (s *shop) register(mux *http.ServeMux) {
	mux.HandleFunc("POST /orders/{id}/ship", s.handle(s.ship))
	mux.HandleFunc("POST /orders/{id}/merge/{into}", s.handle(s.merge))
}

// close makes carriers that never answered hang up.
func (s *shop) close() { close(s.closed) }

// ship sends one more parcel of an order.
func (s *shop) ship(r *http.Request) (answer string, err error) {
	id, err := orderOf(r, "id")
	if err != nil {
		return "", err
	}
	err = s.locks.WithLock(r.Context(), []any{"order", id}, func(context.Context) error {
		s.askCarrier(id)
		s.sent[id]++
		answer = fmt.Sprintf("order %d: parcel %d\n", id, s.sent[id])
		return nil
	})
	return answer, err
}

// askCarrier takes a while and, which is the bug to be found, as long as the
// carrier likes: it has no context that would end it.
func (s *shop) askCarrier(id int) {
	answered := time.After(time.Duration(2+id%7*3) * time.Millisecond)
	if s.stuck && id == stuckOrder {
		answered = nil
	}
	select {
	case <-answered:
	case <-s.closed:
	}
}

// merge moves the parcels of one order to another. It takes the keys in the
// order in which they are named, which deadlocks with a merge the other way
// round: one of the two is told so, and its customer may ask again.
func (s *shop) merge(r *http.Request) (answer string, err error) {
	from, err := orderOf(r, "id")
	if err != nil {
		return "", err
	}
	into, err := orderOf(r, "into")
	if err != nil {
		return "", err
	}
	err = s.locks.WithLock(r.Context(), []any{"order", from}, func(ctx context.Context) error {
		return s.locks.WithLock(ctx, []any{"order", into}, func(context.Context) error {
			s.sent[into], s.sent[from] = s.sent[into]+s.sent[from], 0
			answer = fmt.Sprintf("order %d is part of order %d\n", from, into)
			return nil
		})
	})
	return answer, err
}

var errNoOrder = errors.New("there is no such order")

// orderOf reads the number of an order from the path.
func orderOf(r *http.Request, name string) (int, error) {
	id, err := strconv.Atoi(r.PathValue(name))
	if err != nil || id < 0 || id >= orders {
		return 0, errNoOrder
	}
	return id, nil
}

// handle makes work a handler. Its locks belong to a client named after the
// customer, which is how the page shows who is who.
func (s *shop) handle(work func(r *http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, client := s.locks.WithClient(r.Context(), cmp.Or(r.Header.Get("Customer"), r.RemoteAddr))
		defer client.Close()
		answer, err := work(r.WithContext(ctx))
		switch {
		case err == nil:
			fmt.Fprint(w, answer)
		case errors.Is(err, errNoOrder):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, processlock.ErrDeadlock):
			http.Error(w, err.Error(), http.StatusConflict)
		default: // the customer has left, or the shop closes
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}
