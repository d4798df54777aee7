// Package pools has examples of worker pools made by others, ants and conc, whose
// tasks lock by key. It is a module of its own, so that nobody has to download
// the pools to use processlock.
//
// What such a pool runs is wrapped with processlock.Worker, so that snapshots and
// errors say which task holds a key and which waits for it. A task whose key is
// busy keeps its worker until it has had its turn. Where that starves other keys
// use a processlock.Group, whose tasks wait in the key's queue.
package pools
