package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// The modes; each but the first is compared with the first.
const (
	modeSerial = "serial" // one posting after the other
	modePool   = "pool"   // a processlock.Group
	modeNaive  = "naive"  // an errgroup, and no lock
)

// What a task posts.
const (
	byTransfer = "transfer"
	byAccount  = "account" // one of a transfer's two entries
)

// These keep a slip of the finger from exhausting the memory.
const (
	maxLimit     = 10_000
	maxAccounts  = 1_000_000
	maxTransfers = 10_000_000
)

// config is what the flags say.
type config struct {
	mode     string
	by       string
	limit    int
	latency  time.Duration
	file     string // "": transfers are made up, from the three below
	generate bool

	accounts  int
	transfers int
	seed      uint64
}

func flags(cfg *config) *flag.FlagSet {
	set := flag.NewFlagSet("ledger", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&cfg.mode, "mode", modePool, "who posts: serial, pool or naive, a pool without locks; the last two are compared\nwith serial")
	set.StringVar(&cfg.by, "by", byTransfer, "what a task posts: a transfer, or one entry, so that it needs one account only")
	set.IntVar(&cfg.limit, "limit", 16, "how many tasks of a pool run at once")
	set.DurationVar(&cfg.latency, "latency", time.Millisecond, "how long a posting takes between reading and writing the balances")
	set.BoolVar(&cfg.generate, "generate", false, "write transfers to standard output and stop")
	set.IntVar(&cfg.accounts, "accounts", 1000, "without a file: between how many accounts, at most")
	set.IntVar(&cfg.transfers, "transfers", 2000, "without a file: how many transfers")
	set.Uint64Var(&cfg.seed, "seed", 1, "without a file: the seed from which they are made up")
	return set
}

func usage(w io.Writer) {
	var cfg config
	set := flags(&cfg)
	set.SetOutput(w)
	fmt.Fprintln(w, "usage: ledger [flags] [file.csv]")
	set.PrintDefaults()
}

func parse(args []string) (config, error) {
	var cfg config
	set := flags(&cfg)
	if err := set.Parse(args); err != nil {
		return cfg, err
	}
	switch cfg.mode {
	case modeSerial, modePool, modeNaive:
	default:
		return cfg, fmt.Errorf("-mode must be serial, pool or naive, not %q", cfg.mode)
	}
	switch {
	case set.NArg() > 1:
		return cfg, fmt.Errorf("one file at most, not %d; flags come before it", set.NArg())
	case cfg.by != byTransfer && cfg.by != byAccount:
		return cfg, fmt.Errorf("-by must be transfer or account, not %q", cfg.by)
	case cfg.limit < 1 || cfg.limit > maxLimit:
		return cfg, fmt.Errorf("-limit must be between 1 and %d, not %d", maxLimit, cfg.limit)
	case cfg.latency < 0:
		return cfg, fmt.Errorf("-latency must not be negative, as %v is", cfg.latency)
	case cfg.accounts < 2 || cfg.accounts > maxAccounts:
		return cfg, fmt.Errorf("-accounts must be between 2 and %d, not %d", maxAccounts, cfg.accounts)
	case cfg.transfers < 1 || cfg.transfers > maxTransfers:
		return cfg, fmt.Errorf("-transfers must be between 1 and %d, not %d", maxTransfers, cfg.transfers)
	}
	if set.NArg() == 1 {
		if cfg.file = set.Arg(0); cfg.file == "" {
			return cfg, errors.New("the file must have a name")
		}
		var err error
		set.Visit(func(f *flag.Flag) {
			switch f.Name {
			case "accounts", "transfers", "seed", "generate":
				err = fmt.Errorf("-%s is for transfers that are made up, not for those of a file", f.Name)
			}
		})
		if err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}
