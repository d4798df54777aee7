// Package lockdebug shows who holds which key of a [processlock.Coordinator], who
// waits for whom, and for how long: as a page, as JSON and as a table for a
// terminal. It answers the question of production, which key is stuck and who
// is behind it.
//
// Nothing is registered by itself. Mount the handler where you like, next to
// those of net/http/pprof:
//
//	admin := http.NewServeMux()
//	admin.Handle("/debug/locks", lockdebug.Handler(processlock.Default()))
//	log.Fatal(http.ListenAndServe("localhost:6060", admin))
//
// and open http://localhost:6060/debug/locks, or
//
//	curl 'localhost:6060/debug/locks?format=text'
//
// # Guard it
//
// Keys are your users' data: they name accounts, files and mails. The handler
// asks nobody who they are, so serve it where you would serve pprof: on a port
// that only operators reach, as above, or behind your authentication:
//
//	mux.Handle("/debug/locks", operatorsOnly(lockdebug.Handler(c)))
//
// What it serves can't be framed, stored, or read by other sites, and keys and
// names of clients are escaped in every form. The page runs under a
// Content-Security-Policy that lets in its own style and script alone, and loads
// nothing.
//
// # What a look costs
//
// Nothing, while nobody looks. A request takes one snapshot, which stops no key
// for longer than it takes to copy one part of the table, and locks none. A page
// that is open takes one every three seconds, as long as it is in sight.
//
// # The page
//
// The keys are listed by their longest wait, each with its holders and, in queue
// order, its waiters: the client's name, the function that runs or will run
// under the key, since when, and for a waiter the keys that it holds meanwhile.
// Above are drawn the chains of waits, first those in which a waiter holds a key:
// one wait more can close such a chain to a deadlock, and what is at its left
// end holds up all the rest. A waiter's keys are those of all coordinators,
// and a key of another one that has the same text is drawn as the same.
//
// Since when a key is held that was free when it was asked for is known with
// [processlock.Options].TrackHolds only, and "unknown" without.
//
// The page refreshes itself without losing the filter, focus or scroll. Without
// script it does so by loading anew, and its form and links do the rest.
//
// # Parameters
//
//	key=text       lists only keys whose text contains it, in upper or lower
//	               case; the totals stay those of all keys
//	format=html    the page; also json and text
//	refresh=10     seconds between refreshes of the page, up to 3600; 0: none
//
// Others are not looked at. The page's links and its form keep them, so that
// the token of a proxy in front of it stays in the address: in all 4000 bytes of
// those whose names and values can be printed.
//
// At most 200 keys are listed, with at most 50 holders and 50 waiters each, and
// no further key after 2000 of both; 20 chains; and 10 keys that a waiter holds.
// What is cut is counted.
//
// # JSON
//
// The names of fields are stable; new ones may be added. Times are in RFC 3339,
// UTC. Durations are numbers of seconds, and end in _seconds. A time or
// duration that is not known, or of nothing, is absent.
//
//	taken          when the snapshot was taken
//	filter         the key parameter, as shown
//	now            keys, keys_waited_for, holders, waiters,
//	               longest_wait_seconds, longest_hold_seconds,
//	               holders_since_unknown: over all keys; longest_wait_key and
//	               longest_hold_key (key and id), listed or not
//	counters       acquired, waited, wait_seconds, canceled, unavailable,
//	               deadlocks, closed, lost: as processlock.Stats
//	keys_matching  how many keys match the filter
//	keys_cut       how many of those are not in keys
//	keys           longest wait first, of those without a waiter longest hold;
//	               each has
//	  key                   Key.String
//	  id                    the first 16 bytes of the SHA-256 of Key.Canonical,
//	                        in hex: it tells keys apart whose text is cut
//	  canonical             if key is cut: Key.Canonical, itself cut at 2000
//	                        bytes, escaped as in Go
//	  canonical_bytes       with it: how long that is
//	  longest_wait_seconds  absent if nobody waits
//	  holders               client, func, file, line, mode, since,
//	                        held_seconds, running
//	  holders_cut           how many are not in holders
//	  waiters               in queue order: client, func, file, line, mode,
//	                        position (1 is next), since, waited_seconds,
//	                        holding (each with key and id), holding_cut
//	  waiters_cut           how many are not in waiters
//	chains         parts of the wait-for graph in which a key matches, prone
//	               ones first, then longest wait first; each has
//	  keys                  key and id, longest wait first
//	  keys_cut              how many are not in keys
//	  roots                 those of keys whose holders wait for none of them
//	  waiters               how many wait for its keys
//	  longest_wait_seconds
//	  prone                 whether a waiter in it holds a key
//	chains_cut     how many chains are not in chains
//
// Names of clients, functions and files are as shown: what can't be printed is
// escaped as in Go, and long ones are cut at 120, 200 and 400 bytes.
package lockdebug
