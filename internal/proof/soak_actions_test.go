package proof

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/dbx-tools/processlock"
)

// soaker makes calls at random, on one coordinator for all of the soak.
type soaker struct {
	c        *processlock.Coordinator
	sections [5]section // one a key: the ints from 0 on
	tally    tally
}

// action is one random thing to do. ctx is that of an fn, or Background.
func (s *soaker) action(ctx context.Context, r *rand.Rand, depth int) {
	switch r.IntN(25) {
	case 24:
		if depth == 0 {
			s.group(r)
		}
	case 0:
		s.mortal(r)
	case 1:
		s.look()
	case 2:
		s.keys(r)
	case 3:
		s.elsewhere(r)
	case 4:
		s.exits(ctx, r)
	case 5:
		if depth == 0 {
			s.refused()
		}
	case 6:
		s.watched(ctx, r, depth)
	default:
		s.lock(ctx, r, depth)
	}
}

// watched does something while hooks look at all calls.
func (s *soaker) watched(ctx context.Context, r *rand.Rand, depth int) {
	remove := s.c.AddHooks(processlock.Hooks{
		Acquired: func(e processlock.Event) {
			if e.Err != nil || e.Held != 0 || e.Key.LogValue().String() != e.Key.String() {
				s.tally.wrong("Acquired: %+v", e)
			}
		},
		Failed: func(e processlock.Event) {
			var failed *processlock.AcquireError
			if e.Err != processlock.ErrLost && (!errors.As(e.Err, &failed) || len(failed.LogValue().Group()) == 0) {
				s.tally.wrong("Failed: %+v", e)
			}
		},
	})
	defer remove()
	s.lock(ctx, r, depth)
}

// lock makes one call, and others inside its fn.
func (s *soaker) lock(ctx context.Context, r *rand.Rand, depth int) {
	var opts []processlock.Option
	shared := r.IntN(3) == 0
	if shared {
		opts = append(opts, processlock.Shared)
	}
	reentrant := false
	soon := time.Duration(1+r.IntN(100)) * time.Microsecond
	switch r.IntN(10) {
	case 0:
		opts = append(opts, processlock.IfAvailable)
	case 1:
		opts = append(opts, processlock.MaxWait(soon))
	case 2:
		opts = append(opts, processlock.Reentrant)
		reentrant = true
	case 3:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, soon)
		defer cancel()
	case 4:
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		timer := time.AfterFunc(soon, cancel)
		defer timer.Stop()
		defer cancel()
	}
	picked := r.Perm(len(s.sections))[:1]
	var key any = picked[0]
	if r.IntN(4) == 0 {
		picked = r.Perm(len(s.sections))[:2+r.IntN(2)]
		key = processlock.All(picked[0], picked[1], picked[len(picked)-1])
	}
	request, err := processlock.Resolve(key, opts...)
	if err != nil || len(request.Keys) != len(picked) {
		s.tally.wrong("Resolve: %+v, %v", request, err)
		return
	}
	ran := false
	fn := func(ctx context.Context) error {
		ran = true
		if !reentrant { // the calls under one hold don't exclude each other
			for _, k := range picked {
				if !s.sections[k].enter(shared) {
					s.tally.wrong("key %d is not %v", k, request.Mode)
				}
			}
			if r.IntN(3) == 0 {
				runtime.Gosched()
			}
			for _, k := range picked {
				s.sections[k].leave(shared)
			}
		}
		if depth < 2 && r.IntN(2) == 0 {
			s.action(context.WithoutCancel(ctx), r, depth+1)
		}
		return nil
	}
	switch r.IntN(3) {
	case 0:
		err = s.c.WithLock(ctx, key, fn, opts...)
	case 1:
		err = processlock.WithLock(processlock.WithCoordinator(ctx, s.c), key, fn, opts...)
	default:
		_, err = processlock.WithLockValue(processlock.WithCoordinator(ctx, s.c), key, func(ctx context.Context) (int, error) {
			return 1, fn(ctx)
		}, opts...)
	}
	if ran != (err == nil) {
		s.tally.wrong("fn ran: %t, error: %v", ran, err)
	}
	s.tally.add(request.Keys, ran, err)
}

// mortal makes a call whose client is closed meanwhile. It stays out of the
// sections, since a hold that is taken away excludes nobody.
func (s *soaker) mortal(r *rand.Rand) {
	request, _ := processlock.Resolve(r.IntN(len(s.sections)))
	ran := false
	call := func(ctx context.Context, c *processlock.Client) {
		timer := time.AfterFunc(time.Duration(r.IntN(50))*time.Microsecond, c.Close)
		defer timer.Stop()
		ran = false
		err := s.c.WithLock(ctx, request.Keys[0], func(context.Context) error {
			ran = true
			if r.IntN(2) == 0 {
				time.Sleep(time.Duration(r.IntN(50)) * time.Microsecond)
			}
			return nil
		})
		s.tally.add(request.Keys, ran, err)
	}
	ctx, c := s.c.WithClient(context.Background(), "mortal")
	call(ctx, c)
	c.Close()

	ctx, c = processlock.WithClient(processlock.WithCoordinator(context.Background(), s.c), "mortal")
	call(ctx, c)
	c.Close()
	if c.Name() != "mortal" {
		s.tally.wrong("Name() is %q", c.Name())
	}
}

