package pglock

// hasRoom reports whether e may ask for a lock. Who holds something never waits
// for that, nor does who keeps such a request waiting. Called under mu.
func (l *Locker) hasRoom(e *entry) bool { return l.keys < l.opts.MaxKeys || len(e.nested) > 0 }

// makeWait has e wait until there is room. Called under mu.
func (l *Locker) makeWait(e *entry) {
	if !e.crowdOut {
		e.crowdOut = true
		l.crowd = append(l.crowd, e)
	}
}

// leaveRoom follows the end of a lock, or of the wish for one. Called under mu.
func (l *Locker) leaveRoom() {
	l.keys--
	for len(l.crowd) > 0 && l.keys < l.opts.MaxKeys {
		e := l.crowd[0]
		l.crowd = l.crowd[1:]
		e.crowdOut = false
		e.progress()
	}
	for w := range l.starving {
		w.nudge()
	}
}
