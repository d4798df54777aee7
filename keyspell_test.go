package processlock

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nodeSource makes nodes from bytes; it makes null once they are used up.
type nodeSource struct{ data []byte }

func (s *nodeSource) next() int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b)
}

func (s *nodeSource) int64() (n int64) {
	for range s.next() % 9 {
		n = n<<8 | int64(s.next())
	}
	return n
}

// string returns some bytes, which are UTF-8 where they may have to be sorted.
func (s *nodeSource) string(sorted bool) string {
	n := min(s.next()%24, len(s.data))
	text := string(s.data[:n])
	s.data = s.data[n:]
	if sorted {
		text = strings.ToValidUTF8(text, "\U00010437")
	}
	return text
}

func (s *nodeSource) node(depth int, sorted bool) keyNode {
	kind := s.next() % 16
	if depth == 0 {
		kind %= 10
	}
	kids := func(sorted bool) (all []keyNode) {
		for range s.next() % 4 {
			all = append(all, s.node(depth-1, sorted))
		}
		return all
	}
	switch kind {
	case 1:
		return keyNode{kind: "boolean", text: strconv.FormatBool(s.next()%2 == 1)}
	case 2:
		return keyNode{kind: "number", text: strconv.FormatInt(s.int64(), 10)}
	case 3:
		return keyNode{kind: "number", text: strconv.FormatUint(uint64(s.int64()), 10)}
	case 4:
		f := math.Float64frombits(uint64(s.int64()))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = negZero
		}
		return keyNode{kind: "number", float: f, isFloat: true}
	case 5:
		f := []float64{negZero, 0, 1, 1 << 53, 1 << 60, 1 << 63, 1e21, 1e20, 1e-6, 1e-7, 0.1}[s.next()%11]
		return keyNode{kind: "number", float: f, isFloat: true}
	case 6:
		n := new(big.Int).Lsh(big.NewInt(s.int64()), uint(s.next()))
		return keyNode{kind: "bigint", text: n.String()}
	case 7, 8:
		return keyNode{kind: "string", text: s.string(sorted)}
	case 9:
		if s.next()%2 == 0 {
			return keyNode{kind: "bytes", text: s.string(sorted)}
		}
		const years = 9999 * 365 * 24 * 3600
		sec := s.int64() % years
		return keyNode{kind: "date", date: [2]int64{(sec+years)%years - 62135596800, s.int64() & math.MaxInt64 % 1e9}}
	case 10, 11, 12:
		return keyNode{kind: "array", kids: kids(sorted), direct: s.next()%2 == 0}
	case 13:
		return keyNode{kind: "set", kids: kids(true)}
	case 14, 15:
		n := keyNode{kind: "object", keys: []keyNode{}, kids: []keyNode{}}
		if kind == 15 {
			n.kind = "map"
		}
		seen := map[string]bool{}
		for range s.next() % 4 {
			key := keyNode{kind: "string", text: s.string(true)}
			if s.next()%2 == 0 {
				key.text = fieldNames[s.next()%len(fieldNames)]
			}
			if kind == 15 {
				key = s.node(depth-1, true)
			}
			if text := key.canonical(true); !seen[text] {
				seen[text] = true
				n.keys = append(n.keys, key)
				n.kids = append(n.kids, s.node(depth-1, true))
			}
		}
		return n
	}
	return keyNode{kind: "null"}
}

// fieldNames are few, so that there are few types of structs.
var fieldNames = []string{"a", "b", "λ", "\U00010000", "\uE000", "a long name", ""}

// spell returns a Go value that is n, one of many.
func (n keyNode) spell(r *rand.Rand, asKey bool) any {
	v := n.spellPlain(r, asKey)
	// -0 is 0 in a key of a map up to the next pointer, so there a pointer is
	// no spelling.
	if !asKey && r.IntN(4) == 0 {
		v = ptrTo(v)
		if r.IntN(4) == 0 {
			v = ptrTo(v)
		}
	}
	return v
}

