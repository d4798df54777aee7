package processlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pfByHand is what a function is called that takes or gives up a lock, or drops
// a key, by hand.
var pfByHand = regexp.MustCompile(`(?i)unlock|release|acquire|delete|remove|evict|forget|revoke|steal|^(try)?r?lock$`)

// There is one way in, and it takes an fn: nothing that is exported releases a
// lock, drops a key or hands out something that would, so there is no release
// of what was not obtained, twice, or of another's. What AddHooks hands out takes
// hooks away, no lock.
//
// Rule 15.
func TestField_E10_F1_F5_H5_NoLockIsTakenOrReleasedByHand(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	exported := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Recv != nil && exampleName(f) == "" {
				continue
			}
			exported++
			assert.NotRegexp(t, pfByHand, f.Name.Name)
			if f.Type.Results == nil || exampleName(f) == "Coordinator_AddHooks" {
				continue
			}
			for _, result := range f.Type.Results.List {
				if fn, ok := result.Type.(*ast.FuncType); ok {
					assert.NotZero(t, fn.Params.NumFields(), "%s hands out a func() that may release something", f.Name.Name)
				}
			}
		}
	}
	assert.Greater(t, exported, 20, "the test looks at nothing")
	for _, name := range []string{"Unlock", "TryLock", "RLock", "Lock", "ReleaseKey", "DeleteKey"} {
		assert.Regexp(t, pfByHand, name)
	}
	for _, name := range []string{"WithLock", "WithLockValue", "Close", "Shutdown", "Detach"} {
		assert.NotRegexp(t, pfByHand, name)
	}
}
