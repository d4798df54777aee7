package processlock_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pfRow accounts for a row of a public suite, or for a fault that the field has
// seen: by the tests that cover it, by a reason why there can be none, or both
// where the tests cover what is left of it.
type pfRow struct {
	id    string
	tests string // names, divided by blanks
	why   string
}

// pfProblems lists what is wrong with rows, which account for ids. Functions
// that are declared with the prefix must be in a row that they are named after.
func pfProblems(ids string, rows []pfRow, declared map[string]bool, prefix string) (problems []string) {
	wanted := make(map[string]bool)
	for _, id := range strings.Fields(ids) {
		wanted[id] = true
	}
	named := make(map[string]bool)
	seen := make(map[string]bool)
	for _, row := range rows {
		if !wanted[row.id] || seen[row.id] {
			problems = append(problems, row.id+": no such id, or a second row for it")
		}
		seen[row.id] = true
		if row.tests == "" && row.why == "" {
			problems = append(problems, row.id+": neither a test nor a reason")
		}
		for _, test := range strings.Fields(row.tests) {
			if !declared[test] {
				problems = append(problems, fmt.Sprintf("%s: there is no %s", row.id, test))
			}
			if strings.Contains(test, "_"+row.id+"_") {
				named[test] = true
			}
		}
	}
	for id := range wanted {
		if !seen[id] {
			problems = append(problems, id+": no row")
		}
	}
	for test := range declared {
		_, name, ok := strings.Cut(test, prefix+"_")
		if ok && name != "" && !named[test] {
			problems = append(problems, test+": in no row that it is named after")
		}
	}
	slices.Sort(problems)
	return problems
}

// pfDeclared finds the tests, benchmarks, fuzz targets and examples of the
// package, in files of every build tag.
func pfDeclared(t *testing.T) map[string]bool {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	declared := make(map[string]bool)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil {
				continue
			}
			for _, kind := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
				if strings.HasPrefix(f.Name.Name, kind) {
					declared[f.Name.Name] = true
				}
			}
		}
	}
	require.Contains(t, declared, t.Name())
	return declared
}

// The account itself must be able to fail.
func TestAccountFindsWhatIsMissing(t *testing.T) {
	declared := map[string]bool{"TestOld": true, "TestPeer_A1_Works": true, "TestPeer_C3_Forgotten": true}
	assert.Equal(t, []string{
		"A2: neither a test nor a reason",
		"A3: there is no TestGone",
		"A4: no row",
		"A9: no such id, or a second row for it",
		"TestPeer_C3_Forgotten: in no row that it is named after",
	}, pfProblems("A1 A2 A3 A4", []pfRow{
		{id: "A1", tests: "TestPeer_A1_Works TestOld"},
		{id: "A2"},
		{id: "A3", tests: "TestOld TestGone"},
		{id: "A9", why: "not on the list"},
	}, declared, "Peer"))
}

// pfScale is how much of something a test does: often, or once where
// PROCESSLOCK_STRESS asks for more.
func pfScale(often, stress int) int {
	if os.Getenv("PROCESSLOCK_STRESS") != "" {
		return stress
	}
	return often
}