func (n keyNode) spellPlain(r *rand.Rand, asKey bool) any {
	switch n.kind {
	case "null":
		return pickOne[any](r, nil, (*int)(nil), (*linked)(nil), (*big.Int)(nil), (*ptrText)(nil))
	case "boolean":
		b := n.text == "true"
		return pickOne[any](r, b, boolKind(b))
	case "bigint":
		b, _ := new(big.Int).SetString(n.text, 10)
		if asKey {
			return b
		}
		return pickOne[any](r, b, *b)
	case "string":
		all := []any{n.text, namedString(n.text), marshaler{n.text}, numberKind(n.text)}
		if len(n.text) > 2 && n.text[0] == '<' && n.text[len(n.text)-1] == '>' {
			all = append(all, ptrText{n.text[1 : len(n.text)-1]})
		}
		return pickOne(r, all...)
	case "bytes":
		if asKey {
			return ptrTo(bytesKind(n.text))
		}
		all := []any{[]byte(n.text), bytesKind(n.text)}
		if len(n.text) == 2 {
			all = append(all, [2]byte([]byte(n.text)), byteList{byteKind(n.text[0]), byteKind(n.text[1])})
		}
		return pickOne(r, all...)
	case "date":
		at := time.Unix(n.date[0], n.date[1])
		return pickOne[any](r, at, at.UTC(), at.In(zone), instant(at), instantText(at))
	case "number":
		return pickOne(r, n.spellNumber()...)
	case "array":
		return n.spellArray(r, asKey)
	}
	v := n.spellMap(r)
	if asKey {
		return ptrTo(v)
	}
	return v
}

func (n keyNode) spellNumber() []any {
	text := n.text
	all := []any{}
	if n.isFloat {
		text = referenceFloat(n.float, false)
		all = append(all, n.float, namedFloat(n.float), json.Number(strconv.FormatFloat(n.float, 'e', 30, 64)))
		if f := float32(n.float); float64(f) == n.float {
			all = append(all, f)
		}
	}
	if i, ok := canonicalInt(text); ok {
		all = append(all, i, json.Number(text), time.Duration(i))
		if int64(int(i)) == i {
			all = append(all, int(i))
		}
		if f := float64(i); referenceFloat(f, false) == text {
			all = append(all, f)
		}
		if int64(int16(i)) == i {
			all = append(all, int16(i), namedInt16(i))
		}
		if i >= 0 {
			all = append(all, uint64(i))
			if int64(uintptr(i)) == i {
				all = append(all, uintptr(i))
			}
		}
	} else if u, err := strconv.ParseUint(text, 10, 64); err == nil && text != "-0" {
		all = append(all, u)
	}
	return all
}

func (n keyNode) spellArray(r *rand.Rand, asKey bool) any {
	direct := asKey && n.direct
	list := make([]any, len(n.kids))
	for i, kid := range n.kids {
		list[i] = kid.spell(r, direct)
	}
	switch {
	case direct:
		return toArray(list)
	case asKey:
		return &list
	case r.IntN(4) == 0:
		k, err := KeyOf(list)
		if err != nil {
			panic(err)
		}
		return k
	}
	all := []any{list, namedList(list), toArray(list)}
	if len(list) == 0 {
		all = append(all, []string(nil), tree{}, [0]func(){})
	}
	return pickOne(r, all...)
}

func (n keyNode) spellMap(r *rand.Rand) any {
	object, named := map[string]any{}, map[namedString]any{}
	m, set := map[any]any{}, map[any]struct{}{}
	var fields []reflect.StructField
	var values []any
	isStruct := len(n.kids) > 0
	for _, i := range r.Perm(len(n.kids)) {
		kid := n.kids[i]
		switch n.kind {
		case "set":
			set[kid.spell(r, true)] = struct{}{}
		case "map":
			m[n.keys[i].spell(r, true)] = kid.spell(r, false)
		case "object":
			v := kid.spell(r, false)
			name := n.keys[i].text
			object[name], named[namedString(name)] = v, v
			isStruct = isStruct && name != "" && slices.Contains(fieldNames, name)
			fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: reflect.TypeFor[any](), Tag: reflect.StructTag(`json:"` + name + `"`)})
			values = append(values, v)
		}
	}
	switch {
	case n.kind == "set":
		return set
	case n.kind == "map":
		return m
	case isStruct && r.IntN(2) == 0:
		fields = append(fields, reflect.StructField{Name: "X", Type: reflect.TypeFor[any](), Tag: `json:",omitempty"`})
		s := reflect.New(reflect.StructOf(fields))
		for i, v := range values {
			if v != nil {
				s.Elem().Field(i).Set(reflect.ValueOf(v))
			}
		}
		return pickOne(r, s.Interface(), s.Elem().Interface())
	}
	return pickOne[any](r, object, named)
}

func pickOne[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }
