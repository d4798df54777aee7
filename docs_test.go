package processlock_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contract names the rules of the contract.
var contract = []string{
	1:  "one exclusive holder, or shared ones",
	2:  "different keys never wait for each other",
	3:  "order of arrival, direct hand-over",
	4:  "shared requests: neighbours together, never past an exclusive one",
	5:  "who leaves the queue leaves the order; the grantable are granted",
	6:  "fn runs on the caller's goroutine",
	7:  "memory model",
	8:  "a done context never runs fn",
	9:  "a done context ends the wait",
	10: "if grant and cancel meet, the context wins",
	11: "once fn runs, ctx is fn's business",
	12: "odd contexts, nothing registered, fn's context",
	13: "results: fn's error as it is, AcquireError otherwise",
	14: "WithLockValue",
	15: "return, panic, Goexit release once",
	16: "misuse panics",
	17: "keys without identity",
	18: "order of checks",
	19: "IfAvailable",
	20: "MaxWait",
	21: "MaxWaiters",
	22: "Reentrant",
	23: "All",
	24: "clients",
	25: "Client.Close",
	26: "closing an idle client is free",
	27: "lost holds",
	28: "Worker",
	29: "Shutdown",
	30: "own lineage is a deadlock",
	31: "cycles",
	32: "no false alarm, Detach",
	33: "no lineage, no cost",
	34: "no entry left",
	35: "no goroutine, no timer",
	36: "no user code under an internal lock",
	37: "synctest",
	38: "platforms, race detector",
	39: "Snapshot",
	40: "since when",
	41: "Stats",
	42: "hooks",
}

var ruleComment = regexp.MustCompile(`// .*?\bRules? (\d+(?:(?:, | and |, and |-| to )\d+)*)`)

// TestRules lists the rules of the contract that no test names.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	proven := make(map[int][]string)
	for _, file := range files {
		if file == "docs_test.go" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		syntax, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
		require.NoError(t, err)
		belongs := make(map[*ast.CommentGroup]bool) // to a declaration, or it is within one
		for _, d := range syntax.Decls {
			for _, c := range syntax.Comments {
				if f, ok := d.(*ast.FuncDecl); ok && f.Doc == c || d.Pos() <= c.Pos() && c.End() <= d.End() {
					belongs[c] = true
				}
			}
		}
		for _, c := range syntax.Comments {
			for _, m := range ruleComment.FindAllStringSubmatch(string(text[c.Pos()-1:c.End()-1]), -1) {
				if !belongs[c] {
					t.Errorf("%s: %q belongs to no test", file, m[0])
				}
				for _, n := range ruleNumbers(t, m[1]) {
					proven[n] = append(proven[n], file)
				}
			}
		}
	}
	for n, title := range contract {
		if n > 0 && len(proven[n]) == 0 {
			t.Errorf("rule %d (%s): no test names it", n, title)
		}
	}
	for n, in := range proven {
		if n < 1 || n >= len(contract) {
			t.Errorf("rule %d, named in %v, is not in the contract", n, in)
		}
	}
}

// ruleNumbers reads "3", "3 and 4", "3, 4 and 6", "3-5", "3 to 5".
func ruleNumbers(t *testing.T, list string) []int {
	var numbers []int
	last := 0
	for _, f := range regexp.MustCompile(`(-| to )?(\d+)`).FindAllStringSubmatch(list, -1) {
		n, err := strconv.Atoi(f[2])
		require.NoError(t, err)
		if f[1] == "" {
			last = n - 1
		}
		for last < n {
			last++
			numbers = append(numbers, last)
		}
	}
	return numbers
}

func TestRuleNumbers(t *testing.T) {
	for list, want := range map[string][]int{
		"9":          {9},
		"9 and 12":   {9, 12},
		"3, 4 and 6": {3, 4, 6},
		"30-33":      {30, 31, 32, 33},
		"30 to 32":   {30, 31, 32},
	} {
		assert.Equal(t, want, ruleNumbers(t, list), list)
	}
}

