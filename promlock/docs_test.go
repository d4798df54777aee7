package promlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README's example is the one that is compiled and run.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	block, _, _ := strings.Cut(rest, "```\n")
	src, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "example_test.go", src, 0)
	require.NoError(t, err)
	body := ""
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Example" {
			body = string(src[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset])
		}
	}
	body, _, ok = strings.Cut(body, "\t// Output: ")
	require.True(t, ok)
	assert.Equal(t, strings.TrimSpace(strings.ReplaceAll(body, "\n\t", "\n")), strings.TrimSpace(block))
}

// The README and NewCollector name the metrics that there are, with their types.
func TestDocsNameTheMetrics(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("collector.go")
	require.NoError(t, err)
	types := types(t)
	require.Len(t, types, 11)
	for name, typ := range types {
		assert.Contains(t, string(readme), "| `"+name+"` | "+strings.ToLower(typ.String())+" |")
		assert.Regexp(t, `//\t`+name+` +\w+`, string(source))
	}
	for _, name := range append(metricName.FindAllString(string(readme), -1), metricName.FindAllString(string(source), -1)...) {
		assert.Contains(t, types, name)
	}
}
