package processlock

import (
	"math"
	"math/big"
	"reflect"
)

// zero reports whether omitempty or omitzero leaves out the value v of the
// plan's type.
//
// That is a question about v's identity and not about its memory: whatever two
// values have the same text, both are left out or none. So an empty slice or map
// is zero like the nil one, a time in whatever location, a pointer to a nil
// pointer like a nil pointer. encoding/json's IsZero methods are not asked.
func (p *plan) zero(v reflect.Value, asKey bool) bool {
	switch p.op {
	case opFloat:
		f := v.Float()
		return f == 0 && (asKey || !math.Signbit(f))
	case opDate:
		return timeAt(v).IsZero()
	case opBigint:
		return exported(v).Addr().Interface().(*big.Int).Sign() == 0
	case opText, opBytes, opList, opSet, opObject, opMap:
		switch v.Kind() {
		case reflect.Slice, reflect.Map:
			return v.Len() == 0
		case reflect.Array:
			if p.op == opList {
				return p.zeroElems(v, asKey)
			}
		}
		return v.IsZero()
	case opStruct:
		return p.zeroFields(v, asKey)
	case opPointer, opInterface:
		return isNull(v)
	case opKey:
		return exported(v).Addr().Interface().(*Key).kind == keyInvalid
	}
	return v.IsZero()
}

func (p *plan) zeroElems(v reflect.Value, asKey bool) bool {
	for i := range v.Len() {
		if !p.elem.zero(v.Index(i), asKey) {
			return false
		}
	}
	return true
}

func (p *plan) zeroFields(v reflect.Value, asKey bool) bool {
	for i := range p.fields {
		if f := &p.fields[i]; !f.zero(v.Field(f.index), asKey) {
			return false
		}
	}
	return true
}

// isNull reports whether the text of v, a pointer or an interface, is null. A
// pointer that leads back to itself is not: reading it is the error that says so.
func isNull(v reflect.Value) bool {
	for range 2 * (maxNesting + 1) { // each pointer may have an interface behind it
		v = exported(v)
		switch {
		case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
			if v.IsNil() {
				return true
			}
			v = v.Elem()
		case v.Type() == typeKey:
			k := v.Interface().(Key)
			return k.kind == keyText && !k.list && k.s == "null"
		default:
			return false
		}
	}
	return false
}
