package contender

import (
	"context"

	"github.com/puzpuzpuz/xsync/v4"
)

func xsyncComputeContender[K comparable]() Contender[K] {
	return Contender[K]{"xsync Compute", Rival, Guarantees{Callback: true, Note: "keys of a bucket share its lock"},
		func() Lock[K] { return xsyncAdapter[K]{xsync.NewMap[K, struct{}]()} }}
}

type xsyncAdapter[K comparable] struct{ m *xsync.Map[K, struct{}] }

func (x xsyncAdapter[K]) Do(ctx context.Context, key K, fn func(context.Context) error) (err error) {
	x.m.Compute(key, func(struct{}, bool) (struct{}, xsync.ComputeOp) {
		err = fn(ctx)
		return struct{}{}, xsync.CancelOp
	})
	return err
}
