package pools_test

import "runtime"

// await returns once met does; nothing that the examples wait for depends on
// how long that takes.
func await(met func() bool) {
	for !met() {
		runtime.Gosched()
	}
}
