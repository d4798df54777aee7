package main

import (
	"slices"
	"time"
)

// result is what the run came to.
type result struct {
	*input
	by       string
	postings int

	serial     *book
	serialTook time.Duration
	book       *book // of the mode that was asked for; serial's if that was serial
	took       time.Duration
	waited     int64 // requests for an account that was busy

	wrong     []int // accounts whose balance is not that of the serial run
	unordered []int // by account only: those that have not seen their entries in file order
	sum       int64 // of all balances; transfers leave it at zero
}

// prove compares what the mode has left with the serial run, and what each
// account has seen with the file.
func (r *result) prove(ps []posting) {
	file := make([][]int, len(r.accounts))
	for _, p := range ps {
		for _, e := range p.entries {
			file[e.account] = append(file[e.account], p.line)
		}
	}
	for a := range r.accounts {
		balance := r.book.balance(a)
		r.sum += balance
		if balance != r.serial.balance(a) {
			r.wrong = append(r.wrong, a)
		}
		if r.by == byAccount && !slices.Equal(r.book.seen(a), file[a]) {
			r.unordered = append(r.unordered, a)
		}
	}
}

func (r *result) good() bool { return len(r.wrong)+len(r.unordered) == 0 && r.sum == 0 }
