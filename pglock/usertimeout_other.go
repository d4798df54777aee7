//go:build !linux

package pglock

import (
	"net"
	"time"
)

// setUserTimeout would bound how long what was sent may go unacknowledged. Here
// only the kernel's own patience does.
func setUserTimeout(net.Conn, time.Duration) {}
