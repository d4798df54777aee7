package pglock

import (
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/dbx-tools/processlock"
	"github.com/jackc/pgx/v5"
)

// lineageKey finds the innermost hold of a context.
type lineageKey struct{}

// hold is one fn's turn under a key, and fn's context: the caller's, which ends
// in addition when the lock is lost.
type hold struct {
	joint
	l     *Locker
	call  *call
	ref   lockRef
	key   processlock.Key
	fn    uintptr
	outer *hold     // next of the lineage
	lease *tenure   // what it holds on the server
	tx    *lockedTx // of WithTx
	over  atomic.Bool
}

// Value makes the hold visible below it.
func (h *hold) Value(key any) any {
	if _, ok := key.(lineageKey); ok {
		return h
	}
	return h.joint.Value(key)
}

// conn returns the connection of a hold of WithConn or WithTx.
func (h *hold) conn() *pgx.Conn { return h.lease.sess.conn }

// lineage returns the holds that ctx descends from and that still hold, the
// innermost first, given its innermost.
func (h *hold) lineage(yield func(*hold) bool) {
	for ; h != nil; h = h.outer {
		if !h.over.Load() && !yield(h) {
			return
		}
	}
}

// wait describes h as a step of a deadlock.
func (h *hold) wait() processlock.Wait {
	w := processlock.Wait{Key: h.key, Mode: h.ref.mode}
	w.Func, w.File, w.Line = locate(h.fn)
	return w
}

// funcAddr returns the address of fn's code.
func funcAddr(fn any) uintptr { return reflect.ValueOf(fn).Pointer() }

// locate tells where the function whose code begins at pc is declared.
func locate(pc uintptr) (name, file string, line int) {
	f := runtime.FuncForPC(pc)
	if f == nil {
		return "", "", 0
	}
	if bound, ok := strings.CutSuffix(f.Name(), "-fm"); ok { // a method value: generated code
		return bound, "", 0
	}
	file, line = f.FileLine(pc)
	return f.Name(), file, line
}
