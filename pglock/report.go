package pglock

// warn tells Options.Logger, on a goroutine of its own: the handler may lock in
// turn, and anybody else's goroutine may be the one that it would wait for.
func (l *Locker) warn(msg string, args ...any) {
	if l.opts.Logger != nil {
		go l.opts.Logger.Warn("pglock: "+msg, args...)
	}
}
