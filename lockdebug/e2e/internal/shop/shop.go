// Package shop is the work of an imagined shop: what the pictures and tests of
// the page show.
package shop

import (
	"context"

	"github.com/dbx-tools/processlock"
)

// Work is what is done under a lock.
type Work func(ctx context.Context) error

// Ship ships an order.
func Ship(ctx context.Context, order int, work Work) error {
	return processlock.WithLock(ctx, []any{"order", order}, func(ctx context.Context) error {
		return work(ctx)
	})
}

// Cancel cancels an order.
func Cancel(ctx context.Context, order int, work Work) error {
	return processlock.WithLock(ctx, []any{"order", order}, func(ctx context.Context) error {
		return work(ctx)
	})
}

// Transfer moves money from one account to another.
func Transfer(ctx context.Context, from, to string, work Work) error {
	return processlock.WithLock(ctx, []any{"account", from}, func(ctx context.Context) error {
		return Settle(ctx, to, work)
	})
}

// Settle settles an account.
func Settle(ctx context.Context, account string, work Work) error {
	return processlock.WithLock(ctx, []any{"account", account}, func(ctx context.Context) error {
		return work(ctx)
	})
}

// Price reads a price list, beside others who do.
func Price(ctx context.Context, list string, work Work) error {
	return processlock.WithLock(ctx, []any{"prices", list}, func(ctx context.Context) error {
		return work(ctx)
	}, processlock.Shared)
}

// Reprice changes a price list.
func Reprice(ctx context.Context, list string, work Work) error {
	return processlock.WithLock(ctx, []any{"prices", list}, func(ctx context.Context) error {
		return work(ctx)
	})
}

// Render renders an invoice.
func Render(ctx context.Context, tenant string, invoice int, work Work) error {
	return processlock.WithLock(ctx, []any{"invoice", tenant, invoice}, func(ctx context.Context) error {
		return work(ctx)
	})
}
