package pglock_test

import (
	"crypto/sha256"
	"encoding/binary"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// quotes are the parts of examples, which are compiled and run, that the README
// shows: what lies between lines that say so, or between one and the output.
func quotes(t *testing.T) map[string]string {
	t.Helper()
	const name = "example_test.go"
	src, err := os.ReadFile(name)
	require.NoError(t, err)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, 0)
	require.NoError(t, err)
	found := make(map[string]string)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		body := string(src[fset.Position(f.Body.Lbrace).Offset:fset.Position(f.Body.Rbrace).Offset])
		body, _, ok = strings.Cut(body, "\t// Output:")
		require.True(t, ok, "%s has no output, so it is not run", f.Name.Name)
		if parts := strings.Split(body, "\t// README\n"); len(parts) > 1 {
			found[strings.TrimSpace(strings.ReplaceAll("\n"+parts[1], "\n\t", "\n"))] = f.Name.Name
		}
	}
	return found
}

// TestReadmeBlocks compares each Go block of the README with an example.
func TestReadmeBlocks(t *testing.T) {
	examples := quotes(t)
	require.NotEmpty(t, examples)
	for _, block := range strings.Split(readme(t), "```go\n")[1:] {
		block, _, ok := strings.Cut(block, "```\n")
		require.True(t, ok)
		block = strings.TrimSpace(block)
		assert.NotEmpty(t, examples[block], "in no example:\n%s", block)
		delete(examples, block)
	}
	assert.Empty(t, examples, "not in the README")
}

// TestReadmeIDs derives the ids in the README from the texts beside them.
func TestReadmeIDs(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\|.*\\| `([^`|]+)` \\| `(-?\\d+)` \\|$").FindAllStringSubmatch(readme(t), -1)
	require.Len(t, rows, 4)
	for _, row := range rows {
		sum := sha256.Sum256([]byte(strings.ReplaceAll(row[1], `\0`, "\x00")))
		id := int64(binary.BigEndian.Uint64(sum[:8]))
		assert.Equal(t, row[2], strconv.FormatInt(id, 10), row[1])
	}
}

// TestExamples demands an Example for each function and method that is exported.
func TestExamples(t *testing.T) {
	without := map[string]bool{
		"New": true, "Locker_Close": true, // in Example
		"WaitMode_String": true,
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	exported, examples := make(map[string]bool), make(map[string]bool)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if strings.HasSuffix(name, "_test.go") {
				examples[strings.TrimPrefix(f.Name.Name, "Example")] = true
			} else if id := exportedName(f); id != "" {
				exported[id] = true
			}
		}
	}
	require.Contains(t, exported, "Locker_WithLock")
	for id := range exported {
		assert.NotEqual(t, without[id], examples[id], "Example%s", id)
	}
	for id := range without {
		assert.True(t, exported[id], "%s is not there", id)
	}
}

// exportedName is what the example of f is called after, or "" if f is for the
// package itself.
func exportedName(f *ast.FuncDecl) string {
	if !f.Name.IsExported() {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	recv := f.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	if id, ok := recv.(*ast.Ident); ok && id.IsExported() {
		return id.Name + "_" + f.Name.Name
	}
	return ""
}
