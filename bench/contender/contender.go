// Package contender has what a user might pick to lock by key, behind one
// interface.
package contender

import "context"

// Lock is what the workloads need of an implementation.
type Lock[K any] interface {
	// Do runs fn while it holds key. The error is fn's, or says why fn did not
	// run.
	Do(ctx context.Context, key K, fn func(context.Context) error) error
}

// Shared is a Lock that also has a mode in which holders admit each other.
type Shared[K any] interface {
	Lock[K]
	DoShared(ctx context.Context, key K, fn func(context.Context) error) error
}

// Kind tells why a contender is in the tables.
type Kind string

const (
	Ours     Kind = "ours"
	Rival    Kind = "rival"    // a released module, as it is
	Baseline Kind = "baseline" // how rivals that can't be imported are built
	Limit    Kind = "limit"    // not a keyed lock: what the parts cost alone
)

// Guarantees are what a figure buys.
type Guarantees struct {
	Exact    bool // keys never wait for each other, and any two can be nested
	FIFO     bool // grants are in order of arrival
	Ctx      bool // a done context ends a wait
	Callback bool // its own call runs a function, so nobody forgets the unlock
	Note     string
}

// Contender is an implementation and what it promises.
type Contender[K any] struct {
	Name string
	Kind Kind
	Guarantees
	New func() Lock[K]
}

// Close ends what l runs in the background, if anything.
func Close[K any](l Lock[K]) {
	if c, ok := l.(interface{ Close() }); ok {
		c.Close()
	}
}

// Keyed are those that take keys of any comparable type.
func Keyed[K comparable]() []Contender[K] {
	return []Contender[K]{
		processlockContender[K](),
		mapMutexContender[K](),
		mapSemaphoreContender[K](),
		mapCondContender[K](),
		chainedChannelsContender[K](),
		syncMapMutexContender[K](),
		mapChannelContender[K](),
		coordinatorContender[K](),
		xsyncComputeContender[K](),
	}
}

// Strings are those that lock strings: all keyed locks.
func Strings() []Contender[string] {
	return append(Keyed[string](), mobyLocker, k8sKeymutex, vaultLocksutil)
}

// Limits are no keyed locks.
func Limits() []Contender[string] {
	return []Contender[string]{bareMutex, bareSemaphore}
}

// Sharing are those with a shared mode.
func Sharing() []Contender[string] {
	return []Contender[string]{processlockContender[string](), mapRWMutex, vaultLocksutil, bareRWMutex}
}

// Named returns the contender of that name.
func Named[K any](all []Contender[K], name string) Contender[K] {
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	panic("bench: no contender " + name)
}
