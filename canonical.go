package processlock

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxNesting is how many lists, maps, structs and pointers may lie around a
// value. It keeps the recursion far from the end of any stack.
const maxNesting = 1000

// encoder writes the canonical text of one key.
type encoder struct {
	buf []byte

	// open are the containers that are being read, outermost first.
	open []container

	// asKey is set while a key of a map or an element of a set is read. There
	// -0 is 0, since Go's == and so the map itself can't tell them apart; a
	// pointer hides what it points to from == and ends that.
	asKey bool
}

// container is a value that is being read, known by its address if it can
// contain itself and all zero if it can't.
type container struct {
	typ reflect.Type
	ptr uintptr
	len int
}

// encoders holds spare encoders. A Key never aliases their memory, and one in
// use is never shared: a MarshalText that makes a key itself takes another.
var encoders = sync.Pool{New: func() any {
	return &encoder{buf: make([]byte, 0, 512), open: make([]container, 0, 16)}
}}

// maxSpare is the largest buffer that is kept for reuse: one huge key must not
// hold its memory until the pool is next emptied.
const maxSpare = 64 << 10

func encodeKey(v any) (Key, *keyError) {
	e := encoders.Get().(*encoder)
	k, err := e.key(v)
	// Not deferred: where MarshalText panics, the encoder is left to the
	// collector.
	if cap(e.buf) <= maxSpare {
		e.buf, e.open, e.asKey = e.buf[:0], e.open[:0], false
		encoders.Put(e)
	}
	return k, err
}

// key returns the Key of v. A list is its parts, also behind pointers.
func (e *encoder) key(v any) (Key, *keyError) {
	switch v := v.(type) {
	case []any:
		return e.listKey(len(v), e.anys(v, 0))
	case []string:
		return e.listKey(len(v), e.strings(v, 0))
	case nil, bool, float32, float64, time.Time, json.Number, []byte:
		return e.partKey(e.value(v))
	}
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer || r.Kind() == reflect.Interface {
		if r.IsNil() {
			return e.partKey(e.value(nil))
		}
		if r.Kind() == reflect.Pointer {
			if err := e.enter(container{r.Type(), r.Pointer(), 0}); err != nil {
				return Key{}, err
			}
		}
		r = r.Elem()
	}
	p := planOf(r.Type())
	switch p.op {
	case opInt:
		return intKey(r.Int()), nil
	case opUint:
		if n := r.Uint(); n <= math.MaxInt64 {
			return intKey(int64(n)), nil
		}
	case opString:
		return stringKey(r.String()), nil
	case opKey:
		k := r.Interface().(Key)
		if k.kind == keyInvalid {
			return k, zeroKeyError()
		}
		return k, nil
	case opList:
		return e.listKey(r.Len(), p.list(e, p.reachable(r), 0))
	}
	return e.partKey(p.encode(e, p.reachable(r)))
}

func (e *encoder) listKey(parts int, err *keyError) (Key, *keyError) {
	if err != nil {
		return Key{}, err
	}
	var k Key
	if parts == 1 {
		k = e.part()
	} else {
		k = Key{kind: keyText, s: string(e.buf)}
	}
	k.list = true
	return k, nil
}

func (e *encoder) partKey(err *keyError) (Key, *keyError) {
	if err != nil {
		return Key{}, err
	}
	return e.part(), nil
}

// part returns the Key of the one part in buf. A string or an integer gets the
// same Key as where its text is never built.
func (e *encoder) part() Key {
	if n := len(tagString); len(e.buf) >= n && string(e.buf[:n]) == tagString {
		head := bytes.IndexByte(e.buf[n:], ':')
		return stringKey(string(e.buf[n+head+1:]))
	}
	text := string(e.buf)
	if digits, ok := strings.CutPrefix(text, tagNumber); ok && digits != "-0" && !strings.ContainsAny(digits, ".e") {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return intKey(n)
		}
	}
	return Key{kind: keyText, s: text}
}

