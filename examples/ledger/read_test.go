package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/dbx-tools/processlock"
)

func TestMalformed(t *testing.T) {
	const good = "from,to,amount\nalice,bob,1.00\n"
	const noTransfers = ": there are no transfers; want the header from,to,amount and a line for each, such as alice,bob,12.50"
	for _, c := range []struct{ text, want string }{
		{"", noTransfers},
		{"from,to,amount\n", noTransfers},
		{"alice,bob,1.00\n", `:1: the header is "alice,bob,1.00", want "from,to,amount"; nothing was posted`},
		{"to,from,amount\n", `:1: the header is "to,from,amount", want "from,to,amount"; nothing was posted`},
		{good + "alice,bob\n", ":3: the number of fields is 2, want 3: from,to,amount; nothing was posted"},
		{good + "alice,bob,1,2\n", ":3: the number of fields is 4, want 3: from,to,amount; nothing was posted"},
		{good + "\n\nalice\n" + good, ":5: the number of fields is 1, want 3: from,to,amount; nothing was posted"},
		{good + " \n", ":3: the number of fields is 1, want 3: from,to,amount; nothing was posted"},
		{good + ",bob,1.00\n", ":3: from: the account is empty; nothing was posted"},
		{good + "alice,\"\",1.00\n", ":3: to: the account is empty; nothing was posted"},
		{good + "alice, bob,1.00\n", `:3: to: account " bob" begins or ends with a space; nothing was posted`},
		{good + "al\xffice,bob,1.00\n", `:3: from: account "al\xffice" is not UTF-8; nothing was posted`},
		{good + "alice,b\x00b,1.00\n", `:3: to: account "b\x00b" has a character that can't be seen; nothing was posted`},
		{good + "\"al\nice\",bob,1.00\n", `:3: from: account "al\nice" has a character that can't be seen; nothing was posted`},
		{good + "alice,alice,1.00\n", ":3: from and to are the same account, alice; nothing was posted"},
		{good + "alice,bob,\n", `:3: amount "" is not of the form 12.34; nothing was posted`},
		{good + "alice,bob,-1.00\n", `:3: amount "-1.00" is not of the form 12.34; nothing was posted`},
		{good + "alice,bob,1.005\n", `:3: amount "1.005" has a fraction of a cent; nothing was posted`},
		{good + "alice,bob,0.00\n", `:3: amount "0.00" must be more than zero; nothing was posted`},
		{good + "alice,bob,92233720368547758.08\n", `:3: amount "92233720368547758.08" is too large; nothing was posted`},
		{good + "alice,bob,92233720368547757.08\n", `:3: the amounts so far add up to more than can be counted; nothing was posted`},
		{good + "alice,b\"ob,1.00\n", `:3: bare " in non-quoted-field; nothing was posted`},
		{good + "alice,\"bob,1.00\n" + strings.Repeat(good, 3), `:3: extraneous or missing " in quoted-field; nothing was posted`},
		// The first counts, wherever others are.
		{good + "alice,bob,x\nbob\n", `:3: amount "x" is not of the form 12.34; nothing was posted`},
	} {
		before := processlock.Default().Stats()
		file := csvFile(t, c.text)
		o := runArgs(t.Context(), file)
		require.Equal(t, outcome{exitUsage, "", "ledger: " + file + c.want + "\n"}, o, c.text)
		require.Equal(t, before, processlock.Default().Stats(), "a lock was taken for %q", c.text)
	}
}

func TestUnreadable(t *testing.T) {
	o := runArgs(t.Context(), "none.csv")
	require.Equal(t, exitUsage, o.code)
	require.Regexp(t, `^ledger: .*none\.csv.*\n$`, o.stderr)

	fire := errors.New("the disk is on fire")
	_, err := read("some.csv", io.MultiReader(strings.NewReader("from,to,amount\na,b,1\n"), iotest.ErrReader(fire)))
	require.ErrorIs(t, err, fire)
	require.EqualError(t, err, "some.csv: the disk is on fire; nothing was posted")
}

// Quoted names, blank lines, amounts with fewer decimals.
func TestAFileByHand(t *testing.T) {
	f, err := os.Open("testdata/week.csv")
	require.NoError(t, err)
	defer f.Close()
	in, err := read("week.csv", f)
	require.NoError(t, err)
	require.Equal(t, []string{"salaries", "alice", "bob", "rent", "O'Neill, Ann"}, in.accounts)
	require.Equal(t, transfer{line: 3, from: 0, to: 2, cents: 180050}, in.transfers[1])
	require.Equal(t, transfer{line: 9, from: 2, to: 4, cents: 3540}, in.transfers[6])

	b := &book{store: newGuarded(len(in.accounts))}
	require.NoError(t, pool(t.Context(), b, postings(in, byTransfer), in.accounts, 3))
	var got []string
	for a := range in.accounts {
		got = append(got, money(b.balance(a)))
	}
	require.Equal(t, []string{"-4300.50", "1529.96", "1085.15", "1650.00", "35.39"}, got)
}

func TestSpreadsheetsCSV(t *testing.T) {
	in, err := read("x", strings.NewReader("\ufefffrom,to,amount\r\na,b,1\r\n"))
	require.NoError(t, err)
	require.Equal(t, []transfer{{line: 2, from: 0, to: 1, cents: 100}}, in.transfers)
}

func TestMoney(t *testing.T) {
	for text, cents := range map[string]int64{
		"1": 100, "0.01": 1, "0.1": 10, "12.34": 1234, "007.5": 750, "92233720368547758.07": 1<<63 - 1,
	} {
		got, err := parseCents(text)
		require.NoError(t, err)
		require.Equal(t, cents, got, text)
	}
	for _, text := range []string{"", ".", "1.", ".5", "+1", "-1", "1e3", "1,000.00", "0x10", "1_0", "1.2.3", " 1", "1 ", "٣", "1.٣", "NaN"} {
		_, err := parseCents(text)
		require.ErrorContains(t, err, "is not of the form 12.34", text)
	}
	for cents, text := range map[int64]string{
		0: "0.00", 5: "0.05", -5: "-0.05", 1234: "12.34", -1234: "-12.34", 1<<63 - 1: "92233720368547758.07", -1 << 63: "-92233720368547758.08",
	} {
		require.Equal(t, text, money(cents))
	}
}
