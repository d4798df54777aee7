package contender

import (
	"context"

	"github.com/dbx-tools/processlock"
)

var promises = Guarantees{Exact: true, FIFO: true, Ctx: true, Callback: true}

// packageLevel is the way in that the documentation shows: Default's table.
type packageLevel[K any] struct{}

func (packageLevel[K]) Do(ctx context.Context, key K, fn func(context.Context) error) error {
	return processlock.WithLock(ctx, key, fn)
}

func (packageLevel[K]) DoShared(ctx context.Context, key K, fn func(context.Context) error) error {
	return processlock.WithLock(ctx, key, fn, processlock.Shared)
}

// Processlock is the package-level call for keys of any type.
func Processlock[K any]() Contender[K] {
	return Contender[K]{"processlock", Ours, promises, func() Lock[K] { return packageLevel[K]{} }}
}

func processlockContender[K comparable]() Contender[K] { return Processlock[K]() }

// Method is a Coordinator's method, which boxes a string.
var Method = Contender[string]{"processlock.method", Ours, promises,
	func() Lock[string] { return &method{processlock.New(processlock.Options{})} }}

type method struct{ c *processlock.Coordinator }

func (m *method) Do(ctx context.Context, key string, fn func(context.Context) error) error {
	return m.c.WithLock(ctx, key, fn)
}

// UnderClient is the package-level call of a worker that has a Client.
var UnderClient = Contender[string]{"processlock.client", Ours, promises, func() Lock[string] {
	ctx, c := processlock.WithClient(context.Background(), "worker")
	return &underClient{ctx, c}
}}

type underClient struct {
	ctx    context.Context
	client *processlock.Client
}

// Do ignores the caller's context: the client's is made once, as workers do.
func (u *underClient) Do(_ context.Context, key string, fn func(context.Context) error) error {
	return processlock.WithLock(u.ctx, key, fn)
}

func (u *underClient) Close() { u.client.Close() }
