package locktest

import (
	"errors"

	"github.com/dbx-tools/processlock"
)

// runs fails the check unless c's fn runs, and returns c.
func (k *kit) runs(c *call) *call {
	k.Helper()
	if !k.until(func() bool { return c.hasEntered() || c.isOver() }) || !c.hasEntered() || c.isOver() {
		k.fatal("key %v: fn should run now, but the call %v", c.key, c)
	}
	return c
}

// waits fails the check if c does not wait. On real time without
// Options.Waiters all that is certain is that it was not served; a check that
// needs more asks for certainty.
func (k *kit) waits(c *call) *call {
	k.Helper()
	return k.waitsFor(c, c.key)
}

// waitsFor is waits for a request of several keys, of which it waits for key.
func (k *kit) waitsFor(c *call, key any) *call {
	k.Helper()
	k.settle()
	if want := canonical(key); want != "" && k.opts.RealTime && k.opts.Waiters != nil {
		c.waitsFor = want
		k.until(func() bool { return !c.pending() || k.opts.Waiters(k.l, key) >= k.waiting(want) })
	}
	if !c.pending() {
		k.fatal("key %v: the call should wait, but it %v", key, c)
	}
	return c
}

// waiting counts the calls that should wait for a key.
func (k *kit) waiting(canonical string) int {
	n := 0
	for _, c := range k.made() {
		if c.waitsFor == canonical && c.pending() {
			n++
		}
	}
	return n
}

// canonical returns the text of one key, or "".
func canonical(key any) string {
	read, err := processlock.KeyOf(key)
	if err != nil {
		return ""
	}
	return read.Canonical()
}

// blocks waits until c, which is exclusive, is certainly queued for a key that
// is held Shared: no other Shared request may pass it.
func (k *kit) blocks(c *call) *call {
	k.Helper()
	if !k.until(func() bool { return !c.pending() || unavailable(k.try(c.key, processlock.Shared)) }) || !c.pending() {
		k.fatal("key %v: an exclusive request should wait and keep shared ones out, but it %v", c.key, c)
	}
	return c
}

// served fails the check unless c has run and returned nil.
func (k *kit) served(c *call) {
	k.Helper()
	if !k.closes(c.over) || c.how != "return" || c.runs.Load() != 1 || c.err != nil {
		k.fatal("key %v: the call should have run and returned nil, but it %v", c.key, c)
	}
}

// returns fails the check unless c has run and returned err itself.
func (k *kit) returns(c *call, err error) {
	k.Helper()
	if !k.closes(c.over) || c.how != "return" || c.runs.Load() != 1 {
		k.fatal("key %v: the call should have run, but it %v", c.key, c)
	}
	if !same(c.err, err) {
		k.fail("key %v: fn returned %v, its caller got %T %v", c.key, err, c.err, c.err)
	}
}

// refused fails the check unless c has not run and its AcquireError is all of
// reasons.
func (k *kit) refused(c *call, reasons ...error) *processlock.AcquireError {
	k.Helper()
	if !k.closes(c.over) || c.how != "return" || c.runs.Load() != 0 {
		k.fatal("key %v: the call should be refused with %v, but it %v", c.key, reasons, c)
	}
	for _, reason := range reasons {
		if !errors.Is(c.err, reason) {
			k.fail("key %v: the error should be %v, not %v", c.key, reason, c.err)
		}
	}
	e, ok := c.err.(*processlock.AcquireError)
	if !ok {
		k.fatal("key %v: the error of a call that did not run should be an *AcquireError, not %T", c.key, c.err)
	}
	return e
}

// names fails the check unless e names key.
func (k *kit) names(e *processlock.AcquireError, key any) {
	k.Helper()
	want, err := processlock.KeyOf(key)
	if err != nil {
		k.fatal("KeyOf(%v): %v", key, err)
	}
	if e.Key == (processlock.Key{}) || e.Key.Canonical() != want.Canonical() {
		k.fail("AcquireError.Key is %v, not %v", e.Key, want)
	}
}

// free fails the check unless key can be had: right now in a bubble.
func (k *kit) free(keys ...any) {
	k.Helper()
	for _, key := range keys {
		var err error
		if !k.until(func() bool { err = k.try(key); return err == nil }) {
			k.fail("key %v should be free: %v", key, err)
		}
	}
}

// held fails the check if key can be had.
func (k *kit) held(keys ...any) {
	k.Helper()
	for _, key := range keys {
		if err := k.try(key); !unavailable(err) {
			k.fail("key %v should be held, but a try returned %v", key, err)
		}
	}
}

// same is a == b for errors that may not be comparable.
func same(a, b error) (equal bool) {
	defer func() {
		if recover() != nil {
			equal = false
		}
	}()
	return a == b
}
