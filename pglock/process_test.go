package pglock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// The test binary runs itself again as another process, in the role that this
// variable names.
const (
	roleVariable = "PGLOCK_TEST_ROLE"
	dsnVariable  = "PGLOCK_TEST_ROLE_DSN"
	optsVariable = "PGLOCK_TEST_ROLE_OPTIONS"
)

// roles are what other processes do. One that reads its standard input ends with
// it, and so with the test.
var roles = map[string]func() error{
	"agent":  agentRole,
	"ids":    idsRole,
	"storm":  stormRole,
	"unused": unusedRole,
}

func runRole(role string) {
	if err := roles[role](); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// roleLocker makes the Locker that the environment describes.
func roleLocker() (*pglock.Locker, error) {
	var opts pglock.Options
	if err := json.Unmarshal([]byte(os.Getenv(optsVariable)), &opts); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(context.Background(), os.Getenv(dsnVariable))
	if err != nil {
		return nil, err
	}
	return pglock.New(pool, opts), nil
}

// child prepares another process in a role.
func (b *bed) child(role string, opts pglock.Options) *exec.Cmd {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	text, err := json.Marshal(opts)
	require.NoError(b, err)
	cmd := exec.Command(self)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dsnVariable+"="+b.db.DSN(), optsVariable+"="+string(text),
		"GORACE=atexit_sleep_ms=0")
	return cmd
}

// order is what a test tells an agent.
type order struct {
	Do    string // "lock", "let", "cancel"
	Call  int
	Key   string
	Under int // the call in whose fn this one is made; 0: none
	Opts  []string
}

// event is what an agent tells its test of a call.
type event struct {
	Call    int
	Entered bool // else it has returned
	Err     string
	Is      []string
}

// sentinels are the errors that an agent's call is told apart by.
var sentinels = map[string]error{
	"deadlock": processlock.ErrDeadlock, "lost": processlock.ErrLost, "unavailable": processlock.ErrUnavailable,
	"timeout": processlock.ErrWaitTimeout, "closed": processlock.ErrClosed,
	"canceled": context.Canceled, "deadline": context.DeadlineExceeded,
}

// remoteError is the error of a call in another process.
type remoteError struct {
	text string
	is   []string
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Is(target error) bool {
	for _, name := range e.is {
		if sentinels[name] == target {
			return true
		}
	}
	return false
}

var callOptions = map[string]processlock.Option{
	"shared": processlock.Shared, "ifavailable": processlock.IfAvailable, "reentrant": processlock.Reentrant,
}

// agentRole makes the calls that it is told to.
func agentRole() error {
	l, err := roleLocker()
	if err != nil {
		return err
	}
	type running struct {
		ctx    context.Context // fn's
		let    chan struct{}
		cancel context.CancelFunc
	}
	var (
		mu    sync.Mutex
		out   = json.NewEncoder(os.Stdout)
		calls = make(map[int]*running)
	)
	tell := func(e event) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(e)
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		mu.Lock()
		c := calls[o.Call]
		mu.Unlock()
		switch o.Do {
		case "let":
			close(c.let)
		case "cancel":
			c.cancel()
		case "lock":
			parent := context.Background()
			mu.Lock()
			if o.Under != 0 {
				parent = calls[o.Under].ctx
			}
			c = &running{let: make(chan struct{})}
			parent, c.cancel = context.WithCancel(parent)
			calls[o.Call] = c
			mu.Unlock()
			var opts []processlock.Option
			for _, name := range o.Opts {
				opts = append(opts, callOptions[name])
			}
			go func() {
				err := l.WithLock(parent, o.Key, func(ctx context.Context) error {
					mu.Lock()
					c.ctx = ctx
					mu.Unlock()
					tell(event{Call: o.Call, Entered: true})
					<-c.let
					return nil
				}, opts...)
				e := event{Call: o.Call}
				if err != nil {
					e.Err = err.Error()
					for name, sentinel := range sentinels {
						if errors.Is(err, sentinel) {
							e.Is = append(e.Is, name)
						}
					}
				}
				tell(e)
			}()
		}
	}
}

// agent is another process that makes calls for a test.
type agent struct {
	b   *bed
	cmd *exec.Cmd
	in  io.WriteCloser

	mu    sync.Mutex
	calls map[int]*call
	n     int
}

// agent starts another process with a Locker.
func (b *bed) agent(opts pglock.Options) *agent {
	b.Helper()
	a := &agent{b: b, cmd: b.child("agent", opts), calls: make(map[int]*call)}
	var err error
	a.in, err = a.cmd.StdinPipe()
	require.NoError(b, err)
	out, err := a.cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, a.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		a.read(out)
	}()
	b.Cleanup(func() {
		_ = a.in.Close()
		_ = a.cmd.Process.Kill()
		<-read
		_ = a.cmd.Wait()
	})
	return a
}

// read hears what the agent tells. When it has gone, all its calls are over.
func (a *agent) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		a.mu.Lock()
		c := a.calls[e.Call]
		if e.Entered {
			close(c.entered)
		} else {
			if e.Err != "" {
				c.err = &remoteError{e.Err, e.Is}
			}
			close(c.over)
		}
		a.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		if !isClosed(c.over) {
			c.err = &remoteError{text: "the process is gone"}
			close(c.over)
		}
	}
}

func (a *agent) tell(o order) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = json.NewEncoder(a.in).Encode(o)
}

// start makes a call in the agent's process.
func (a *agent) start(key string, opts ...string) *call { return a.under(nil, key, opts...) }

// under is start with the context of another call's fn.
func (a *agent) under(outer *call, key string, opts ...string) *call {
	c := a.b.newCall(key)
	a.mu.Lock()
	a.n++
	o := order{Do: "lock", Call: a.n, Key: key, Opts: opts}
	for n, known := range a.calls {
		if known == outer {
			o.Under = n
		}
	}
	a.calls[a.n] = c
	a.mu.Unlock()
	c.open = func() { a.tell(order{Do: "let", Call: o.Call}) }
	c.cancel = func() { a.tell(order{Do: "cancel", Call: o.Call}) }
	a.tell(o)
	a.b.ends(c)
	return c
}

// hold makes a call in the agent's process and returns when its fn runs.
func (a *agent) hold(key string, opts ...string) *call {
	a.b.Helper()
	return a.start(key, opts...).runs()
}
