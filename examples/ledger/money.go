package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parseCents reads an amount of money such as 12, 12.3 or 12.34, which is more
// than nothing.
func parseCents(s string) (int64, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0, fmt.Errorf("amount %q is not of the form 12.34", s)
	}
	if len(fraction) > 2 {
		return 0, fmt.Errorf("amount %q has a fraction of a cent", s)
	}
	cents, err := strconv.ParseInt(whole+(fraction + "00")[:2], 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("amount %q is too large", s)
	case err != nil:
		return 0, err
	case cents == 0:
		return 0, fmt.Errorf("amount %q must be more than zero", s)
	}
	return cents, nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// money is what parseCents reads, with two decimals and a sign if need be.
func money(cents int64) string {
	sign, magnitude := "", uint64(cents)
	if cents < 0 {
		sign, magnitude = "-", -magnitude
	}
	return fmt.Sprintf("%s%d.%02d", sign, magnitude/100, magnitude%100)
}
