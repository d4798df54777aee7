//go:build race

package processlock

// ctRace tells whether the race detector watches, which makes big tests slow.
const ctRace = true
