package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

// generate writes as many transfers as cfg says, in the form that read reads.
// The same seed and numbers give the same bytes. Some accounts are far busier
// than others, as they are in life.
func generate(w io.Writer, cfg config) error {
	random := rand.New(rand.NewPCG(cfg.seed, 0))
	busy := rand.NewZipf(random, 1.1, 30, uint64(cfg.accounts-1))
	width := len(strconv.Itoa(cfg.accounts - 1))
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, strings.Join(header, ","))
	for range cfg.transfers {
		from := busy.Uint64()
		to := busy.Uint64()
		for to == from {
			to = random.Uint64N(uint64(cfg.accounts)) // ends soon, however few there are
		}
		fmt.Fprintf(out, "account-%0*d,account-%0*d,%s\n", width, from, width, to, money(1+random.Int64N(100_000)))
	}
	return out.Flush()
}
