package contender

import (
	"context"

	"github.com/hashicorp/vault/sdk/helper/locksutil"
)

var vaultLocksutil = Contender[string]{"vault locksutil", Rival, Guarantees{Note: "striped: 256 mutexes"},
	func() Lock[string] { return vaultAdapter{locksutil.CreateLocks()} }}

type vaultAdapter struct{ locks []*locksutil.LockEntry }

func (v vaultAdapter) Do(ctx context.Context, key string, fn func(context.Context) error) error {
	l := locksutil.LockForKey(v.locks, key)
	l.Lock()
	defer l.Unlock()
	return fn(ctx)
}

func (v vaultAdapter) DoShared(ctx context.Context, key string, fn func(context.Context) error) error {
	l := locksutil.LockForKey(v.locks, key)
	l.RLock()
	defer l.RUnlock()
	return fn(ctx)
}
