package processlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"time"
)

// Types with an identity of their own.
type (
	boolKind    bool
	uintKind    uint8
	bytesKind   []byte
	byteKind    byte
	byteList    [2]byteKind
	numberKind  json.Number // a string, not a number
	instant     time.Time
	instantText time.Time // a date all the same
	wrappedTime struct{ time.Time }
	wrappedTwo  struct {
		time.Time
		Other int
	}
	ptrText    struct{ text string }
	textByte   byte
	textList   []textByte
	textSlice  []int
	textMap    map[string]int
	textString string
	textUnit   struct{}
	textFunc   func()
	failing    struct{}
	linked     struct {
		Name string  `json:"name"`
		Next *linked `json:"next"`
	}
	tree     []tree
	pointer  *pointer
	mapCycle map[string]any
)

func (instantText) MarshalText() ([]byte, error) { return []byte("no"), nil }
func (p *ptrText) MarshalText() ([]byte, error)  { return []byte("<" + p.text + ">"), nil }
func (b textByte) MarshalText() ([]byte, error)  { return []byte{'b', '0' + byte(b)}, nil }
func (s textSlice) MarshalText() ([]byte, error) { return fmt.Append(nil, len(s)), nil }
func (m textMap) MarshalText() ([]byte, error)   { return fmt.Append(nil, len(m)), nil }
func (s textString) MarshalText() ([]byte, error) {
	return []byte("text of " + string(s)), nil
}
func (textUnit) MarshalText() ([]byte, error) { return []byte("unit"), nil }
func (textFunc) MarshalText() ([]byte, error) { return []byte("func"), nil }

var errMarshal = errors.New("boom\nhere")

func (failing) MarshalText() ([]byte, error) { return nil, errMarshal }

func ptrTo[T any](v T) *T { return &v }

var (
	negZero = math.Copysign(0, -1)
	day     = time.Date(2025, 11, 30, 1, 2, 3, 4_000_000, time.UTC)
	zone    = time.FixedZone("", -5*3600)
)

const dayText = "date:2025-11-30T01:02:03.004Z"

// oddlyTagged is a struct with json tags of which linters think that they are a
// mistake, for encoding/json.
func oddlyTagged() any {
	f := func(name, pkg, tag string) reflect.StructField {
		return reflect.StructField{Name: name, PkgPath: pkg, Type: reflect.TypeFor[int](), Tag: reflect.StructTag(tag)}
	}
	return reflect.Zero(reflect.StructOf([]reflect.StructField{
		f("a", "p", `json:"x"`), f("b", "p", `json:"-"`), f("c", "p", `json:",omitzero"`), f("D", "", `json:"-,"`),
	})).Interface()
}

// embeddedByReflect is a struct that reflect says has a MarshalText, and that
// ends the process when it is called.
func embeddedByReflect() any {
	s := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Int", Type: reflect.TypeFor[*big.Int](), Anonymous: true}}))
	s.Elem().Field(0).Set(reflect.ValueOf(big.NewInt(7)))
	return s.Interface()
}

var map2key = ptrTo(map[int]int{1: 2})
