package contender

import (
	"context"

	"github.com/moby/locker"
)

var mobyLocker = Contender[string]{"moby/locker", Rival, Guarantees{Exact: true},
	func() Lock[string] { return mobyAdapter{locker.New()} }}

type mobyAdapter struct{ l *locker.Locker }

func (m mobyAdapter) Do(ctx context.Context, key string, fn func(context.Context) error) error {
	m.l.Lock(key)
	defer func() { _ = m.l.Unlock(key) }()
	return fn(ctx)
}
