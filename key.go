package processlock

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// Key is what names a lock: the identity of a value, read once. Later changes
// to the value don't reach it.
//
// Two Keys are the same lock exactly when their [Key.Canonical] texts are
// equal. The operator == is finer: it also knows whether a Key was made from
// one value or from a list, which is the same lock if the list has one part
// but need not be the same [Key.ID].
//
// A Key may be used as a key, and inside one: there it stands for what it was
// made from, one value or a list. The zero Key is no key at all and using it
// is [ErrKey]; [KeyOf] never returns it.
//
// A Key is immutable and may be used by any number of goroutines at once.
type Key struct {
	// Equal canonical texts are equal kind, n and s, whatever Go values the
	// keys were made from: what can be keyString or keyInt never is keyText.
	s    string // keyString: the string itself; keyText: the canonical text
	n    int64  // keyInt
	kind keyKind
	list bool // made from a list of parts rather than from one value; part of ==, not of the lock
}

// keyKind is the kind of a Key's identity; zero only in the zero Key.
type keyKind uint8

const (
	keyInvalid keyKind = iota
	keyString          // one part, a string
	keyInt             // one part, a number spelled as an int64
	keyText            // anything else
)

func stringKey(s string) Key { return Key{s: s, kind: keyString} }
func intKey(n int64) Key     { return Key{n: n, kind: keyInt} }

// same reports whether k and o are one lock.
func (k Key) same(o Key) bool { return k.kind == o.kind && k.n == o.n && k.s == o.s }

// KeyOf returns the Key of a value, as [WithLock] reads it, or of a list of
// parts: KeyOf("invoice", 7) is KeyOf([]any{"invoice", 7}). A list of one part
// is the same lock as the part; KeyOf() is the empty list, which is a lock too.
//
// Two values are the same lock if they have the same content, whatever their
// Go spelling:
//
//   - nil and nil pointers are null; another pointer or interface is what it
//     points to.
//   - Integers, floats and [encoding/json.Number] are numbers by value: int 7,
//     uint8 7 and 7.0 are one. Above 2^53 a float has the digits that
//     ECMAScript prints, so it may differ from the integer of its value. -0 is not 0, except as a key of a map, where Go
//     does not tell them apart either. [math/big.Int] is a kind of its own.
//   - A [time.Time], or a type defined from it, is an instant: location and
//     monotonic reading don't count.
//   - Any other type that has MarshalText, or whose pointer has it, is the string that
//     MarshalText returns. A struct that embeds one has its MarshalText and is
//     that text alone; name the field to count the rest too.
//   - Strings are strings, bytes ([]byte, [N]byte) are bytes, bool is bool.
//   - A slice or array is a list. A map[K]struct{} is a set, a map with keys of
//     a string kind an object whose names are the strings, without MarshalText,
//     another map a map; their order doesn't count.
//   - A struct is an object. A field's name is its json name if it has one,
//     else its Go name; `json:"-"` leaves it out, and omitempty and omitzero
//     leave it out when it is zero or empty (IsZero is not asked). Unexported fields count like
//     exported ones, blank ones don't. An embedded struct is a field named by
//     its type.
//
// An error wraps [ErrKey] and names the path to what has no stable identity:
// a func, chan, complex number or unsafe.Pointer, NaN or an infinity, the zero
// Key, what [All] returns, a json.Number that is no number, a MarshalText that
// fails (its error is wrapped too), two keys of a map or fields of a struct
// that are the same, a cycle, or nesting deeper than 1,000. In the path, key is
// the whole key, key[1] its second part, key[1].Conn a field of that,
// key[1]["a"] the entry of a map, and key[1][map key] one of its keys.
//
// A MarshalText that panics panics through KeyOf.
func KeyOf(parts ...any) (Key, error) {
	if len(parts) == 1 {
		return keyOf(parts[0])
	}
	return keyOf(parts)
}

// MustKey is [KeyOf] for parts that are known to have an identity: it panics
// with the error that KeyOf returns.
func MustKey(parts ...any) Key {
	k, err := KeyOf(parts...)
	if err != nil {
		panic(err)
	}
	return k
}

// keyOf reads v as WithLock(ctx, v, fn) does: a list is its parts, anything
// else one part. A bare string or integer is not encoded, nor copied.
func keyOf(v any) (Key, error) {
	switch v := v.(type) {
	case string:
		return stringKey(v), nil
	case int:
		return intKey(int64(v)), nil
	case int64:
		return intKey(v), nil
	case int32:
		return intKey(int64(v)), nil
	case uint32:
		return intKey(int64(v)), nil
	case Key:
		if v.kind != keyInvalid {
			return v, nil
		}
	}
	k, err := encodeKey(v)
	if err != nil {
		return Key{}, err
	}
	return k, nil
}

