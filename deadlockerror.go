package processlock

import (
	"path"
	"runtime"
	"strconv"
	"strings"
)

// DeadlockError reports a wait that could never have ended, whatever its
// deadline: a cycle in the wait-for graph (Coffman, Elphick and Shoshani,
// "System Deadlocks", 1971). [errors.Is] finds [ErrDeadlock] in it.
//
// Only waits of WithLock calls and of Group tasks are seen, made with the context
// of the fn that holds: not channels, WaitGroups or other locks.
//
// What the failing call's lineage holds stays held, so asking again from there
// fails again. The others on the cycle go on once the fns around the failing
// call have returned.
type DeadlockError struct {
	// Cycle lists who holds what the step before it wants. The failing call
	// wants the first key; the holder of the last is the failing call's own
	// lineage, or one of the keys of [All] that it has taken already.
	Cycle []Wait
}

// Wait is a step of a deadlock: a key that is wanted, and its holder.
type Wait struct {
	Key    Key
	Client string // name of the holder's client, if it has one

	// Func, File and Line tell where the holder's fn begins. A method value
	// has a name only.
	Func, File string
	Line       int

	Mode Mode // in which the key is held
}

// Error describes the cycle on one line. If it has one step it names the way
// out.
func (e *DeadlockError) Error() string {
	var b strings.Builder
	b.WriteString(prefix + "deadlock: this call")
	for i, w := range e.Cycle {
		if i > 0 {
			b.WriteString(", which")
		}
		b.WriteString(" wants " + w.Key.String() + ", held ")
		if w.Mode == ModeShared {
			b.WriteString("shared ")
		}
		b.WriteString("by " + w.holder(i == len(e.Cycle)-1))
	}
	if len(e.Cycle) == 1 {
		out := "Reentrant runs under the hold that is there"
		if e.Cycle[0].Mode == ModeShared {
			out = "a shared hold serves only a call that is Shared and Reentrant"
		}
		b.WriteString("; " + out + ", Detach(ctx) is for a goroutine that outlives fn")
	}
	return b.String()
}

// Unwrap returns [ErrDeadlock].
func (e *DeadlockError) Unwrap() error { return ErrDeadlock }

// holder says who holds w.Key; own: the failing call's own lineage.
func (w Wait) holder(own bool) string {
	who, article := quoteName(w.Client), ""
	if w.Client == "" {
		who, article = "fn", "an "
	}
	if own {
		article = "this call's own "
	}
	switch {
	case w.File != "":
		return article + who + " at " + oneLine(path.Base(w.File)) + ":" + strconv.Itoa(w.Line)
	case w.Func != "":
		return article + who + " in " + oneLine(w.Func)
	default:
		return article + who
	}
}

// quoteName returns a client's name as it is if it reads as one word, else
// quoted.
func quoteName(name string) string {
	for _, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:@#", r)) {
			return strconv.Quote(name)
		}
	}
	return name
}

// locate tells where the function whose code begins at pc is declared.
func locate(pc uintptr) (name, file string, line int) {
	f := runtime.FuncForPC(pc)
	if f == nil {
		return "", "", 0
	}
	name = f.Name()
	if bound, ok := strings.CutSuffix(name, "-fm"); ok { // a method value: generated code
		return bound, "", 0
	}
	file, line = f.FileLine(pc)
	return name, file, line
}