// value appends the text of v as one part.
func (e *encoder) value(v any) *keyError {
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case string:
		e.buf = appendString(e.buf, v)
	case int:
		e.buf = appendInt(e.buf, int64(v))
	case bool:
		e.buf = appendBool(e.buf, v)
	case int64:
		e.buf = appendInt(e.buf, v)
	case int32:
		e.buf = appendInt(e.buf, int64(v))
	case uint64:
		e.buf = appendUint(e.buf, v)
	case float64:
		return e.float(v)
	case []any:
		e.buf = append(append(e.buf, tagArray...), '[')
		if err := e.anys(v, ','); err != nil {
			return err
		}
		e.buf = append(e.buf, ']')
	case []byte:
		e.buf = appendBytes(e.buf, v)
	case time.Time:
		e.buf = appendDate(e.buf, v)
	case json.Number:
		return e.jsonNumber(string(v))
	case Key:
		return e.nested(v)
	default:
		r := reflect.ValueOf(v)
		p := planOf(r.Type())
		return p.encode(e, p.reachable(r))
	}
	return nil
}

// anys appends the texts of v's elements with sep between them.
func (e *encoder) anys(v []any, sep byte) *keyError {
	c := container{}
	if len(v) > 0 {
		c = container{typeAnys, reflect.ValueOf(&v[0]).Pointer(), len(v)}
	}
	if err := e.enter(c); err != nil {
		return err
	}
	for i, v := range v {
		if i > 0 {
			e.buf = append(e.buf, sep)
		}
		if err := e.value(v); err != nil {
			return err.at(index(i))
		}
	}
	e.leave()
	return nil
}

// strings is anys for strings.
func (e *encoder) strings(v []string, sep byte) *keyError {
	for i, s := range v {
		if i > 0 {
			e.buf = append(e.buf, sep)
		}
		e.buf = appendString(e.buf, s)
	}
	return nil
}

func (e *encoder) float(f float64) *keyError {
	switch {
	case math.IsNaN(f):
		return refused("NaN" + noIdentity)
	case math.IsInf(f, 0):
		return refused(strconv.FormatFloat(f, 'g', -1, 64) + noIdentity)
	case f == 0 && e.asKey:
		f = 0 // -0
	}
	e.buf = appendFloat(e.buf, f)
	return nil
}

// jsonNumber appends the number that s spells, as the int64 that it parses to
// or else as the float64.
func (e *encoder) jsonNumber(s string) *keyError {
	if !isJSONNumber(s) {
		return refused("json.Number " + quote(s, maxStep) + " is not a number")
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" {
		e.buf = appendInt(e.buf, n)
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return refused("json.Number " + quote(s, maxStep) + " is out of range")
	}
	return e.float(f)
}

// nested appends what k was made from: the text of one part, or the array of
// its parts.
func (e *encoder) nested(k Key) *keyError {
	if k.kind == keyInvalid {
		return zeroKeyError()
	}
	levels := len(e.open)
	if k.list {
		levels++
	}
	// Most texts are too short to be too deep: a level takes 6 bytes or more.
	if k.kind == keyText && levels+len(k.s)/len("map:{}") > maxNesting {
		levels += depth(k.s)
	}
	if levels > maxNesting {
		return tooDeep()
	}
	if !k.list {
		e.buf = k.appendText(e.buf)
		return nil
	}
	e.buf = append(append(e.buf, tagArray...), '[')
	start := len(e.buf)
	e.buf = k.appendText(e.buf)
	if k.kind == keyText {
		for i, c := range grammar(k.s) {
			if c == 0 {
				e.buf[start+i] = ','
			}
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

// enter opens a container, unless it is already open: then it contains itself.
// The search is linear, since nesting is shallow outside of attacks and bounded
// in them.
func (e *encoder) enter(c container) *keyError {
	if c.typ != nil {
		for _, o := range e.open {
			if o == c {
				return refused("a cycle through " + cutText(c.typ.String(), maxWhat) + noIdentity)
			}
		}
	}
	if len(e.open) >= maxNesting {
		return tooDeep()
	}
	e.open = append(e.open, c)
	return nil
}

func (e *encoder) leave() { e.open = e.open[:len(e.open)-1] }

func zeroKeyError() *keyError { return refused("the zero Key" + noIdentity) }

func tooDeep() *keyError {
	return refused("nesting is deeper than " + strconv.Itoa(maxNesting))
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }
