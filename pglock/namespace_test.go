package pglock_test

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"testing"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// spaced are lock ids in a namespace, with the text whose SHA-256 they begin:
// whoever takes part from another language has to come to the same. They are
// frozen.
var spaced = []struct {
	namespace string
	key       any
	text      string
	id        int64
}{
	{"billing", "a", "string:7:billing\x00string:1:a", -343692906928278708},
	{"billing", []any{"a", 7}, "string:7:billing\x00string:1:a\x00number:7", 4732348519843887498},
	{"billing", big.NewInt(7), "string:7:billing\x00bigint:7", 5695932319849605281},
	{"billing", map[string]any{"b": nil, "a": 1}, "string:7:billing\x00object:{string:1:a=number:1,string:1:b=null}", 4220481316851170641},
	{"billing", []any{}, "string:7:billing", 3987655628833111348},
	{"λ", []any{[]any{"a"}}, "string:1:λ\x00array:[string:1:a]", -2272762394546985684},
}

func TestNamespaceIdsAreThePublishedOnes(t *testing.T) {
	t.Parallel()
	for _, s := range spaced {
		id, err := offline(t, pglock.Options{Namespace: s.namespace}).LockID(s.key)
		require.NoError(t, err)
		assert.Equal(t, s.id, id, s.text)
		sum := sha256.Sum256([]byte(s.text))
		assert.Equal(t, s.id, int64(binary.BigEndian.Uint64(sum[:8])), s.text)
		// It is the list that begins with the namespace.
		list := []any{s.namespace, s.key}
		if parts, ok := s.key.([]any); ok {
			list = append([]any{s.namespace}, parts...)
		}
		key := processlock.MustKey(list)
		assert.Equal(t, s.text, key.Canonical())
		assert.Equal(t, s.id, key.ID())
	}
}
