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

	none bool // two filters were put together that nothing passes
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

// String returns what ParseTurns reads; "" for the zero Turns.
func (t Turns) String() string {
	switch {
	case !t.Set:
		return ""
	case t.From == t.To:
		return strconv.Itoa(t.From)
	case t.From == 0:
		return ".." + strconv.Itoa(t.To)
	case t.To == 0:
		return strconv.Itoa(t.From) + ".."
	}
	return strconv.Itoa(t.From) + ".." + strconv.Itoa(t.To)
}

// Has reports whether the turn is in the range; has says whether there is one.
func (t Turns) Has(turn int, has bool) bool {
	return !t.Set || has && turn >= t.From && (t.To == 0 || turn <= t.To)
}

// Matches reports whether an event of this kind and turn is wanted; has says whether it has a turn.
func (f Filter) Matches(kind Kind, turn int, has bool) bool {
	switch {
	case f.none,
		f.Kind != "" && f.Kind != kind,
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

// And returns the filter that wants what both want.
func (f Filter) And(g Filter) Filter {
	out := Filter{
		Category: both(f.Category, g.Category, &f.none), Primitive: both(f.Primitive, g.Primitive, &f.none),
		Kind: both(f.Kind, g.Kind, &f.none), Kernel: f.Kernel || g.Kernel,
	}
	out.Turns, out.none = f.Turns.and(g.Turns), f.none || g.none
	return out
}

// both is the value that both filters name; none is set where they name two.
func both[T ~string](a, b T, none *bool) T {
	switch {
	case a == "":
		return b
	case b != "" && a != b:
		*none = true
	}
	return a
}

func (t Turns) and(u Turns) Turns {
	if !t.Set || !u.Set {
		if u.Set {
			return u
		}
		return t
	}
	to := min(t.To, u.To)
	if t.To == 0 || u.To == 0 {
		to = max(t.To, u.To)
	}
	return Turns{From: max(t.From, u.From), To: to, Set: true}
}
