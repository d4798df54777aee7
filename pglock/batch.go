package pglock

import (
	"strconv"
	"strings"
)

// rowsFrom is from how many keys on a query has them as rows and not as columns.
// The server reads columns one by one, which takes it longer than to lock them, but
// is done sooner with a few.
const rowsFrom = 16

// compose is one query for all that batch asks for: unlocks first, since what is
// given up may be what is asked for.
func compose(batch []*op) string {
	var unlocks, tries []lockRef
	var comments strings.Builder
	for _, o := range batch {
		if o.unlocks {
			unlocks = append(unlocks, o.unlock)
		}
		if o.tries {
			tries = append(tries, o.try)
			comments.WriteString(comment(o.key))
		}
	}
	var q strings.Builder
	if len(unlocks) > 0 {
		each(&q, "pg_advisory_unlock", unlocks)
	}
	if len(tries) > 0 {
		if q.Len() > 0 {
			q.WriteString("; ")
		}
		each(&q, "pg_try_advisory_lock", tries)
		q.WriteString(comments.String())
	}
	return q.String()
}

// each writes the query that calls function for each of refs, in order.
func each(q *strings.Builder, function string, refs []lockRef) {
	q.WriteString("select ")
	rows := len(refs) >= rowsFrom
	for _, r := range refs {
		rows = rows && r.mode == refs[0].mode
	}
	if !rows {
		for i, r := range refs {
			if i > 0 {
				q.WriteString(", ")
			}
			q.WriteString(r.call(function))
		}
		return
	}
	q.WriteString(refs[0].function(function) + "(id) from pg_catalog.unnest('{")
	for i, r := range refs {
		if i > 0 {
			q.WriteByte(',')
		}
		q.WriteString(strconv.FormatInt(r.id, 10))
	}
	q.WriteString("}'::pg_catalog.int8[]) id")
}

// distribute gives each op of batch its part of the answer.
func (s *session) distribute(batch []*op, r reply) {
	var answers []string // of the unlocks, then of the tries
	for _, row := range r.rows {
		answers = append(answers, row...)
	}
	unlocks := 0
	for _, o := range batch {
		if o.unlocks {
			unlocks++
		}
	}
	unlocked, granted := answers[:unlocks], answers[unlocks:]
	for _, o := range batch {
		var res opResult
		if o.unlocks {
			res.unlocked, unlocked = unlocked[0] == "t", unlocked[1:]
		}
		if o.tries {
			res.granted, granted = granted[0] == "t", granted[1:]
		}
		s.finish(o, res)
	}
}
