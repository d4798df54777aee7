// Package pgtest runs real PostgreSQL servers for tests, examples and
// measurements: throwaway clusters with settings of their own, their standbys,
// poolers in front of them, and proxies that break the network between.
//
// Everything that it starts dies with the process that started it, however that
// one ends: see watch.
package pgtest
