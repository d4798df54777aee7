package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dbx-tools/processlock"
)

// serial posts one after the other, in the order of the file.
func serial(ctx context.Context, b *book, ps []posting) error {
	for _, p := range ps {
		if err := b.post(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// pool posts in a Group, whose tasks hold the accounts that they post to.
func pool(ctx context.Context, b *book, ps []posting, accounts []string, limit int) error {
	g, _ := processlock.NewGroup(ctx, "ledger")
	g.SetLimit(limit)
	for _, p := range ps {
		post := func(ctx context.Context) error { return b.post(ctx, p) }
		if len(p.entries) == 1 {
			g.GoLocked(accounts[p.entries[0].account], post)
		} else {
			g.GoLocked(processlock.All(accounts[p.entries[0].account], accounts[p.entries[1].account]), post)
		}
	}
	return g.Wait()
}

// naive is a pool that forgets the locks.
func naive(ctx context.Context, b *book, ps []posting, limit int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(limit)
	for _, p := range ps {
		g.Go(func() error { return b.post(ctx, p) })
	}
	return g.Wait()
}

// work posts what is in the file serially and then in the mode that is asked
// for.
func work(ctx context.Context, cfg config, in *input, stderr io.Writer) (*result, error) {
	ps := postings(in, cfg.by)
	r := &result{input: in, by: cfg.by, postings: len(ps)}
	bar := startProgress(stderr, isTerminal(stderr))
	defer bar.stop()
	post := func(mode string, s store, run func(*book) error) (*book, time.Duration, error) {
		b := &book{store: s, latency: cfg.latency}
		bar.show(func() string {
			return fmt.Sprintf("%s: %s of %s posted, %d under way", mode, thousands(b.posted.Load()), thousands(int64(len(ps))), b.running.Load())
		})
		start := time.Now()
		err := run(b)
		if err != nil {
			err = fmt.Errorf("%s: %w", mode, err)
		}
		return b, time.Since(start), err
	}

	var err error
	r.serial, r.serialTook, err = post(modeSerial, newGuarded(len(in.accounts)), func(b *book) error {
		return serial(ctx, b, ps)
	})
	if err != nil {
		return r, err
	}
	r.book, r.took = r.serial, r.serialTook
	switch cfg.mode {
	case modePool:
		before := processlock.Default().Stats()
		r.book, r.took, err = post(modePool, newGuarded(len(in.accounts)), func(b *book) error {
			return pool(ctx, b, ps, in.accounts, cfg.limit)
		})
		r.waited = processlock.Default().Stats().Waited - before.Waited
	case modeNaive:
		r.book, r.took, err = post(modeNaive, newUnguarded(len(in.accounts)), func(b *book) error {
			return naive(ctx, b, ps, cfg.limit)
		})
	}
	if err != nil {
		return r, err
	}
	r.prove(ps)
	return r, nil
}
