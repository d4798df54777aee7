package proof

import (
	"context"
	"strconv"
	"time"

	"github.com/dbx-tools/processlock"
)

// real is the library.
type real struct{ c *processlock.Coordinator }

func (s real) lock(ctx context.Context, _ int, shared, try bool, maxWait time.Duration, keys []string, fn func()) error {
	var opts []processlock.Option
	if shared {
		opts = append(opts, processlock.Shared)
	}
	if try {
		opts = append(opts, processlock.IfAvailable)
	}
	if maxWait > 0 {
		opts = append(opts, processlock.MaxWait(maxWait))
	}
	var key any = keys[0]
	if len(keys) > 1 {
		all := make([]any, len(keys))
		for i, k := range keys {
			all[i] = k
		}
		key = processlock.All(all...)
	}
	return s.c.WithLock(ctx, key, func(context.Context) error {
		fn()
		return nil
	}, opts...)
}

// client names the client for its request, by which it is known in Snapshot.
func (s real) client(ctx context.Context, id int) (context.Context, func()) {
	ctx, c := s.c.WithClient(ctx, strconv.Itoa(id))
	return ctx, c.Close
}

func (s real) rows() map[string]lockRow {
	rows := make(map[string]lockRow)
	for _, l := range s.c.Snapshot().Locks {
		var r lockRow
		for _, h := range l.Holders {
			r.holders = append(r.holders, number(h.Client))
		}
		for _, w := range l.Waiters {
			r.queue = append(r.queue, number(w.Client))
		}
		rows[shortKey(l.Key)] = r
	}
	return rows
}

func number(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil {
		panic(err)
	}
	return n
}
