// Package e2e tests the page of lockdebug in a real browser, and takes its
// picture for the README. It is a module of its own, which nothing needs, so
// that what drives the browser is no requirement of the library.
package e2e
