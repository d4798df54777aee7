package pglock

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout bounds how long what was sent may go unacknowledged. Keepalives
// don't: while something is under way none is sent, and the kernel's own patience
// is a quarter of an hour.
func setUserTimeout(conn net.Conn, d time.Duration) {
	c, ok := conn.(syscall.Conn) // a socket of another kind refuses the option
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}
