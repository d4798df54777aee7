package processlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dbx-tools/processlock"
)

// scTick is longer than all that is added to a MaxWait, see scDriver.call.
const scTick = time.Millisecond

// scDriver reads a program from bytes and makes its steps in a bubble and in
// the model. So that only one thing can happen, each step waits until all is at
// rest, no two calls have a client, a context or a deadline in common, and one
// call of All is there at a time.
type scDriver struct {
	t     *testing.T
	c     *processlock.Coordinator
	m     *scModel
	calls []*scLive
	down  chan struct{} // closed when Shutdown has returned
	trace []string
}

// scLive is a call of the library beside its number in the model.
type scLive struct {
	*ltCall
	cancel context.CancelFunc
	client *processlock.Client
	result error // what its fn returns
}

var errScFn = errors.New("fn's error")

// Whatever a program of calls does, it does what the model says: who runs, who
// waits in which order and holds what meanwhile, every error, and Stats.
//
// Rules 1, 3, 4, 5, 9, 13, 18, 19, 20, 21, 22, 23, 25, 27, 29, 30, 31, 32, 39
// and 41.
func FuzzSchedule(f *testing.F) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		program := make([]byte, 3*(10+r.IntN(50)))
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := &scDriver{t: t, m: &scModel{}}
			if len(program) > 0 && program[0]%3 == 0 {
				d.m.maxWaiters = 2
			}
			d.c = processlock.New(processlock.Options{MaxWaiters: d.m.maxWaiters, TrackHolds: len(program)%2 == 0})
			defer d.cleanUp()
			for ; len(program) >= 3 && len(d.calls) < 40; program = program[3:] {
				d.step(program[0], program[1], program[2])
				d.check()
			}
			d.finish()
		})
	})
}

// step makes one step of a program.
func (d *scDriver) step(kind, a, b byte) {
	switch kind % 16 {
	case 0, 1, 2, 3:
		d.call(nil, a, b)
	case 4, 5, 6, 7:
		if i := d.choose(b>>4, "runs"); i >= 0 {
			d.call(append([]int{i}, d.m.calls[i].above...), a, b)
		} else {
			d.call(nil, a, b)
		}
	case 8, 9, 10, 11:
		if i := d.choose(a, "runs"); i >= 0 {
			d.note("call %d returns", i)
			if b%4 == 0 {
				d.calls[i].result = errScFn
			}
			d.returns(i)
		}
	case 12:
		if i := d.choose(a, "waits"); i >= 0 {
			d.note("cancel call %d", i)
			d.calls[i].cancel()
			d.m.cancel(i)
		}
	case 13:
		if i := d.choose(a, []string{"waits", "runs"}[b%2]); i >= 0 {
			d.note("close the client of call %d", i)
			d.calls[i].client.Close()
			d.m.closeClient(i)
		}
	case 14:
		d.note("tick")
		time.Sleep(scTick)
		d.m.tick(int(scTick))
	case 15:
		if d.down == nil && a%4 == 0 && d.all("waits") < 0 {
			d.note("shutdown")
			d.down = make(chan struct{})
			go func() {
				defer close(d.down)
				if err := d.c.Shutdown(context.Background()); err != nil {
					d.t.Errorf("Shutdown: %v", err)
				}
			}()
			d.m.shutdown()
		}
	}
	synctest.Wait()
}

func (d *scDriver) note(format string, args ...any) {
	d.trace = append(d.trace, fmt.Sprintf(format, args...))
}

// choose returns a call that is in a state, or -1.
func (d *scDriver) choose(n byte, state string) int {
	var some []int
	for i, c := range d.m.calls {
		if c.state == state {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return -1
	}
	return some[int(n)%len(some)]
}

// all returns the call for several keys that is in a state, or -1.
func (d *scDriver) all(state string) int {
	for i, c := range d.m.calls {
		if len(c.keys) > 1 && c.state == state {
			return i
		}
	}
	return -1
}

// call makes a call in the fns of above.
func (d *scDriver) call(above []int, a, b byte) {
	n := len(d.calls)
	c := scCall{
		keys: []int{int(a) % scKeys}, above: above,
		shared: a>>2%5 < 2, try: a>>4%8 == 7, reentrant: b%8 == 7,
	}
	if b>>3%3 == 2 && d.all("waits") < 0 && d.all("runs") < 0 {
		c.keys = [][]int{{0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}[b>>5%4]
	}
	ctx := context.Background()
	if len(above) > 0 {
		ctx = context.WithoutCancel(d.calls[above[0]].ctx)
	}
	x := &scLive{}
	ctx, x.client = d.c.WithClient(ctx, strconv.Itoa(n))
	ctx, x.cancel = context.WithCancel(ctx)
	var opts []processlock.Option
	if c.shared {
		opts = append(opts, processlock.Shared)
	}
	if c.try {
		opts = append(opts, processlock.IfAvailable)
	}
	if c.reentrant {
		opts = append(opts, processlock.Reentrant)
	}
	if a>>5%4 == 3 {
		c.maxWait = int(scTick)*(1+int(b%2)) + n + 1 // no two run out together
		opts = append(opts, processlock.MaxWait(time.Duration(c.maxWait)))
	}
	var key any = c.keys[0]
	if len(c.keys) > 1 {
		key = processlock.All(c.keys[1], c.keys[0], c.keys[len(c.keys)-1])
	}
	d.note("call %d: %+v", n, c)
	d.m.calls = append(d.m.calls, c)
	d.calls = append(d.calls, x)
	x.ltCall = ltGoLast(ctx, d.c, key, func(context.Context) error { return x.result }, opts...)
	d.m.proceed(n)
}

// returns lets the fn of a call return.
func (d *scDriver) returns(i int) {
	close(d.calls[i].gate)
	synctest.Wait()
	want := []string{}
	if !d.m.release(i) {
		want = append(want, "lost")
	}
	if d.calls[i].result != nil {
		want = append(want, "fn")
	}
	d.m.calls[i].err = strings.Join(want, "+")
}

// finish lets every fn return.
func (d *scDriver) finish() {
	for range d.calls {
		if i := d.choose(0, "runs"); i >= 0 {
			d.returns(i)
			d.check()
		}
	}
	ltIdle(d.t, d.c)
}

// cleanUp ends what is left after a failure: nothing may outlive the bubble.
func (d *scDriver) cleanUp() {
	for _, x := range d.calls {
		x.client.Close()
		x.cancel()
	}
	synctest.Wait()
	for _, x := range d.calls {
		if x.state() == "runs" {
			x.open()
		}
	}
}
