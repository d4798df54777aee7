package processlock

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

type panicking struct{ value any }

func (p panicking) MarshalText() ([]byte, error) { panic(p.value) }

type calling struct{ key any }

func (c calling) MarshalText() ([]byte, error) {
	k, err := KeyOf(c.key, 1)
	return []byte(k.Canonical()), err
}

// Rule 36. MarshalText is the caller's code: it may panic, and may make keys.
func TestKeyMarshalText(t *testing.T) {
	cause := errors.New("boom")
	for range 3 {
		assert.PanicsWithValue(t, cause, func() { _, _ = KeyOf([]any{"a", map[string]any{"b": panicking{cause}}}) })
		assert.Equal(t, "string:1:a\x00number:1", MustKey("a", 1).Canonical())
	}
	k := MustKey("x", calling{calling{"y"}}, "z")
	inner := "string:1:y\x00number:1"
	middle := fmt.Sprintf("string:%d:%s\x00number:1", len(inner), inner)
	assert.Equal(t, fmt.Sprintf("string:1:x\x00string:%d:%s\x00string:1:z", len(middle), middle), k.Canonical())
	_, err := KeyOf(calling{func() {}})
	assert.EqualError(t, err, "processlock: key: MarshalText of processlock.calling: key[0]: func() has no stable identity")

	// One that hands out its own memory does not share it with the key.
	r := reused(make([]byte, 1))
	list := MustKey(r, r)
	assert.Equal(t, "string:1:1\x00string:1:2", list.Canonical())
}

type reused []byte

func (r reused) MarshalText() ([]byte, error) {
	if r[0]++; r[0] < '0' {
		r[0] = '1'
	}
	return r, nil
}
