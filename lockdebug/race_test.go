//go:build race

package lockdebug_test

// slowdown is what the race detector costs at most, and others on the machine.
const slowdown = 25
