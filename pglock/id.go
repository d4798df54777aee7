package pglock

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/dbx-tools/processlock"
)

// LockID returns the advisory lock id of key: [processlock.Key.ID], which is
// the same in every language. With Options.Namespace it is that of the list of
// which the namespace is the first part and the key's parts are the rest: in
// the namespace "billing", "a" has the id of ["billing", "a"], and ["a", 7] that
// of ["billing", "a", 7]. So a *big.Int, which elsewhere is its own id, is
// hashed in a namespace; to adopt an id of other software use a Locker without.
//
// Its error is an [*processlock.AcquireError] around [processlock.ErrKey]; so is
// that of the keys of [processlock.All], unless they are one.
func (l *Locker) LockID(key any) (int64, error) {
	if l == nil {
		misuse("nil *Locker")
	}
	req, err := processlock.Resolve(key)
	if err != nil {
		return 0, err
	}
	if len(req.Keys) != 1 {
		return 0, &processlock.AcquireError{Err: &keysError{len(req.Keys)}}
	}
	return l.id(req.Keys[0]), nil
}

type keysError struct{ n int }

func (e *keysError) Error() string {
	return "pglock: LockID of " + strconv.Itoa(e.n) + " keys; ask for each"
}

func (e *keysError) Unwrap() error { return processlock.ErrKey }

func (l *Locker) id(k processlock.Key) int64 {
	if l.opts.Namespace == "" {
		return k.ID()
	}
	text := l.namespace
	if parts := k.Canonical(); parts != "" { // else it is the list of no parts
		text += "\x00" + parts
	}
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
