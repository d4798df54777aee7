package processlock

import (
	"testing"
	"time"
)

func BenchmarkKeyOf(b *testing.B) {
	type invoice struct {
		Tenant string `json:"tenant"`
		ID     int    `json:"id"`
	}
	type private struct {
		tenant string
		at     time.Time
	}
	for _, c := range []struct {
		name string
		key  any
	}{
		{"string", "invoice-7"},
		{"int", 7},
		{"namedString", namedString("invoice-7")},
		{"float", 7.5},
		{"list", []any{"invoice", 7}},
		{"strings", []string{"invoice", "7"}},
		{"nestedList", []any{"invoice", []any{7, 8}}},
		{"struct", invoice{"acme", 7}},
		{"pointer", &invoice{"acme", 7}},
		{"privateStruct", private{"acme", time.Unix(1e9, 0)}},
		{"array16", [16]byte{1, 2, 3}},
		{"text", marshaler{"10.0.0.1"}},
		{"time", time.Unix(1e9, 0)},
		{"map", map[string]int{"a": 1, "b": 2, "c": 3}},
		{"key", MustKey("invoice", 7)},
		{"keyInside", []any{MustKey("invoice", 7), 1}},
	} {
		b.Run("key="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := keyOf(c.key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkKeyID(b *testing.B) {
	k := MustKey("invoice", 7)
	b.ReportAllocs()
	for b.Loop() {
		k.ID()
	}
}

func BenchmarkKeyString(b *testing.B) {
	k := MustKey("invoice", 7)
	b.ReportAllocs()
	for b.Loop() {
		_ = k.String()
	}
}
