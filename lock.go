package processlock

import (
	"context"
	"time"
	"unsafe"
)

// Locker is what a backend offers, as [Coordinator] does inside a process. It
// promises what [WithLock] does.
type Locker interface {
	WithLock(ctx context.Context, key any, fn func(ctx context.Context) error, opts ...Option) error
}

// WithLock runs fn alone among all callers that name the same key, in order of
// arrival, and returns what fn returns. Other keys run at the same time.
//
// While another caller holds the key, WithLock waits for its turn. The wait
// ends early when ctx is done, when [MaxWait] runs out, when the caller's
// [Client] or the [Coordinator] is closed, or at once when it could never end
// ([ErrDeadlock]). Then fn does not run, the order of the others is unchanged,
// and the error is an [*AcquireError] that says why. A context that is done
// before the call never runs fn, not on a free key either; to lock during
// clean-up pass [context.WithoutCancel](ctx).
//
// Once fn runs, ctx is fn's business: WithLock returns when fn does. The key is
// released however fn ends: by return, panic or [runtime.Goexit], none of which
// is caught. The one error that comes after fn ran is [ErrLost].
//
// fn runs on the caller's goroutine. Its context is ctx with the lineage added:
// a nested call made with it is known to run under this hold, which is how
// [Reentrant] and the deadlock search work, so hand it on to what fn calls. A
// goroutine that outlives fn should be given [Detach](ctx).
//
// The key may be any value with a stable identity, see [KeyOf]: a string, a
// number, a struct, or a list such as []any{"invoice", 7}; or several keys at
// once, see [All]. It is read once, before anything is locked.
//
// The coordinator is the one that [WithCoordinator] put into ctx, else
// [Default]. WithLock panics if ctx, fn or an Option is nil. K is a type
// parameter only so that a string is not boxed; it may be any type, but an
// untyped nil needs one: any(nil).
//
// While a call waits, other calls' deadlock searches may ask its context for
// its Err; they do so outside all locks.
func WithLock[K any](ctx context.Context, key K, fn func(ctx context.Context) error, opts ...Option) error {
	check(ctx, fn == nil)
	q := call{fn: funcAddr(fn)}
	if len(opts) > 0 {
		q.settings.read(opts)
	}
	q.place(ctx, nil)
	return lockAs(&q, key, fn)
}

