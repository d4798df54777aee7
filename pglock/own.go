package pglock

import (
	"slices"

	"github.com/dbx-tools/processlock"
)

// askOwn asks the server for a lock on a session of c's own. Called under mu.
func (e *entry) askOwn(c *claim) {
	l := e.l
	e.revoke(c)
	give := e.lease
	if give != nil && (len(give.users) > 0 || give.ref.mode == processlock.ModeShared && c.hold.ref.mode == processlock.ModeShared) {
		give = nil // shared beside shared
	}
	if give != nil {
		e.lease = nil
		defer l.leaveRoom()
	}
	e.own++
	e.startWait(c, give)
}

// endOwn releases the lock of a session that was lent. Called under mu.
func (e *entry) endOwn(t *tenure, answer chan bool) {
	close(t.over)
	e.lent = slices.DeleteFunc(e.lent, func(o *tenure) bool { return o == t })
	t.sess.release(t, func(ok bool) {
		l := e.l
		l.mu.Lock()
		e.own--
		l.leaveRoom()
		e.progress()
		l.mu.Unlock()
		if answer != nil {
			answer <- ok
		}
	})
}
