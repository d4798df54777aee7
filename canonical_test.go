package processlock

import (
	"encoding"
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyRow is a row of the table of Go values: what forms of it are, each as a part
// of a list so that it stands for itself.
type keyRow struct {
	value any
	text  string // canonical
}

func TestCanonical(t *testing.T) {
	type embedded struct{ A int }
	type inner struct {
		At  time.Time
		N   big.Int
		T   ptrText
		Any any
		At2 *time.Time
		m   map[string]ptrText
		b   [2]byte
	}
	type outer struct{ in inner }
	type private struct {
		s    string
		at   time.Time
		n    big.Int
		pn   *big.Int
		txt  ptrText
		any  any
		l    []ptrText
		m    map[ptrText]ptrText
		k    Key
		arr  [1]time.Time
		num  json.Number
		f    float32
		set  map[any]struct{}
		over *outer
	}
	type two struct{ A, B int }
	for name, rows := range map[string][]keyRow{
		"nil, nil pointer, nil interface": {
			{nil, "null"},
			{(*int)(nil), "null"},
			{ptrTo((*int)(nil)), "null"},
			{ptrTo(any(nil)), "null"},
			{[1]error{}, "array:[null]"},
			{[]encoding.TextMarshaler{nil}, "array:[null]"},
			{(*big.Int)(nil), "null"},
			{(*time.Time)(nil), "null"},
			{(*ptrText)(nil), "null"},
			{(*marshaler)(nil), "null"},
			{(*[]int)(nil), "null"},
			{(*Key)(nil), "null"},
		},
		"bool kinds": {
			{true, "boolean:true"},
			{boolKind(false), "boolean:false"},
			{ptrTo(true), "boolean:true"},
		},
		"int and uint kinds": {
			{7, "number:7"}, {int8(7), "number:7"}, {int16(7), "number:7"}, {int32(7), "number:7"}, {int64(7), "number:7"},
			{uint(7), "number:7"}, {uint8(7), "number:7"}, {uint16(7), "number:7"}, {uint32(7), "number:7"}, {uint64(7), "number:7"},
			{uint32(math.MaxUint32), "number:4294967295"}, {int32(math.MinInt32), "number:-2147483648"},
			{uintptr(7), "number:7"}, {uintKind(7), "number:7"}, {time.Duration(7), "number:7"},
			{'λ', "number:955"},
			{ptrTo(ptrTo(-7)), "number:-7"},
			{int64(math.MinInt64), "number:-9223372036854775808"},
			{int64(math.MaxInt64), "number:9223372036854775807"},
			{uint64(math.MaxUint64), "number:18446744073709551615"},
			{int64(1<<53 + 1), "number:9007199254740993"},
		},
		"floats": {
			{7.0, "number:7"}, {float32(7), "number:7"}, {namedFloat(7), "number:7"},
			{negZero, "number:-0"}, {float32(negZero), "number:-0"}, {0.0, "number:0"},
			{float32(0.1), "number:0.10000000149011612"}, {0.1, "number:0.1"},
			{1e20, "number:100000000000000000000"}, {1e21, "number:1e+21"}, {-1.5e21, "number:-1.5e+21"},
			{999999999999999900000.0, "number:999999999999999900000"},
			{1e-6, "number:0.000001"}, {1e-7, "number:1e-7"}, {-1.25e-10, "number:-1.25e-10"}, {1e100, "number:1e+100"},
			{5e-324, "number:5e-324"}, {math.MaxFloat64, "number:1.7976931348623157e+308"},
			{float64(1 << 60), "number:1152921504606847000"},
			{float64(1 << 63), "number:9223372036854776000"},
			{9007199254740993.0, "number:9007199254740992"},
		},
		"json.Number": {
			{json.Number("7"), "number:7"}, {json.Number("-7"), "number:-7"}, {ptrTo(json.Number("7.0")), "number:7"},
			{json.Number("7e0"), "number:7"}, {json.Number("70E-1"), "number:7"}, {json.Number("0.5e+1"), "number:5"},
			{json.Number("-0"), "number:-0"}, {json.Number("-0.0"), "number:-0"}, {json.Number("0"), "number:0"},
			{json.Number("9223372036854775807"), "number:9223372036854775807"},
			{json.Number("9223372036854775808"), "number:9223372036854776000"},
			{json.Number("1e-400"), "number:0"},
			{numberKind("7"), "string:1:7"}, {numberKind("x"), "string:1:x"},
		},
		"big.Int": {
			{big.NewInt(7), "bigint:7"}, {*big.NewInt(-7), "bigint:-7"}, {ptrTo(big.NewInt(0)), "bigint:0"},
			{new(big.Int).Lsh(big.NewInt(1), 70), "bigint:1180591620717411303424"},
			{struct{ N big.Int }{*big.NewInt(1)}, "object:{string:1:N=bigint:1}"},
			{struct{ big.Int }{*big.NewInt(1)}, "string:1:1"}, // has MarshalText
		},
		"string kinds": {
			{"", "string:0:"}, {"a", "string:1:a"}, {namedString("λ"), "string:1:λ"}, {ptrTo("😀"), "string:2:😀"},
			{"a\x00b", "string:3:a\x00b"}, {"\xff", "string:1:\xff"}, {"\xe2\x82", "string:2:\xe2\x82"},
			{"€", "string:1:€"}, {"\uFFFD", "string:1:\uFFFD"}, {"\xed\xa0\x80", "string:3:\xed\xa0\x80"}, {"a😀\xf0\x9f", "string:5:a😀\xf0\x9f"},
		},
		"time.Time": {
			{day, dayText}, {ptrTo(day), dayText}, {day.In(zone), dayText},
			{instant(day), dayText}, {ptrTo(instant(day)), dayText}, {instantText(day), dayText}, {ptrTo(instantText(day)), dayText},
			{time.Time{}, "date:0001-01-01T00:00:00.000Z"},
			{time.Unix(0, 1), "date:1970-01-01T00:00:00.000000001Z"},
			{time.Unix(0, 123_456_000), "date:1970-01-01T00:00:00.123456Z"},
			{time.Unix(0, 100_000_000), "date:1970-01-01T00:00:00.100Z"},
			{time.Unix(0, 100_010_000), "date:1970-01-01T00:00:00.10001Z"},
			{time.Unix(-1, 999_999_999), "date:1969-12-31T23:59:59.999999999Z"},
			{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), "date:0000-01-01T00:00:00.000Z"},
			{time.Date(-1, 12, 31, 23, 59, 59, 0, time.UTC), "date:-000001-12-31T23:59:59.000Z"},
			{time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), "date:9999-12-31T23:59:59.000Z"},
			{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "date:+010000-01-01T00:00:00.000Z"},
			{time.Date(1234567, 2, 28, 0, 0, 0, 0, time.UTC), "date:+1234567-02-28T00:00:00.000Z"},
			{time.Date(-271821, 4, 20, 0, 0, 0, 0, time.UTC), "date:-271821-04-20T00:00:00.000Z"},
			{wrappedTime{day}, "string:24:2025-11-30T01:02:03.004Z"}, // has MarshalText
			{wrappedTwo{day, 7}, "string:24:2025-11-30T01:02:03.004Z"},
		},
		"encoding.TextMarshaler": {
			{marshaler{"a"}, "string:1:a"}, {&marshaler{"a"}, "string:1:a"}, {ptrTo(&marshaler{"a"}), "string:1:a"},
			{ptrText{"a"}, "string:3:<a>"}, {&ptrText{"a"}, "string:3:<a>"}, {[]ptrText{{"a"}}, "array:[string:3:<a>]"},
			{map[string]ptrText{"k": {"a"}}, "object:{string:1:k=string:3:<a>}"},
			{[]any{ptrText{"a"}}, "array:[string:3:<a>]"},
			{[1]encoding.TextMarshaler{marshaler{"a"}}, "array:[string:1:a]"},
			{ptrTo(encoding.TextMarshaler(&ptrText{"a"})), "string:3:<a>"},
			{netip.MustParseAddr("10.0.0.1"), "string:8:10.0.0.1"},
			{struct{ marshaler }{marshaler{"a"}}, "string:1:a"},
			{struct{ *ptrText }{&ptrText{"a"}}, "string:3:<a>"},
			{struct {
				marshaler
				N int
			}{marshaler{"a"}, 1}, "string:1:a"},
			{struct{ M marshaler }{marshaler{"a"}}, "object:{string:1:M=string:1:a}"},
			{textString("a"), "string:9:text of a"}, {textSlice(nil), "string:1:0"}, {textMap{"a": 1}, "string:1:1"},
			{textUnit{}, "string:4:unit"}, {textFunc(nil), "string:4:func"},
			{ModeShared, "string:6:shared"},
			{marshaler{"\xff😀"}, "string:3:\xff😀"},
		},
		"bytes": {
			{[]byte{}, "bytes:0:"}, {[]byte(nil), "bytes:0:"}, {[]byte("a\x00b"), "bytes:3:a\x00b"},
			{[2]byte{1, 2}, "bytes:2:\x01\x02"}, {ptrTo([2]byte{1, 2}), "bytes:2:\x01\x02"}, {bytesKind("λ"), "bytes:2:λ"},
			{byteList{1, 2}, "bytes:2:\x01\x02"}, {[]byteKind{1}, "bytes:1:\x01"}, {[0]byte{}, "bytes:0:"},
			{[]uintKind{9}, "bytes:1:\t"}, {json.RawMessage("{}"), "bytes:2:{}"},
			{[]textByte{1, 2}, "array:[string:2:b1,string:2:b2]"}, {textList{3}, "array:[string:2:b3]"}, {[1]textByte{1}, "array:[string:2:b1]"},
			{[]int8{1}, "array:[number:1]"},
		},
		"slice, array": {
			{[]int(nil), "array:[]"}, {[]int{}, "array:[]"}, {[0]func(){}, "array:[]"}, {[]func(){}, "array:[]"},
			{[]int{2, 1}, "array:[number:2,number:1]"}, {[2]int{2, 1}, "array:[number:2,number:1]"}, {&[]any{2, 1.0}, "array:[number:2,number:1]"},
			{[]string{"a", "b"}, "array:[string:1:a,string:1:b]"}, {namedList{nil, true}, "array:[null,boolean:true]"},
			{[][]string{{"a"}, nil}, "array:[array:[string:1:a],array:[]]"},
			{[1]any{[1]any{}}, "array:[array:[null]]"},
			{tree{nil, {}}, "array:[array:[],array:[]]"},
		},
		"map[K]struct{}": {
			{map[int]struct{}{}, "set:[]"}, {map[int]struct{}(nil), "set:[]"},
			{map[int]struct{}{10: {}, 9: {}, 1: {}}, "set:[number:1,number:10,number:9]"},
			{map[string]struct{}{"b": {}, "a": {}}, "set:[string:1:a,string:1:b]"},
			{map[textString]struct{}{"b": {}}, "set:[string:9:text of b]"},
			{map[json.Number]struct{}{"1.0": {}, "1": {}, "1e0": {}}, "set:[number:1]"},
			{map[any]struct{}{1: {}, int8(1): {}, 1.0: {}, "1": {}}, "set:[number:1,string:1:1]"},
			{map[*int]struct{}{ptrTo(1): {}, ptrTo(1): {}}, "set:[number:1]"},
			{map[float64]struct{}{negZero: {}}, "set:[number:0]"},
			{map[any]struct{}{negZero: {}, json.Number("-0"): {}}, "set:[number:0]"},
			{map[[1]float64]struct{}{{negZero}: {}}, "set:[array:[number:0]]"},
			{map[struct{ F any }]struct{}{{float32(negZero)}: {}}, "set:[object:{string:1:F=number:0}]"},
			{map[*float64]struct{}{ptrTo(negZero): {}}, "set:[number:-0]"},
			{map[any]struct{}{ptrTo([]any{negZero}): {}}, "set:[array:[number:-0]]"},
			{map[any]struct{}{ptrTo(map[float64]float64{negZero: negZero}): {}}, "set:[map:{number:0=number:-0}]"},
			{map[string]struct{}{"\U00010000": {}, "\uE000": {}, "aaaaaaaaaa": {}}, "set:[string:10:aaaaaaaaaa,string:1:\uE000,string:2:\U00010000]"},
			{map[any]struct{}{"\U00010000": {}, "\uE000a": {}}, "set:[string:2:\U00010000,string:2:\uE000a]"},
			{map[string]textUnit{"a": {}}, "object:{string:1:a=string:4:unit}"},
			{map[int]textUnit{1: {}}, "map:{number:1=string:4:unit}"},
			{map[string]struct{ A int }{"a": {}}, "object:{string:1:a=object:{string:1:A=number:0}}"},
			{map[string]*struct{}{"a": nil}, "object:{string:1:a=null}"},
		},
		"map with a string-kind key": {
			{map[string]int(nil), "object:{}"}, {map[string]int{}, "object:{}"},
			{map[string]int{"b": 2, "a": 1}, "object:{string:1:a=number:1,string:1:b=number:2}"},
			{map[namedString]any{"b": nil}, "object:{string:1:b=null}"},
			{map[textString]int{"b": 1}, "object:{string:1:b=number:1}"},
			{map[json.Number]int{"1.0": 1, "x": 2}, "object:{string:1:x=number:2,string:3:1.0=number:1}"},
			{map[string]float64{"": negZero}, "object:{string:0:=number:-0}"},
			{map[string]int{"a": 1, "aaaaaaaaaa": 2}, "object:{string:10:aaaaaaaaaa=number:2,string:1:a=number:1}"},
			{map[string]int{"\xe2": 1, "\u20ac": 2}, "object:{string:1:\xe2=number:1,string:1:\u20ac=number:2}"},
		},
		"map with any other key": {
			{map[int]int(nil), "map:{}"}, {map[int]int{10: 1, 1: 2}, "map:{number:10=number:1,number:1=number:2}"},
			{map[any]any{"a": 1}, "map:{string:1:a=number:1}"},
			{map[bool]string{true: "t", false: "f"}, "map:{boolean:false=string:1:f,boolean:true=string:1:t}"},
			{map[float64]float64{negZero: negZero}, "map:{number:0=number:-0}"},
			{map[two]int{{1, 2}: 3}, "map:{object:{string:1:A=number:1,string:1:B=number:2}=number:3}"},
			{map[[2]string]int{{"a", "b"}: 1}, "map:{array:[string:1:a,string:1:b]=number:1}"},
			{map[any]int{nil: 1, Key{s: "k", kind: keyString}: 2}, "map:{null=number:1,string:1:k=number:2}"},
			{map[marshaler]int{{"a"}: 1}, "map:{string:1:a=number:1}"},
			{map[ptrText]int{{"a"}: 1}, "map:{string:3:<a>=number:1}"},
			{map[uintptr]struct{ B [1]byte }{1: {}}, "map:{number:1=object:{string:1:B=bytes:1:\x00}}"},
			{map[any]any{map2key: 1}, "map:{map:{number:1=number:2}=number:1}"},
		},
		"struct": {
			{struct{}{}, "object:{}"},
			{two{1, 2}, "object:{string:1:A=number:1,string:1:B=number:2}"},
			{struct {
				B int `json:"a"`
				A int `json:"b,omitempty"`
				C int `json:",omitempty"`
				D int `json:"-"`
				F int `json:"f" xml:"g"`
				_ int
				_ func()
			}{B: 2}, "object:{string:1:a=number:2,string:1:f=number:0}"},
			{struct{ LongName, Z int }{1, 2}, "object:{string:1:Z=number:2,string:8:LongName=number:1}"},
			{struct {
				A int `json:"\U00010000"`
				B int `json:"\uE000x"`
			}{1, 2}, "object:{string:2:\U00010000=number:1,string:2:\uE000x=number:2}"},
			{struct{ embedded }{embedded{1}}, "object:{string:8:embedded=object:{string:1:A=number:1}}"},
			{struct{ *embedded }{&embedded{1}}, "object:{string:8:embedded=object:{string:1:A=number:1}}"},
			{struct {
				embedded `json:"e"`
				A        int
			}{embedded{1}, 2}, "object:{string:1:A=number:2,string:1:e=object:{string:1:A=number:1}}"},
			{embeddedByReflect(), "object:{string:3:Int=bigint:7}"},
			{oddlyTagged(), "object:{string:1:-=number:0,string:1:x=number:0}"},
			{struct {
				D int    `json:"-"`
				F func() `json:"-"`
			}{}, "object:{}"},
			{private{
				s: "s", at: day, n: *big.NewInt(1), pn: big.NewInt(2), txt: ptrText{"t"}, any: ptrText{"u"}, l: []ptrText{{"v"}},
				m: map[ptrText]ptrText{{"k"}: {"w"}}, k: MustKey("a", 1), arr: [1]time.Time{day}, num: "7.0", f: 0.5,
				set:  map[any]struct{}{day: {}},
				over: &outer{inner{At: day, N: *big.NewInt(3), T: ptrText{"x"}, Any: &day, At2: &day, m: map[string]ptrText{"q": {"y"}}, b: [2]byte{1, 2}}},
			}, "object:{string:1:f=number:0.5,string:1:k=array:[string:1:a,number:1],string:1:l=array:[string:3:<v>]," +
				"string:1:m=map:{string:3:<k>=string:3:<w>},string:1:n=bigint:1,string:1:s=string:1:s," +
				"string:2:at=" + dayText + ",string:2:pn=bigint:2,string:3:any=string:3:<u>,string:3:arr=array:[" + dayText + "]," +
				"string:3:num=number:7,string:3:set=set:[" + dayText + "],string:3:txt=string:3:<t>," +
				"string:4:over=object:{string:2:in=object:{string:1:N=bigint:3,string:1:T=string:3:<x>,string:1:b=bytes:2:\x01\x02," +
				"string:1:m=object:{string:1:q=string:3:<y>},string:2:At=" + dayText + ",string:3:Any=" + dayText + ",string:3:At2=" + dayText + "}}}"},
			{linked{"a", &linked{"b", nil}}, "object:{string:4:name=string:1:a,string:4:next=object:{string:4:name=string:1:b,string:4:next=null}}"},
		},
		"Key": {
			{MustKey("a"), "string:1:a"}, {MustKey(7), "number:7"}, {MustKey(negZero), "number:-0"}, {MustKey(nil), "null"},
			{MustKey([]any{"a"}), "array:[string:1:a]"}, {MustKey([]int{7}), "array:[number:7]"}, {MustKey([]any{nil}), "array:[null]"},
			{MustKey("a", 7), "array:[string:1:a,number:7]"}, {MustKey(), "array:[]"}, {ptrTo(MustKey("a", 7)), "array:[string:1:a,number:7]"},
			{MustKey("a\x00string:1:b", "\xe2", []byte("\x00]")), "array:[string:12:a\x00string:1:b,string:1:\xe2,bytes:2:\x00]]"},
			{MustKey(MustKey("a", 7), nil), "array:[array:[string:1:a,number:7],null]"},
			{MustKey(two{1, 2}), "object:{string:1:A=number:1,string:1:B=number:2}"},
			{struct{ K Key }{MustKey("a", "😀\x00")}, "object:{string:1:K=array:[string:1:a,string:3:😀\x00]}"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range rows {
				k, err := KeyOf([]any{r.value, 0})
				if assert.NoError(t, err, "%#v", r.value) {
					assert.Equal(t, r.text+"\x00number:0", k.Canonical(), "%#v", r.value)
				}
				checkNormal(t, k)
				checkString(t, k)

				// Alone, where a list is its parts.
				k, err = KeyOf(r.value)
				require.NoError(t, err)
				list := len(r.text) > 6 && r.text[:7] == "array:["
				if !list {
					assert.Equal(t, r.text, k.Canonical())
				}
				assert.Equal(t, list, k.list)
				checkNormal(t, k)
				checkString(t, k)
				inside, err := KeyOf(k, 0)
				require.NoError(t, err)
				assert.Equal(t, r.text+"\x00number:0", inside.Canonical(), "a Key stands for what it was made from")

				// Behind a pointer and in an unexported field.
				p := reflect.New(reflect.TypeOf([1]any{}).Elem())
				p.Elem().Set(reflect.ValueOf(&r.value).Elem())
				k, err = KeyOf(struct{ unexported any }{p.Interface()})
				require.NoError(t, err)
				assert.Equal(t, "object:{string:10:unexported="+r.text+"}", k.Canonical())
				checkString(t, k)
			}
		})
	}
}
