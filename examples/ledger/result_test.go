package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// proven is the table of a run that left s, of two transfers of which each
// account has an entry.
func proven(t *testing.T, by string, s store) (*result, string) {
	t.Helper()
	in, err := read("x", strings.NewReader("from,to,amount\na,b,1.00\na,b,2.00\n"))
	require.NoError(t, err)
	ps := postings(in, by)
	r := &result{input: in, by: by, postings: len(ps), serial: &book{store: newGuarded(2)}, book: &book{store: s}}
	require.NoError(t, serial(t.Context(), r.serial, ps))
	r.prove(ps)
	return r, string(r.table(config{mode: modePool, by: by}))
}

func TestTheProofAcceptsWhatIsRight(t *testing.T) {
	r, table := proven(t, byAccount, &guarded{[]int64{-300, 300}, [][]int{{2, 3}, {2, 3}}})
	require.True(t, r.good(), table)
}

func TestTheProofNoticesABalance(t *testing.T) {
	r, table := proven(t, byTransfer, &guarded{[]int64{-299, 299}, [][]int{{2, 3}, {2, 3}}})
	require.False(t, r.good())
	require.Contains(t, table, "2 accounts have a wrong balance:\n  a: -2.99, which should be -3.00\n")
}

func TestTheProofNoticesMoneyThatCame(t *testing.T) {
	r, table := proven(t, byTransfer, &guarded{[]int64{-300, 301}, [][]int{{2, 3}, {2, 3}}})
	require.False(t, r.good())
	outcome{stdout: table}.hasRow(t, "sum of the balances", "0.01 FAILED: money came or went")
}

func TestTheProofNoticesTheOrder(t *testing.T) {
	for what, lines := range map[string][][]int{
		"  b: line 3 before line 2\n": {{2, 3}, {3, 2}},
		"  b: 1 entry in all\n":       {{2, 3}, {3}},
		"  b: 3 entries in all\n":     {{2, 3}, {2, 2, 3}},
	} {
		s := &guarded{[]int64{-300, 300}, lines}
		r, table := proven(t, byAccount, s)
		require.False(t, r.good())
		outcome{stdout: table}.hasRow(t, "entries in file order", "1 of 2 FAILED")
		require.Contains(t, table, "1 account has entries in another order than the file's:\n"+what)

		// Transfers are not promised to be in order.
		r, _ = proven(t, byTransfer, s)
		require.True(t, r.good())
	}
}

func TestALongListIsCut(t *testing.T) {
	r := &result{input: &input{accounts: strings.Split("a b c d e f g", " ")}, wrong: []int{0, 1, 2, 3, 4, 5, 6},
		serial: &book{store: newGuarded(7)}, book: &book{store: newGuarded(7)}}
	table := string(r.table(config{mode: modeNaive}))
	require.Contains(t, table, "  e: 0.00, which should be 0.00\n  and 2 more\n")
}
