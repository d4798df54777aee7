package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// patience is how long a customer waits for an answer.
const patience = 20 * time.Second

// shopAround sends one customer's requests, one after the other, until ctx is
// done. Each customer's choices are the same in every run.
func shopAround(ctx context.Context, base string, number uint64) {
	choice := rand.New(rand.NewPCG(number, 0))
	for ctx.Err() == nil {
		path := fmt.Sprintf("/orders/%d/ship", choice.IntN(orders))
		if choice.IntN(4) == 0 {
			path = fmt.Sprintf("/orders/%d/merge/%d", choice.IntN(orders), choice.IntN(orders))
		}
		post(ctx, base+path, fmt.Sprint("customer-", number))
		select {
		case <-time.After(time.Duration(choice.IntN(10)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// post sends one request. How it ends is the customer's misfortune: deadlocks
// and lost patience are what the page is there to show.
func post(ctx context.Context, url, customer string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		panic(err) // the address is our own
	}
	r.Header.Set("Customer", customer)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // for the connection to be used again
}
