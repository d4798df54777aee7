package contender

import (
	"context"

	"k8s.io/utils/keymutex"
)

// One stripe a processor is its default.
var k8sKeymutex = Contender[string]{"k8s keymutex", Rival, Guarantees{Note: "striped: one mutex a processor"},
	func() Lock[string] { return k8sAdapter{keymutex.NewHashed(0)} }}

type k8sAdapter struct{ m keymutex.KeyMutex }

func (k k8sAdapter) Do(ctx context.Context, key string, fn func(context.Context) error) error {
	k.m.LockKey(key)
	defer func() { _ = k.m.UnlockKey(key) }()
	return fn(ctx)
}
