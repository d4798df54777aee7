package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// header is the first line of every file.
var header = []string{"from", "to", "amount"}

// input is a file that was read to its end and is right.
type input struct {
	name      string
	accounts  []string // in order of appearance
	transfers []transfer
}

// transfer moves cents between two accounts, given by their indexes.
type transfer struct {
	line     int
	from, to int
	cents    int64
}

// lineError says what is wrong with a line. It is found before anything is
// posted.
type lineError struct {
	file string
	line int
	err  error
}

func (e *lineError) Error() string {
	return fmt.Sprintf("%s:%d: %v; nothing was posted", e.file, e.line, e.err)
}

func (e *lineError) Unwrap() error { return e.err }

// read reads transfers from a CSV. Its error names the first line that is not
// one; name is the file's.
func read(name string, r io.Reader) (*input, error) {
	records := csv.NewReader(r)
	records.FieldsPerRecord = -1 // ours says which fields there should be
	records.ReuseRecord = true
	in := &input{name: name}
	index := make(map[string]int)
	total, headed := int64(0), false
	for {
		fields, err := records.Read()
		if err == io.EOF {
			break
		}
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			// Where the record starts: a quote that nobody closes is found at the
			// end of the file.
			return nil, &lineError{name, bad.StartLine, bad.Err}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; nothing was posted", name, err)
		}
		line, _ := records.FieldPos(0)
		if !headed {
			fields[0] = strings.TrimPrefix(fields[0], "\ufeff") // of some spreadsheets
			if !slices.Equal(fields, header) {
				return nil, &lineError{name, line, fmt.Errorf("the header is %q, want %q", strings.Join(fields, ","), strings.Join(header, ","))}
			}
			headed = true
			continue
		}
		t, err := in.transfer(fields, index)
		if err == nil && t.cents > math.MaxInt64-total {
			err = errors.New("the amounts so far add up to more than can be counted")
		}
		if err != nil {
			return nil, &lineError{name, line, err}
		}
		t.line = line
		total += t.cents
		in.transfers = append(in.transfers, t)
	}
	if len(in.transfers) == 0 {
		return nil, fmt.Errorf("%s: there are no transfers; want the header %s and a line for each, such as alice,bob,12.50", name, strings.Join(header, ","))
	}
	return in, nil
}

// transfer reads one, and adds to the accounts those that are new.
func (in *input) transfer(fields []string, index map[string]int) (transfer, error) {
	if len(fields) != len(header) {
		return transfer{}, fmt.Errorf("the number of fields is %d, want %d: %s", len(fields), len(header), strings.Join(header, ","))
	}
	for i, name := range fields[:2] {
		if err := checkAccount(name); err != nil {
			return transfer{}, fmt.Errorf("%s: %w", header[i], err)
		}
	}
	if fields[0] == fields[1] {
		return transfer{}, fmt.Errorf("from and to are the same account, %s", fields[0])
	}
	cents, err := parseCents(fields[2])
	if err != nil {
		return transfer{}, err
	}
	var found [2]int
	for i, name := range fields[:2] {
		at, ok := index[name]
		if !ok {
			at = len(in.accounts)
			in.accounts = append(in.accounts, name)
			index[name] = at
		}
		found[i] = at
	}
	return transfer{from: found[0], to: found[1], cents: cents}, nil
}

// checkAccount refuses what people could not tell from another account.
func checkAccount(name string) error {
	switch {
	case name == "":
		return errors.New("the account is empty")
	case !utf8.ValidString(name):
		return fmt.Errorf("account %q is not UTF-8", name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("account %q begins or ends with a space", name)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("account %q has a character that can't be seen", name)
	}
	return nil
}
