package locktest

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dbx-tools/processlock"
)

// touchyError counts what is asked of it.
type touchyError struct{ touched *atomic.Int64 }

func (e *touchyError) Error() string       { e.touched.Add(1); return "touchy" }
func (e *touchyError) Is(error) bool       { e.touched.Add(1); return false }
func (e *touchyError) Unwrap() error       { e.touched.Add(1); return nil }
func (e *touchyError) As(any) (found bool) { e.touched.Add(1); return false }
func newTouchyError() *touchyError         { return &touchyError{touched: new(atomic.Int64)} }
func returning(err error) lockFn           { return func(context.Context) error { return err } }

var resultsRule = rule{13, "results", []check{
	{"fns_error_is_the_same_value", 0, func(k *kit) {
		touchy := newTouchyError()
		both := errors.Join(errCause, context.Canceled)
		for _, err := range []error{
			nil, errCause, both, context.Canceled, context.DeadlineExceeded,
			processlock.ErrUnavailable, processlock.ErrLost, processlock.ErrClosed,
			&processlock.AcquireError{Err: processlock.ErrDeadlock}, touchy,
		} {
			k.returns(k.do(k.ctx, k.key("a"), returning(err)), err)
			a := k.hold(k.key("a"))
			b := k.waits(k.startThen(k.ctx, k.key("a"), returning(err)).open())
			a.open()
			k.served(a)
			k.returns(b, err)
		}
		if n := touchy.touched.Load(); n != 0 {
			k.fail("fn's error was asked something %d times", n)
		}
	}},
	{"fns_error_of_all", all, func(k *kit) {
		k.returns(k.do(k.ctx, processlock.All(k.key("a"), k.key("b")), returning(errCause)), errCause)
	}},
	{"fns_error_of_shared", shared, func(k *kit) {
		k.returns(k.do(k.ctx, k.key("a"), returning(errCause), processlock.Shared), errCause)
	}},
	{"refusals_name_the_key", 0, func(k *kit) {
		canceled, cancel := context.WithCancel(k.ctx)
		cancel()
		key := []any{k.key("a"), 7}
		k.names(k.refused(k.do(canceled, key, nop), context.Canceled), key)
		a := k.hold(key)
		k.names(k.refused(k.start(k.ctx, key, processlock.IfAvailable), processlock.ErrUnavailable), key)
		c := k.start(k.ctx, key, processlock.MaxWait(time.Millisecond))
		k.closesWithin(c.over, k.patience())
		k.names(k.refused(c, processlock.ErrWaitTimeout), key)
		a.open()
		k.served(a)
	}},
	{"refusals_of_all_name_the_first", all, func(k *kit) {
		canceled, cancel := context.WithCancel(k.ctx)
		cancel()
		keys := processlock.All(k.key("c"), k.key("a"), k.key("b"))
		k.names(k.refused(k.do(canceled, keys, nop), context.Canceled), k.key("a"))
		k.hold(k.key("b"))
		k.names(k.refused(k.start(k.ctx, keys, processlock.IfAvailable), processlock.ErrUnavailable), k.key("b"))
	}},
}}

var badKeyRule = rule{17, "bad_keys", []check{
	{"are_refused", 0, func(k *kit) {
		for _, bad := range badKeys() {
			e := k.refused(k.do(k.ctx, bad.key, nop), processlock.ErrKey)
			if e.Key != (processlock.Key{}) {
				k.fail("%s: AcquireError.Key is %v, not the zero Key", bad.name, e.Key)
			}
			if !strings.Contains(e.Error(), bad.path) {
				k.fail("%s: the error doesn't name the path %s: %v", bad.name, bad.path, e)
			}
		}
	}},
	{"marshal_text_fails", 0, func(k *kit) {
		k.refused(k.do(k.ctx, failingText{}, nop), processlock.ErrKey, errCause)
	}},
	{"all_in_a_key", all, func(k *kit) {
		k.refused(k.do(k.ctx, []any{processlock.All(k.key("a"))}, nop), processlock.ErrKey)
	}},
	{"bad_key_in_all", all, func(k *kit) {
		e := k.refused(k.do(k.ctx, processlock.All(k.key("a"), math.NaN(), make(chan int)), nop), processlock.ErrKey)
		if e.Key != (processlock.Key{}) || !strings.Contains(e.Error(), "keys[1]") {
			k.fail("the error should have the zero Key and name keys[1]: %v", e)
		}
		k.free(k.key("a"))
	}},
}}

type failingText struct{}

func (failingText) MarshalText() ([]byte, error) { return nil, errCause }

func badKeys() []struct {
	name, path string
	key        any
} {
	cycle := []any{nil}
	cycle[0] = cycle
	return []struct {
		name, path string
		key        any
	}{
		{"func", "key", func() {}},
		{"chan", "key", make(chan int)},
		{"complex", "key", 1i},
		{"NaN", "key", math.NaN()},
		{"infinity in a list", "key[1]", []any{"a", math.Inf(1)}},
		{"chan in a struct in a list", "key[1].Conn", []any{"a", struct{ Conn chan int }{make(chan int)}}},
		{"func in a map", `key["a"]`, map[string]any{"a": func() {}}},
		{"cycle", "key", cycle},
		{"zero Key", "key", processlock.Key{}},
		{"zero Key in a list", "key[0]", []any{processlock.Key{}, 1}},
	}
}

var precedenceRule = rule{18, "order_of_checks", []check{
	{"done_context_before_key", 0, func(k *kit) {
		canceled, cancel := context.WithCancel(k.ctx)
		cancel()
		e := k.refused(k.do(canceled, make(chan int), nop), context.Canceled)
		if errors.Is(e, processlock.ErrKey) || e.Key != (processlock.Key{}) {
			k.fail("the context comes first, and a bad key is the zero Key: %v", e)
		}
	}},
	{"misuse_before_done_context", 0, func(k *kit) {
		canceled, cancel := context.WithCancel(k.ctx)
		cancel()
		k.misused(func() error { return k.l.WithLock(canceled, k.key("a"), nil) })
		k.misused(func() error { return k.l.WithLock(canceled, k.key("a"), nop, nil) })
		k.misused(func() error { return k.l.WithLock(k.ctx, make(chan int), nil) })
	}},
	{"if_available_before_own_lineage", lineage, func(k *kit) {
		a := k.hold(k.key("a"))
		c := k.start(a.ctx, k.key("a"), processlock.IfAvailable)
		k.refused(c, processlock.ErrUnavailable)
		if errors.Is(c.err, processlock.ErrDeadlock) {
			k.fail("a try never waits and can't be a deadlock: %v", c.err)
		}
	}},
	{"reentrant_before_if_available", reentrant | lineage, func(k *kit) {
		a := k.hold(k.key("a"))
		k.served(k.do(a.ctx, k.key("a"), nop, processlock.Reentrant, processlock.IfAvailable))
	}},
	{"granted_before_own_lineage", shared | lineage, func(k *kit) {
		a := k.hold(k.key("a"), processlock.Shared)
		k.served(k.do(a.ctx, k.key("a"), nop, processlock.Shared))
	}},
}}