// TestReadmeExamples compares Go blocks of the README with the bodies of
// examples, which are compiled and run: the first, and the two on worker pools.
func TestReadmeExamples(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	readme := string(text)
	_, pools, ok := strings.Cut(readme, "\n## Worker pools\n")
	require.True(t, ok)
	pools, _, _ = strings.Cut(pools, "\n## ")
	require.Len(t, goBlocks(pools), 2)
	for _, c := range []struct{ block, file, name string }{
		{goBlocks(readme)[0], "example_test.go", "Example"},
		{goBlocks(pools)[0], "example_group_test.go", "ExampleGroup"},
		{goBlocks(pools)[1], "example_test.go", "ExampleWorker"},
	} {
		body, output := example(t, c.file, c.name)
		assert.Equal(t, body, strings.TrimSpace(c.block), c.name)
		assert.Contains(t, readme, "It prints `"+output+"`", c.name)
	}
}

// example returns what the example does, and its one line of output.
func example(t *testing.T, file, name string) (body, output string) {
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, 0)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			body = string(src[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset])
		}
	}
	body, output, ok := strings.Cut(body, "\t// Output: ")
	require.True(t, ok, name)
	return strings.TrimSpace(strings.ReplaceAll(body, "\n\t", "\n")), strings.TrimSpace(output)
}

func goBlocks(markdown string) []string {
	blocks := strings.Split(markdown, "```go\n")[1:]
	for i, b := range blocks {
		blocks[i], _, _ = strings.Cut(b, "```\n")
	}
	return blocks
}

// TestReadmeBlocks parses every Go block of the README.
func TestReadmeBlocks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := goBlocks(string(readme))
	require.NotEmpty(t, blocks)
	for i, b := range blocks {
		b = strings.ReplaceAll(b, "\t...\n", "")
		_, err := parser.ParseFile(token.NewFileSet(), "block", "package p\nfunc _() {\n"+b+"\n}", 0)
		assert.NoError(t, err, "block %d", i+1)
	}
}

// TestExamples demands an Example, with output, for each exported function,
// method and option.
func TestExamples(t *testing.T) {
	// Too small for one, or not to be called after the others.
	without := map[string]string{
		"Default":            "in the Snapshot example of a client",
		"Configure":          "panics once another example has locked",
		"Client_Name":        "in ExampleCoordinator_WithClient",
		"Key_Canonical":      "the identity text is for other implementations, not for reading",
		"Key_String":         "printed by ExampleKeyOf",
		"Key_LogValue":       "in ExampleAcquireError_LogValue",
		"Mode_String":        "printed by ExampleCoordinator_Snapshot",
		"Mode_MarshalText":   "the same text",
		"AcquireError_Error": "", "AcquireError_Unwrap": "", "AcquireError_Timeout": "",
		"DeadlockError_Error": "", "DeadlockError_Unwrap": "", "DeadlockError_LogValue": "as AcquireError's",
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	exported, examples := make(map[string]bool), make(map[string]bool)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if strings.HasSuffix(name, "_test.go") {
				if example, ok := strings.CutPrefix(f.Name.Name, "Example"); ok {
					examples[example] = true
				}
			} else if id := exampleName(f); id != "" {
				exported[id] = true
			}
		}
	}
	for _, option := range []string{"Shared", "IfAvailable", "Reentrant"} {
		exported[option] = true
	}
	require.Contains(t, exported, "WithLock")
	for id := range exported {
		_, excused := without[id]
		assert.NotEqual(t, excused, examples[id], "Example%s", id)
	}
	for id := range without {
		assert.True(t, exported[id], "%s is not there", id)
	}
}

// exampleName is the suffix of the example of f, or "" if f is not exported.
func exampleName(f *ast.FuncDecl) string {
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
	id, ok := recv.(*ast.Ident)
	if !ok || !id.IsExported() {
		return ""
	}
	return id.Name + "_" + f.Name.Name
}

// TestDependencies keeps what the library drags into a program small.
func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Module", ".").Output()
	require.NoError(t, err)
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; seen++ {
		var p struct {
			ImportPath string
			Standard   bool
			Module     *struct{ Path string }
		}
		err := dec.Decode(&p)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if !p.Standard {
			require.NotNil(t, p.Module)
			assert.Contains(t, []string{"github.com/dbx-tools/processlock", "golang.org/x/sync"}, p.Module.Path, p.ImportPath)
		}
		// log/slog, which LogValue and Options.Logger speak, brings log; neither
		// brings any of these.
		assert.NotContains(t, []string{"net", "net/http", "testing", "os/exec", "flag", "html/template", "crypto/tls", "expvar"}, p.ImportPath)
	}
	assert.Greater(t, seen, 10)
}
