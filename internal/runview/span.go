package runview

import (
	"fmt"
	"strconv"
	"strings"
)

// A Range is which turns are wanted, by their index from 0, both ends included. Zero is none; AllTurns is all.
type Range struct{ from, to int }

// AllTurns is the range of every turn.
var AllTurns = Range{to: int(^uint(0) >> 1)}

// Has reports whether a turn is wanted.
func (r Range) Has(index int) bool { return index >= r.from && index <= r.to }

// ParseRange reads "3", "2..5", "2.." or "..5"; "" is AllTurns.
func ParseRange(s string) (Range, error) {
	if s == "" {
		return AllTurns, nil
	}
	first, last, ranged := strings.Cut(s, "..")
	if !ranged {
		last = first
	}
	r := AllTurns
	errFirst, errLast := parseIndex(first, &r.from), parseIndex(last, &r.to)
	if errFirst != nil || errLast != nil || first+last == "" || r.from > r.to {
		return Range{}, fmt.Errorf(`%.40q is no turn: want "3", or a range as "2..5", "2.." or "..5", of turns from 0`, s)
	}
	return r, nil
}

// parseIndex reads an end of a range; "" leaves it where it is.
func parseIndex(s string, to *int) error {
	if s == "" {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	*to = int(n)
	return err
}
