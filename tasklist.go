package processlock

// taskList is a doubly linked list.
type taskList struct{ first, last *task }

func (l *taskList) push(t *task) {
	t.prev = l.last
	if l.last == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
}

func (l *taskList) remove(t *task) {
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}
