// Package proof holds no code but tests of processlock that stand on its
// exported API alone, and need modules that the core must not require: a model
// with random programs, histories checked for linearizability, and a soak. See
// README.md.
package proof
