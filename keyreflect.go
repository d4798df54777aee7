package processlock

import (
	"encoding"
	"math/big"
	"reflect"
	"slices"
	"time"
)

// reachable returns v, or a copy of it if it has to be addressable and is not,
// like what an interface holds.
func (p *plan) reachable(v reflect.Value) reflect.Value {
	if !p.addr || v.CanAddr() {
		return v
	}
	c := reflect.New(p.typ).Elem()
	c.Set(v)
	return c
}

// encode appends the text of v, which is of the plan's type and reachable.
func (p *plan) encode(e *encoder, v reflect.Value) *keyError {
	if p.addr {
		v = exported(v)
	}
	switch p.op {
	case opRefuse:
		return refused(p.refuse)
	case opBool:
		e.buf = appendBool(e.buf, v.Bool())
	case opInt:
		e.buf = appendInt(e.buf, v.Int())
	case opUint:
		e.buf = appendUint(e.buf, v.Uint())
	case opFloat:
		return e.float(v.Float())
	case opString:
		e.buf = appendString(e.buf, v.String())
	case opNumber:
		return e.jsonNumber(v.String())
	case opBigint:
		e.buf = v.Addr().Interface().(*big.Int).Append(append(e.buf, tagBigint...), 10)
	case opDate:
		e.buf = appendDate(e.buf, *timeAt(v))
	case opText:
		return p.text(e, v)
	case opBytes:
		e.buf = appendBytes(e.buf, v.Bytes())
	case opList:
		e.buf = append(append(e.buf, tagArray...), '[')
		if err := p.list(e, v, ','); err != nil {
			return err
		}
		e.buf = append(e.buf, ']')
	case opSet:
		return p.set(e, v)
	case opObject, opMap:
		return p.mapping(e, v)
	case opStruct:
		return p.structure(e, v)
	case opPointer:
		return p.pointer(e, v)
	case opInterface:
		return e.value(v.Interface())
	case opKey:
		return e.nested(*v.Addr().Interface().(*Key))
	}
	return nil
}

// exported returns v as if no unexported field had been passed on the way to
// it. Without that, reflect hands out neither its methods nor what an interface
// in it holds.
func exported(v reflect.Value) reflect.Value {
	if v.CanInterface() || !v.CanAddr() {
		return v
	}
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// timeAt returns v, of a type defined from time.Time, as one.
func timeAt(v reflect.Value) *time.Time {
	return reflect.NewAt(typeTime, v.Addr().UnsafePointer()).Interface().(*time.Time)
}

func (p *plan) text(e *encoder, v reflect.Value) *keyError {
	text, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return &keyError{why: "MarshalText of " + cutText(p.typ.String(), maxWhat), cause: err}
	}
	e.buf = appendString(e.buf, string(text))
	return nil
}

func (p *plan) pointer(e *encoder, v reflect.Value) *keyError {
	if v.IsNil() {
		return e.value(nil)
	}
	if err := e.enter(container{p.typ, v.Pointer(), 0}); err != nil {
		return err
	}
	asKey := e.asKey
	e.asKey = false
	err := p.elem.encode(e, v.Elem())
	e.asKey = asKey
	e.leave()
	return err
}

// list appends the texts of the elements of a slice or array, with sep between
// them.
func (p *plan) list(e *encoder, v reflect.Value, sep byte) *keyError {
	c := container{}
	if v.Kind() == reflect.Slice && v.Len() > 0 {
		c = container{p.typ, v.Pointer(), v.Len()}
	}
	if err := e.enter(c); err != nil {
		return err
	}
	for i := range v.Len() {
		if i > 0 {
			e.buf = append(e.buf, sep)
		}
		if err := p.elem.encode(e, v.Index(i)); err != nil {
			return err.at(index(i))
		}
	}
	e.leave()
	return nil
}

func (p *plan) structure(e *encoder, v reflect.Value) *keyError {
	if err := e.enter(container{}); err != nil {
		return err
	}
	e.buf = append(append(e.buf, tagObject...), '{')
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		v := v.Field(f.index)
		if f.omit && f.zero(v, e.asKey) {
			continue
		}
		if !first {
			e.buf = append(e.buf, ',')
		}
		first = false
		e.buf = append(e.buf, f.label...)
		if err := f.encode(e, v); err != nil {
			return err.at(f.step)
		}
	}
	e.buf = append(e.buf, '}')
	e.leave()
	return nil
}

// set appends a set: the texts of m's keys in order, each once.
func (p *plan) set(e *encoder, m reflect.Value) *keyError {
	if err := e.enter(container{p.typ, m.Pointer(), 0}); err != nil {
		return err
	}
	elems, err := p.entries(e, m, "", reflect.Value{})
	if err != nil {
		return err
	}
	e.buf = append(append(e.buf, tagSet...), '[')
	for i, elem := range elems {
		if i > 0 {
			if elem.text == elems[i-1].text {
				continue
			}
			e.buf = append(e.buf, ',')
		}
		e.buf = append(e.buf, elem.text...)
	}
	e.buf = append(e.buf, ']')
	e.leave()
	return nil
}

// mapping appends an object or a map: its entries in order. It is never part of
// a key of another map, but for behind a pointer, so asKey is not set.
func (p *plan) mapping(e *encoder, m reflect.Value) *keyError {
	if err := e.enter(container{p.typ, m.Pointer(), 0}); err != nil {
		return err
	}
	values := reflect.MakeSlice(p.values, m.Len(), m.Len())
	entries, err := p.entries(e, m, "=", values)
	if err != nil {
		return err
	}
	tag := tagMap
	if p.op == opObject {
		tag = tagObject
	}
	e.buf = append(append(e.buf, tag...), '{')
	for i, entry := range entries {
		if i > 0 {
			if entry.text == entries[i-1].text {
				return refused("two keys of the map are the same, " + shorten(entry.text, maxStep))
			}
			e.buf = append(e.buf, ',')
		}
		e.buf = append(e.buf, entry.text...)
		if err := p.elem.encode(e, values.Index(entry.value)); err != nil {
			return err.at("[" + shorten(entry.text, maxStep) + "]")
		}
	}
	e.buf = append(e.buf, '}')
	e.leave()
	return nil
}

// mapEntry is one of a map's: the text of its key, with what separates it from the
// value, and which of the values is its own.
type mapEntry struct {
	text  string
	value int
}

// entries returns m's in order, each key's text followed by end, and fills in
// values, if there is room for any.
//
// Behind "=" no key's text is the beginning of another's, so this is the order
// of whole entries. Knowing it before the values are read makes the first error
// the same one every time.
func (p *plan) entries(e *encoder, m reflect.Value, end string, values reflect.Value) ([]mapEntry, *keyError) {
	all := make([]mapEntry, 0, m.Len())
	key := reflect.New(p.key.typ).Elem()
	start, asKey := len(e.buf), e.asKey
	e.asKey = true
	for it := m.MapRange(); it.Next(); {
		key.SetIterKey(it)
		if err := p.key.encode(e, key); err != nil {
			return nil, err.at("[map key]")
		}
		if values.IsValid() {
			values.Index(len(all)).SetIterValue(it)
		}
		all = append(all, mapEntry{string(append(e.buf[start:], end...)), len(all)})
		e.buf = e.buf[:start]
	}
	e.asKey = asKey
	slices.SortFunc(all, func(a, b mapEntry) int { return compareUTF16(a.text, b.text) })
	return all, nil
}
