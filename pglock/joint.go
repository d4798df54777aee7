package pglock

import (
	"context"
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// joint is a context that ends with its parent, or earlier with a cause of its
// own. Unlike one of context.WithCancel it need not be ended: it goes on to end
// with its parent after the call that made it is over, and yet the parent keeps
// nothing of it. For that nothing is registered on the parent before somebody
// asks for Done, and if nobody else than this package has, it is taken back when
// the call is over; else when the collector finds that the channel is no longer
// waited for.
type joint struct {
	context.Context                 // of the values and the deadline
	base            context.Context // whose end is this one's too

	mu     sync.Mutex
	done   chan struct{}
	armed  bool        // registered on base, or about to be
	stop   func() bool // ends the registration
	handed bool        // done is in other hands
	after  map[*func()]struct{}
	err    error           // why it ended; nil while it hasn't, as far as is known
	cause  context.Context // of an end of its own: one that ended with the cause
	shut   bool            // it has no end of its own any more
}

// Value returns the parent's value. A context that ended by itself shows its
// cause where [context.Cause] looks for it, under a key that the context package
// alone knows.
func (j *joint) Value(key any) any {
	j.mu.Lock()
	cause := j.cause
	j.mu.Unlock()
	if cause != nil {
		if v := cause.Value(key); v != nil {
			return v
		}
	}
	return j.Context.Value(key)
}

// Err returns why the context is done.
func (j *joint) Err() error {
	j.mu.Lock()
	err := j.err
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err = j.base.Err(); err != nil {
		j.endWith(err, nil) // lest Done lag behind
	}
	return err
}

// Done returns a channel that is closed with the context.
func (j *joint) Done() <-chan struct{} {
	j.mu.Lock()
	if j.shut && !j.armed && j.err == nil {
		j.mu.Unlock()
		return j.base.Done()
	}
	j.handed = true
	done := j.channel()
	j.mu.Unlock()
	j.arm()
	return done
}

// channel returns done, made if there is none. Called under mu.
func (j *joint) channel() chan struct{} {
	if j.done == nil {
		j.done = make(chan struct{})
		if j.err != nil {
			close(j.done)
		}
	}
	return j.done
}

// AfterFunc is for the context package, which else would need a goroutine for
// each context that is derived from this one.
func (j *joint) AfterFunc(f func()) (stop func() bool) {
	j.mu.Lock()
	if j.err != nil {
		j.mu.Unlock()
		go f()
		return func() bool { return false }
	}
	if j.after == nil {
		j.after = make(map[*func()]struct{})
	}
	j.after[&f] = struct{}{}
	j.mu.Unlock()
	j.arm()
	return func() bool {
		j.mu.Lock()
		_, ok := j.after[&f]
		delete(j.after, &f)
		j.disarm(false)
		return ok
	}
}

// arm registers j on base. What is registered must not keep j: who waits for the
// channel may keep nothing but the channel, so it is by the channel that we tell
// whether the registration is still of use.
func (j *joint) arm() {
	j.mu.Lock()
	if j.armed || j.err != nil {
		j.mu.Unlock()
		return
	}
	j.armed = true
	done, base := j.channel(), j.base
	j.mu.Unlock()

	registered := false
	defer func() {
		if !registered { // a method of base panicked
			j.mu.Lock()
			j.armed = false
			j.mu.Unlock()
		}
	}()
	at := *(**byte)(unsafe.Pointer(&done)) // a channel is a pointer
	owner, ref := weak.Make(j), weak.Make(at)
	f := func() {
		if j := owner.Value(); j != nil {
			j.endWith(endErr(base), nil)
		} else if at := ref.Value(); at != nil {
			close(*(*chan struct{})(unsafe.Pointer(&at)))
		}
	}
	var stop func() bool
	switch outer, ok := base.(*hold); {
	case ok:
		stop = outer.AfterFunc(f)
	case base.Done() == nil:
		registered = true
		return
	default:
		stop = context.AfterFunc(base, f) // which may be user code
	}
	registered = true
	runtime.AddCleanup(at, func(stop func() bool) { stop() }, stop)

	j.mu.Lock()
	if j.armed && j.done == done && j.err == nil {
		j.stop = stop
		j.disarm(false)
		return
	}
	j.mu.Unlock()
	stop()
}

// disarm takes back the registration once nothing needs it, or if force is set.
// It gives up mu, under which it is called: to stop may be user code.
func (j *joint) disarm(force bool) {
	stop := j.stop
	if !j.shut || !force && (j.handed || len(j.after) > 0) {
		stop = nil
	} else if j.err == nil {
		j.armed, j.stop, j.done = false, nil, nil
	}
	j.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func endErr(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled // a hand-written context that closed Done alone
}

// endWith ends the context, if it hasn't ended. With a cause it ends by itself.
func (j *joint) endWith(err error, cause error) {
	var with context.Context
	if cause != nil {
		if j.base.Err() != nil {
			return // its end is on the way, or is there
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		with = ctx
	}
	j.mu.Lock()
	if j.err != nil || j.shut && cause != nil {
		j.mu.Unlock()
		return
	}
	j.err, j.cause = err, with
	if j.done != nil {
		close(j.done)
	}
	after, stop := j.after, j.stop
	j.after, j.stop = nil, nil
	j.mu.Unlock()
	if stop != nil {
		stop()
	}
	for f := range after {
		go (*f)()
	}
}

// close ends nothing: from now on the context ends with its parent only. If own
// is set nobody but this package has seen Done, and nobody waits for it.
func (j *joint) close(own bool) {
	j.mu.Lock()
	j.shut = true
	j.disarm(own)
}

// end ends the context with cause.
func (j *joint) end(cause error) { j.endWith(context.Canceled, cause) }
