package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBadFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-mode fast", `-mode must be serial, pool or naive, not "fast"`},
		{"-by line", `-by must be transfer or account, not "line"`},
		{"-limit 0", "-limit must be between 1 and 10000, not 0"},
		{"-limit 10001", "-limit must be between 1 and 10000, not 10001"},
		{"-latency -1ms", "-latency must not be negative, as -1ms is"},
		{"-latency 5", `invalid value "5" for flag -latency`},
		{"-accounts 1", "-accounts must be between 2 and 1000000, not 1"},
		{"-transfers 0", "-transfers must be between 1 and 10000000, not 0"},
		{"-transfers 10000001", "-transfers must be between 1 and 10000000, not 10000001"},
		{"-seed -1", `invalid value "-1" for flag -seed`},
		{"-what", "flag provided but not defined: -what"},
		{"a.csv b.csv", "one file at most, not 2; flags come before it"},
		{"a.csv -mode naive", "one file at most, not 3; flags come before it"},
		{"-seed 1 a.csv", "-seed is for transfers that are made up, not for those of a file"},
		{"-generate a.csv", "-generate is for transfers that are made up, not for those of a file"},
	} {
		o := runArgs(t.Context(), strings.Fields(c.args)...)
		require.Equal(t, exitUsage, o.code, c.args)
		require.Empty(t, o.stdout, c.args)
		require.Contains(t, o.stderr, "ledger: "+c.want, c.args)
		require.Equal(t, 1, strings.Count(o.stderr, "\n"), o.stderr)
	}
	require.Contains(t, runArgs(t.Context(), "").stderr, "the file must have a name")
}

func TestHelp(t *testing.T) {
	o := runArgs(t.Context(), "-h")
	require.Equal(t, exitOK, o.code)
	require.Empty(t, o.stderr)
	for _, name := range []string{"mode", "by", "limit", "latency", "generate", "accounts", "transfers", "seed"} {
		require.Contains(t, o.stdout, "  -"+name)
	}
}
