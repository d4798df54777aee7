package proof

import (
	"fmt"

	"pgregory.net/rapid"
)

// program is what is drawn at random and shrunk. Its numbers are taken modulo
// what there is to choose from at that moment, so that a program from which
// steps were struck out is still a program.
type program struct {
	coordinators, keys, maxWaiters int
	track                          bool
	ops                            []op
}

type op struct {
	kind   kind
	quiet  bool // let everybody come to rest before the next step
	target int  // which call, client or context

	keys                   []int
	shared, try, reentrant bool
	maxWait, deadline      int // in ticks; 0: none
	coordinator            int
	client                 int  // where a new client is made: on coordinator client-1; 0: none
	detour                 int  // 0 to 7: plain; 8: Detach; 9: WithoutCancel
	fellow                 bool // the context of a client that is there already
	heir                   bool // see theme.heirs
	outcome                outcome
}

type kind string

const (
	opRoot     kind = "root"    // a call without lineage
	opNested   kind = "nested"  // a call in somebody's fn
	opKept     kind = "kept"    // a call with the context of an fn that may have returned
	opReturn   kind = "return"  // an fn ends that waits for nobody
	opLeave    kind = "leave"   // an fn ends, whoever is under it
	opOutlive  kind = "outlive" // an fn ends under which a task waits
	opCancel   kind = "cancel"
	opCause    kind = "cancel with a cause"
	opClose    kind = "close"
	opTick     kind = "tick"
	opShutdown kind = "shutdown"
	opGroup    kind = "group"
	opTask     kind = "task"
	opWait     kind = "wait"
)

// theme is what a program is mostly about: what takes several rare steps in a
// row is met in programs that have few others.
type theme struct {
	kinds  []kind
	single int  // of four calls, how many are for one key
	heirs  bool // tasks take over what the fn holds in which their group was made
}

var themes = []theme{
	{kinds, 3, false},
	{kinds, 3, false},
	{[]kind{opRoot, opRoot, opReturn, opTick}, 1, false},
	{[]kind{opRoot, opRoot, opRoot, opReturn, opCancel, opClose}, 3, false},
	{[]kind{opRoot, opNested, opNested, opReturn, opLeave, opCancel}, 3, false},
	{[]kind{opGroup, opTask, opTask, opTask, opTask, opRoot, opNested, opReturn, opReturn, opReturn, opLeave, opCancel, opClose, opTick, opWait}, 3, false},
	{[]kind{opGroup, opTask, opTask, opTask, opTask, opRoot, opReturn, opReturn, opTick, opShutdown}, 1, false},
	// Tasks outlive the fns whose holds they have taken over: rare, so twice.
	{[]kind{opRoot, opGroup, opTask, opTask, opTask, opOutlive, opOutlive, opReturn, opReturn, opTick}, 3, true},
	{[]kind{opRoot, opGroup, opTask, opTask, opTask, opOutlive, opOutlive, opReturn, opReturn, opTick}, 3, true},
}

// kinds are weighted: nested calls and the ends of fns make most of what can go
// wrong.
var kinds = []kind{
	opRoot, opRoot, opRoot, opRoot, opRoot, opNested, opNested, opNested, opNested, opKept,
	opReturn, opReturn, opReturn, opReturn, opLeave, opCancel, opCancel, opCause, opClose, opTick, opTick, opShutdown,
	opGroup, opTask, opTask,
}

// below draws a number from 0 to limit-1, all of them alike: rapid's integers
// prefer small ones. It shrinks to 0, which is the plainest choice everywhere.
func below(t *rapid.T, limit int) int {
	return rapid.SampledFrom(numbers[:limit]).Draw(t, "n")
}

var numbers = func() (all [32]int) {
	for i := range all {
		all[i] = i
	}
	return all
}()

func genProgram(t *rapid.T) program {
	n := func(limit int) int { return below(t, limit) }
	theme := themes[n(len(themes))]
	p := program{
		coordinators: 1 + n(4)/3,
		keys:         1 + n(4),
		maxWaiters:   max(0, n(8)-5),
		track:        n(2) == 1,
	}
	calm := n(3) // how many of three steps are waited for
	// Left to itself rapid draws short lists.
	least := []int{1, 10, 20, 30}[n(4)]
	if theme.heirs { // it takes a few
		least = 30
	}
	p.ops = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op { return genOp(t, calm, theme) }), least, 40).Draw(t, "ops")
	return p
}

func genOp(t *rapid.T, calm int, theme theme) op {
	n := func(limit int) int { return below(t, limit) }
	o := op{kind: theme.kinds[n(len(theme.kinds))], quiet: n(4) <= calm+1, target: n(16)}
	switch o.kind {
	case opRoot, opNested, opKept, opGroup, opTask:
		count := 1
		if n(4) >= theme.single {
			count = 2 + n(2)
		}
		for range count {
			o.keys = append(o.keys, n(4))
		}
		o.shared, o.try, o.reentrant = n(5) >= 3, n(12) == 11, n(6) == 5 || theme.heirs
		o.maxWait, o.deadline = max(0, n(12)-8), max(0, n(12)-8)
		o.coordinator, o.client, o.detour = n(2), max(0, n(6)-3), n(10)
		o.fellow, o.heir = n(3) == 2, theme.heirs
	case opReturn, opLeave, opOutlive:
		o.outcome = returnsNil + outcome(max(0, n(8)-4)%4)
	case opShutdown:
		o.coordinator, o.deadline, o.detour = n(2), max(0, n(6)-3), n(3)
		if n(4) > 0 { // seldom, since little happens afterwards
			o.kind = opReturn
			o.outcome = returnsNil
		}
	}
	return o
}

func (o op) String() string { return fmt.Sprintf("%+v", struct{ op }{o}) }