// Canonical returns the text that is the key's identity: two keys are one lock
// exactly when their texts are equal, byte for byte, in this process, in
// another, or in the TypeScript original of this package. It joins the texts of
// the key's parts with NUL and may hold any byte. That of the empty list is
// empty, and so is that of the zero Key, which has none.
func (k Key) Canonical() string {
	if k.kind == keyText {
		return k.s
	}
	return string(k.appendText(nil))
}

// appendText appends the canonical text.
func (k Key) appendText(dst []byte) []byte {
	return append(k.appendHead(dst), k.s...)
}

// appendHead appends the canonical text up to s, with which it ends.
func (k Key) appendHead(dst []byte) []byte {
	switch k.kind {
	case keyString:
		return appendStringHead(dst, k.s)
	case keyInt:
		return appendInt(dst, k.n)
	}
	return dst
}

// compare orders keys by their canonical texts, by bytes, without building
// them: the strings of two keys may be long.
func (k Key) compare(o Key) int {
	if k.kind == keyText && o.kind == keyText {
		return strings.Compare(k.s, o.s)
	}
	var kbuf, obuf [40]byte
	return k.compareTo(o, k.appendHead(kbuf[:0]), o.appendHead(obuf[:0]))
}

// compareTo is compare for who has the heads already: that of a string takes
// reading all of it, which is too much for each of a sort's comparisons.
func (k Key) compareTo(o Key, khead, ohead []byte) int {
	klen, olen := len(khead)+len(k.s), len(ohead)+len(o.s)
	n := min(klen, olen, max(len(khead), len(ohead)))
	for i := range n {
		if a, b := k.textByte(khead, i), o.textByte(ohead, i); a != b {
			return int(a) - int(b)
		}
	}
	if n == klen || n == olen {
		return klen - olen
	}
	return strings.Compare(k.s[n-len(khead):], o.s[n-len(ohead):]) // n is past both heads
}

// textByte returns byte i of the canonical text.
func (k Key) textByte(head []byte, i int) byte {
	if i < len(head) {
		return head[i]
	}
	return k.s[i-len(head)]
}

// ID returns the number that stands for the key where a lock's name has to be
// a 64-bit integer, such as an advisory lock of PostgreSQL.
//
// It is the first 8 bytes, big endian, of SHA-256 over the canonical text. A
// [math/big.Int] on its own (not in a list, even alone in it) is its own
// number: its low 64 bits in two's complement, so that a key can adopt an id
// that other software already uses. These are the ids of the TypeScript
// original, so both lock each other out. They are frozen for ever: a change
// would let an old and a new replica into one lock. Among n other keys, one
// shares its ID with a given key by chance with odds of n in 2^64.
//
// The ID of the zero Key means nothing.
func (k Key) ID() int64 {
	if k.kind == keyText && !k.list {
		if digits, ok := strings.CutPrefix(k.s, tagBigint); ok {
			return low64(digits)
		}
	}
	var buf [256]byte
	sum := sha256.Sum256(k.appendText(buf[:0]))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// low64 returns the decimal integer's low 64 bits in two's complement.
func low64(decimal string) int64 {
	digits := strings.TrimPrefix(decimal, "-")
	var n int64 // wraps, which is the point
	for _, d := range []byte(digits) {
		n = n*10 + int64(d-'0')
	}
	if digits != decimal {
		n = -n
	}
	return n
}

// Keys are several keys that are taken together; see [All]. The zero Keys is
// that of no keys. Keys are immutable, and not themselves part of a key.
type Keys struct {
	keys []Key // each lock once, in canonical order
	err  error // the first *keyError; then there are no keys
}

// All returns several keys as one argument of [WithLock], which takes them all
// before it runs fn: each once, whatever its spelling, and in the order of
// their canonical texts, whatever the order here. Callers that use it for every
// set of keys that they hold together therefore never deadlock.
//
// What has been taken is held while the call waits for the next: it keeps
// others out, and can be part of a deadlock with nested calls. If one can't be
// had all are released and fn does not run; after fn they are released in
// reverse. With [Reentrant], keys that the context holds already are taken over
// and only the others asked for. All of no keys asks for nothing and runs fn.
//
// Each argument is read here and now, as WithLock reads a key; one that is
// itself from All contributes its keys. If one has no stable identity, WithLock
// returns the first such error as it does for a single key; its path begins
// with keys[i], the i'th argument counted from 0.
func All(keys ...any) Keys {
	read := make([]Key, 0, len(keys))
	for i, v := range keys {
		if inner, ok := v.(Keys); ok {
			if inner.err != nil {
				return Keys{err: inner.err}
			}
			read = append(read, inner.keys...)
			continue
		}
		k, err := keyOf(v)
		if err != nil {
			err.(*keyError).root = "keys[" + strconv.Itoa(i) + "]"
			return Keys{err: err}
		}
		read = append(read, k)
	}
	if len(read) == 0 {
		return Keys{}
	}
	slices.SortStableFunc(read, Key.compare)
	return Keys{keys: slices.CompactFunc(read, Key.same)}
}
