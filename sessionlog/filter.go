package sessionlog

import (
	"fmt"
	"strconv"
	"strings"
)

// A Filter says which events are wanted: all that it names must hold. It is a value, comparable; the zero Filter wants all.
// A category and a primitive are those of the taxonomy, whatever a line carries.
type Filter struct {
	Category  Category  // "" for any
	Primitive Primitive // "" for any
	Kind      Kind      // "" for any
	Kernel    bool      // kernel events alone
	Turns     Turns
}

// Turns is a range of turns, both ends of it included. The zero Turns is any event, with a turn or without.
type Turns struct {
	From, To int  // To is 0 for no end
	Set      bool // events without a turn are not in it
}

// ParseTurns reads "3", "2..5", "2.." or "..5".
func ParseTurns(s string) (Turns, error) {
	first, last, ranged := strings.Cut(s, "..")
	t := Turns{Set: true}
	var err error
	if first != "" {
		if t.From, err = strconv.Atoi(first); err != nil || t.From < 0 {
			return Turns{}, errTurns(s)
		}
	}
	switch {
	case !ranged && first == "", ranged && first == "" && last == "":
		return Turns{}, errTurns(s)
	case !ranged:
		last = first
	}
	if last != "" {
		if t.To, err = strconv.Atoi(last); err != nil || t.To < max(t.From, 1) {
			return Turns{}, errTurns(s)
		}
	}
	return t, nil
}

func errTurns(s string) error {
	return fmt.Errorf(`%.40q is no turn; want "3", or a range as "2..5", "2.." or "..5", of turns from 1`, s)
}

// Has reports whether the turn is in the range; has says whether there is one.
func (t Turns) Has(turn int, has bool) bool {
	return !t.Set || has && turn >= t.From && (t.To == 0 || turn <= t.To)
}

// Matches reports whether an event of this kind and turn is wanted; has says whether it has a turn.
func (f Filter) Matches(kind Kind, turn int, has bool) bool {
	switch {
	case f.Kind != "" && f.Kind != kind,
		f.Category != "" && f.Category != kind.Category(),
		f.Primitive != "" && f.Primitive != kind.Primitive(),
		f.Kernel && !kind.Kernel():
		return false
	}
	return f.Turns.Has(turn, has)
}

// Wants reports whether the entry is an event that is wanted. A record of an older producer is none.
func (f Filter) Wants(e *Entry) bool {
	return e.Form != FormRecord && f.Matches(e.Kind, e.Turn, e.HasTurn)
}
