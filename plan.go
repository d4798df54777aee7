package processlock

import (
	"encoding"
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// plan is how the values of one type are encoded. It is worked out once for
// each type, and immutable once it is in plans.
type plan struct {
	op   op
	typ  reflect.Type
	elem *plan // opPointer, opList, opObject, opMap
	key  *plan // opSet, opObject, opMap

	values reflect.Type // opObject, opMap: a slice for their values

	fields []field // opStruct: in the order of their texts
	refuse string  // opRefuse: why

	// addr is set if a value has to be addressable to be read: an address is
	// the way to read an unexported field as an exported one is.
	addr bool
}

type op uint8

const (
	opRefuse op = iota // no stable identity
	opBool
	opInt
	opUint
	opFloat
	opString
	opNumber // json.Number
	opBigint
	opDate
	opText // has MarshalText
	opBytes
	opList
	opSet
	opObject // a map with keys of a string kind
	opMap
	opStruct
	opPointer
	opInterface
	opKey
)

// field is a field of a struct that counts.
type field struct {
	*plan
	index int
	label string // the text of its name and "="
	step  string // in a path
	omit  bool   // if it is zero
}

var (
	typeAnys   = reflect.TypeFor[[]any]()
	typeKey    = reflect.TypeFor[Key]()
	typeKeys   = reflect.TypeFor[Keys]()
	typeTime   = reflect.TypeFor[time.Time]()
	typeBigint = reflect.TypeFor[big.Int]()
	typeNumber = reflect.TypeFor[json.Number]()
	typeText   = reflect.TypeFor[encoding.TextMarshaler]()
)

var plans sync.Map // reflect.Type to *plan, complete ones only

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	b := builder{}
	p := b.plan(t)
	// All at once, and only now: the plans of recursive types point at each
	// other before they are complete. Whoever stores first doesn't matter,
	// plans of one type are alike.
	for t, p := range b {
		plans.Store(t, p)
	}
	return p
}

// builder holds the plans that are being worked out, so that a recursive type
// finds itself.
type builder map[reflect.Type]*plan

func (b builder) plan(t reflect.Type) *plan {
	if p, ok := b[t]; ok {
		return p
	}
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{typ: t}
	b[t] = p
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || !b.special(p, t) {
		b.byKind(p, t)
	}
	return p
}

// special fills in the plan of a type that is more than its kind.
func (b builder) special(p *plan, t reflect.Type) bool {
	switch {
	case t == typeKey:
		p.op, p.addr = opKey, true
	case t == typeKeys:
		p.refuse = "keys from All can't be part of a key; give them to WithLock alone, or to another All"
	case t.Kind() == reflect.Struct && t.ConvertibleTo(typeTime):
		p.op, p.addr = opDate, true
	case t == typeBigint:
		p.op, p.addr = opBigint, true
	case t == typeNumber:
		p.op = opNumber
	case hasText(t):
		p.op, p.addr = opText, true
	default:
		return false
	}
	return true
}

// hasText reports whether t or its pointer has MarshalText. The pointer has what
// t has. Asking t itself would add only what reflect.StructOf makes of embedded
// fields, whose promoted methods end the process when they are called.
func hasText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(typeText) }

func (b builder) byKind(p *plan, t reflect.Type) {
	switch t.Kind() {
	case reflect.Bool:
		p.op = opBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.op = opInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.op = opUint
	case reflect.Float32, reflect.Float64:
		p.op = opFloat
	case reflect.String:
		p.op = opString
	case reflect.Slice:
		p.op, p.elem = opList, b.plan(t.Elem())
		if isByte(t.Elem()) {
			p.op = opBytes
		}
	case reflect.Array:
		p.op, p.elem = opList, b.plan(t.Elem())
		p.addr = p.elem.addr
		if isByte(t.Elem()) {
			p.op, p.addr = opBytes, true
		}
	case reflect.Map:
		b.mapPlan(p, t)
	case reflect.Struct:
		b.structPlan(p, t)
	case reflect.Pointer:
		p.op, p.elem = opPointer, b.plan(t.Elem())
	case reflect.Interface:
		p.op, p.addr = opInterface, true
	default: // func, chan, complex, unsafe.Pointer
		p.refuse = cutText(t.String(), maxWhat) + noIdentity
	}
}

func isByte(t reflect.Type) bool { return t.Kind() == reflect.Uint8 && !hasText(t) }

func (b builder) mapPlan(p *plan, t reflect.Type) {
	p.addr = true
	p.key = b.plan(t.Key())
	elem := t.Elem()
	switch {
	case elem.Kind() == reflect.Struct && elem.NumField() == 0 && !hasText(elem):
		p.op = opSet
	case t.Key().Kind() == reflect.String:
		p.op, p.elem = opObject, b.plan(elem)
		p.key = &plan{op: opString, typ: t.Key()}
	default:
		p.op, p.elem = opMap, b.plan(elem)
	}
	p.values = reflect.SliceOf(elem)
}

func (b builder) structPlan(p *plan, t reflect.Type) {
	p.op = opStruct
	names := map[string]string{} // to the field that has the name
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if f.Name == "_" || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		if other, ok := names[name]; ok && p.refuse == "" {
			p.refuse = "fields " + other + " and " + f.Name + " of " +
				cutText(t.String(), maxWhat) + " have one name, " + quote(name, maxStep)
		}
		names[name] = f.Name
		p.fields = append(p.fields, field{
			plan:  b.plan(f.Type),
			index: i,
			label: string(appendString(nil, name)) + "=",
			step:  "." + f.Name,
			omit:  hasOption(options, "omitempty") || hasOption(options, "omitzero"),
		})
	}
	for _, f := range p.fields {
		p.addr = p.addr || f.addr
	}
	if p.refuse != "" {
		p.op = opRefuse
	}
	// No label is the beginning of another, so their order is that of the
	// entries, whatever the values.
	slices.SortFunc(p.fields, func(f, g field) int { return compareUTF16(f.label, g.label) })
}

func hasOption(options, option string) bool {
	return slices.Contains(strings.Split(options, ","), option)
}
