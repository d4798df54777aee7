//go:build !race

package lockdebug_test

const slowdown = 1
