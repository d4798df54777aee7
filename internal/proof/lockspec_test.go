package proof

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// The sequential specification of one key that recorded histories are checked
// against. A request arrives once, by which it is granted at once or queued; a
// release grants to the front of the queue in the same step. That some order of
// the recorded operations within their intervals obeys it means exclusion and
// order of arrival: a request that had provably arrived before another cannot be
// inside after it in any such order.

type event byte

const (
	evArrive  event = iota // granted at once or queued
	evEnter                // fn runs, so it holds the key; changes nothing
	evRelease              // ends its hold
	evLeave                // gives up, wherever it is
	evTimeout              // gives up its place in the queue; the grant would have won
	evTried                // was granted at once
	evRefused              // was not to be granted at once
	evFull                 // nor was there room in the queue
	evRob                  // Client.Close takes its hold
	evLook                 // the row as Snapshot showed it
)

var eventNames = [...]string{"arrive", "enter", "release", "leave", "timeout", "tried", "refused", "full", "rob", "look"}

// input is an operation of the history.
type input struct {
	key        string
	event      event
	request    request
	maxWaiters int
	row        string // evLook
}

// request is a request's number and mode in one byte.
type request byte

func newRequest(id int, shared bool) request {
	r := request(id << 1)
	if shared {
		r |= 1
	}
	return r
}

func (r request) shared() bool { return r&1 != 0 }

// A row is written as its holders and its queue with a bar between, a byte
// each: a string, so that == tells rows apart.
const bar = 255

func rowText(holders, queue []byte) string {
	return string(slices.Concat(holders, []byte{bar}, queue))
}

// specStep is one operation on one key.
func specStep(row string, in input) (bool, string) {
	cut := bytes.IndexByte([]byte(row), bar)
	holders, queue := []byte(row[:cut]), []byte(row[cut+1:])
	id := byte(in.request)
	fits := func(q byte) bool {
		return len(holders) == 0 || request(q).shared() && request(holders[0]).shared()
	}
	free := len(queue) == 0 && fits(id)
	inside, waits := bytes.IndexByte(holders, id), bytes.IndexByte(queue, id)
	switch in.event {
	case evArrive:
		if inside >= 0 || waits >= 0 {
			return false, row
		}
		queue = append(queue, id)
	case evEnter:
		return inside >= 0, row
	case evTried:
		if !free {
			return false, row
		}
		holders = append(holders, id)
	case evRefused:
		return !free, row
	case evFull:
		return !free && len(queue) >= in.maxWaiters, row
	case evLook:
		return in.row == row, row
	case evRelease, evRob:
		if inside < 0 {
			return false, row
		}
		holders = slices.Delete(holders, inside, inside+1)
	case evTimeout, evLeave:
		switch {
		case waits >= 0:
			queue = slices.Delete(queue, waits, waits+1)
		case inside >= 0 && in.event == evLeave:
			holders = slices.Delete(holders, inside, inside+1)
		default:
			return false, row
		}
	}
	for len(queue) > 0 && fits(queue[0]) {
		holders, queue = append(holders, queue[0]), queue[1:]
	}
	return true, rowText(holders, queue)
}

// lockSpec is specStep for porcupine.
var lockSpec = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := make(map[string]int)
		for _, op := range history {
			key := op.Input.(input).key
			i, ok := byKey[key]
			if !ok {
				i = len(parts)
				byKey[key] = i
				parts = append(parts, nil)
			}
			parts[i] = append(parts[i], op)
		}
		return parts
	},
	Init: func() any { return string([]byte{bar}) },
	Step: func(row, in, _ any) (bool, any) {
		return specStep(row.(string), in.(input))
	},
	DescribeOperation: func(in, _ any) string {
		i := in.(input)
		return fmt.Sprintf("%s %s %d shared=%t %v", i.key, eventNames[i.event], i.request>>1, i.request.shared(), []byte(i.row))
	},
}