// WithLockValue is [WithLock] for an fn that returns a value. When fn did not
// run the value is the zero T.
func WithLockValue[T, K any](ctx context.Context, key K, fn func(ctx context.Context) (T, error), opts ...Option) (T, error) {
	check(ctx, fn == nil)
	q := call{fn: funcAddr(fn)}
	if len(opts) > 0 {
		q.settings.read(opts)
	}
	q.place(ctx, nil)
	var value T
	err := lockAs(&q, key, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	return value, err
}

// WithLock is the package-level [WithLock] on this coordinator, whatever
// coordinator ctx carries. It panics if c is nil or a copy of a used one.
func (c *Coordinator) WithLock(ctx context.Context, key any, fn func(ctx context.Context) error, opts ...Option) error {
	check(ctx, fn == nil)
	q := call{fn: funcAddr(fn)}
	if len(opts) > 0 {
		q.settings.read(opts)
	}
	c.check()
	q.place(ctx, c)
	return lockAs(&q, key, fn)
}

// lockAs runs fn under the key that key names. The common kinds are told apart
// here, where K is known, so that they are not boxed.
func lockAs[K any](q *call, key K, fn func(context.Context) error) error {
	switch k := any(key).(type) {
	case string:
		return q.lock(stringKey(k), fn)
	case int:
		return q.lock(intKey(int64(k)), fn)
	case Key:
		if k != (Key{}) {
			return q.lock(k, fn)
		}
	case Keys:
		return q.lockAll(k, fn)
	}
	return q.lockValue(any(key), fn)
}

// lockValue is lock for a key that has to be encoded first.
func (q *call) lockValue(key any, fn func(context.Context) error) error {
	// A done context counts before a bad key, but the key is read for the
	// error's sake.
	err := ended(q.ctx)
	k, kerr := keyOf(key)
	switch {
	case err != nil:
		return &AcquireError{k, err}
	case kerr != nil:
		return &AcquireError{Key{}, kerr}
	}
	return q.lock(k, fn)
}

// An Option changes how one call waits. Options are [Shared], [IfAvailable],
// [Reentrant] and [MaxWait].
type Option interface{ option() }

type flag uint8

const (
	flagShared flag = iota
	flagIfAvailable
	flagReentrant
)

func (flag) option() {}

type maxWait time.Duration

func (maxWait) option() {}

var (
	// Shared admits any number of Shared holders of a key at once, and no
	// exclusive one beside them. A Shared request never passes an exclusive
	// one that waits, so neither can starve the other.
	Shared Option = flagShared

	// IfAvailable never waits: a key that can't be granted at once, since it
	// is held or others wait for it, is [ErrUnavailable].
	IfAvailable Option = flagIfAvailable

	// Reentrant runs fn at once, under the hold that is there and whoever is
	// queued, if the calling context descends from a hold of the key; else it
	// changes nothing. The inner return releases nothing, calls under one hold
	// don't exclude each other, and an inner fn that outlives the hold gets
	// [ErrLost]. A shared hold serves a [Shared] request only: an exclusive one
	// on top of it is [ErrDeadlock]. Without Reentrant, having to wait for
	// one's own hold is ErrDeadlock.
	Reentrant Option = flagReentrant
)

// MaxWait bounds the wait, not fn: after d without a grant the call returns
// [ErrWaitTimeout]. If d is not positive it is [IfAvailable]. Of several the
// shortest counts. With [All] it bounds the waits for all keys together.
func MaxWait(d time.Duration) Option { return maxWait(d) }

// settings are the options of one call, resolved.
type settings struct {
	mode        Mode
	ifAvailable bool
	reentrant   bool
	maxWait     time.Duration // 0: no bound
}

// read resolves opts. A switch and not a method on Option, through which
// settings would escape to the heap on every call.
func (s *settings) read(opts []Option) {
	for _, o := range opts {
		switch o := o.(type) {
		case flag:
			switch o {
			case flagShared:
				s.mode = ModeShared
			case flagIfAvailable:
				s.ifAvailable = true
			case flagReentrant:
				s.reentrant = true
			}
		case maxWait:
			if o <= 0 {
				s.ifAvailable = true
			} else if d := time.Duration(o); s.maxWait == 0 || d < s.maxWait {
				s.maxWait = d
			}
		case nil:
			misuse("nil Option")
		default:
			misuse("Option that this package has not made")
		}
	}
}

// Request is one call with its key read and its options resolved: what those
// who write a [Locker] of their own need.
type Request struct {
	// Keys holds each key once, in the order in which they are to be taken.
	// It has one element unless the key came from [All].
	Keys []Key

	Mode        Mode
	IfAvailable bool // MaxWait(0) too
	Reentrant   bool

	// MaxWait bounds the wait; 0 means that nothing does, or that IfAvailable
	// is set.
	MaxWait time.Duration
}

// Resolve reads key and opts as [WithLock] does. Its error is an
// [*AcquireError] around [ErrKey]. It panics on a nil Option.
func Resolve(key any, opts ...Option) (Request, error) {
	var s settings
	s.read(opts)
	r := Request{Mode: s.mode, IfAvailable: s.ifAvailable, Reentrant: s.reentrant}
	if !s.ifAvailable {
		r.MaxWait = s.maxWait
	}
	if all, ok := key.(Keys); ok {
		if all.err != nil {
			return Request{}, &AcquireError{Key{}, all.err}
		}
		r.Keys = append(r.Keys, all.keys...)
		return r, nil
	}
	k, err := keyOf(key)
	if err != nil {
		return Request{}, &AcquireError{Key{}, err}
	}
	r.Keys = []Key{k}
	return r, nil
}

// Mode tells how a key is held or wanted.
type Mode uint8

// The two modes of a lock.
const (
	ModeExclusive Mode = iota // alone
	ModeShared                // beside other shared ones; see [Shared]
)

// String returns "exclusive" or "shared".
func (m Mode) String() string {
	if m == ModeShared {
		return "shared"
	}
	return "exclusive"
}

// MarshalText returns the same text as String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// check panics on what no caller may pass.
func check(ctx context.Context, nilFn bool) {
	if ctx == nil {
		misuse("nil context")
	}
	if nilFn {
		misuse("nil fn")
	}
}

// funcAddr returns the address of fn's code, from which the runtime can tell
// its name, file and line. A func value is a pointer to a block whose first
// word is that address; reading it here keeps fn from escaping, which any
// detour through reflect would not.
func funcAddr[F any](fn F) uintptr {
	return **(**uintptr)(unsafe.Pointer(&fn))
}