// look reads all that there is to read.
func (s *soaker) look() {
	snap := s.c.Snapshot()
	for i, l := range snap.Locks {
		if len(l.Holders) == 0 || i > 0 && snap.Locks[i-1].Key.Canonical() >= l.Key.Canonical() {
			s.tally.wrong("a strange row: %+v", l)
		}
		exclusive := 0
		for _, h := range l.Holders {
			if text, err := h.Mode.MarshalText(); err != nil || string(text) != h.Mode.String() {
				s.tally.wrong("mode %v is %s, %v", h.Mode, text, err)
			}
			if h.Mode == processlock.ModeExclusive {
				exclusive++
			}
		}
		if exclusive > 0 && len(l.Holders) > 1 {
			s.tally.wrong("an exclusive holder is not alone: %+v", l)
		}
	}
	if st := s.c.Stats(); st.Held < 0 || st.Waiting < 0 || st.Waited < 0 {
		s.tally.wrong("Stats: %+v", st)
	}
}

// keys makes keys and reads them.
func (s *soaker) keys(r *rand.Rand) {
	n := r.IntN(1000)
	k, err := processlock.KeyOf("soak", n)
	if err != nil || k.Canonical() != processlock.MustKey("soak", json.Number(k.String()[len(`["soak",`):len(k.String())-1])).Canonical() {
		s.tally.wrong("KeyOf: %v, %v", k, err)
	}
	if k.ID() != processlock.MustKey([]any{"soak", int8(0)}).ID() && n == 0 {
		s.tally.wrong("ID of %v", k)
	}
}

// elsewhere uses other coordinators: the default one, and one that is shut down.
func (s *soaker) elsewhere(r *rand.Rand) {
	ctx := context.Background()
	err := processlock.Default().WithLock(ctx, "soak", func(ctx context.Context) error {
		return processlock.WithLock(processlock.Detach(ctx), "soak too", func(context.Context) error { return nil })
	})
	if err != nil {
		s.tally.wrong("Default: %v", err)
	}
	c := processlock.New(processlock.Options{MaxWaiters: r.IntN(3), TrackHolds: r.IntN(2) == 0})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			worker := processlock.Worker("short", func(ctx context.Context) error {
				return processlock.WithLock(ctx, "k", func(ctx context.Context) error {
					runtime.Gosched()
					return processlock.WithLock(ctx, "l", func(context.Context) error { return nil })
				})
			})
			err := worker(processlock.WithCoordinator(ctx, c))
			if err != nil && !errors.Is(err, processlock.ErrClosed) && !errors.Is(err, processlock.ErrQueueFull) {
				s.tally.wrong("while shutting down: %v", err)
			}
		})
	}
	if r.IntN(2) == 0 {
		runtime.Gosched()
	}
	if err := c.Shutdown(ctx); err != nil {
		s.tally.wrong("Shutdown: %v", err)
	}
	wg.Wait()
	if left := c.Snapshot().Locks; len(left) > 0 {
		s.tally.wrong("left over after Shutdown: %+v", left)
	}
}

// exits ends fn by a panic or by Goexit.
func (s *soaker) exits(ctx context.Context, r *rand.Rand) {
	request, _ := processlock.Resolve(r.IntN(len(s.sections)))
	var wg sync.WaitGroup
	wg.Go(func() {
		ran, by := false, r.IntN(2)
		var err error
		defer func() {
			if v := recover(); v != nil && v != errPanic {
				panic(v)
			}
			s.tally.add(request.Keys, ran, err)
		}()
		err = s.c.WithLock(ctx, request.Keys[0], func(context.Context) error {
			if ran = true; by == 0 {
				panic(errPanic)
			}
			runtime.Goexit()
			return nil
		})
	})
	wg.Wait()
}

// refused is what is no lock at all.
func (s *soaker) refused() {
	err := s.c.WithLock(context.Background(), func() {}, func(context.Context) error { return nil })
	if !errors.Is(err, processlock.ErrKey) {
		s.tally.wrong("a func as key: %v", err)
	}
	defer func() {
		if recover() == nil {
			s.tally.wrong("Configure after the first request does not panic")
		}
	}()
	_ = processlock.Default().WithLock(context.Background(), "first", func(context.Context) error { return nil })
	processlock.Configure(processlock.Options{})
}
