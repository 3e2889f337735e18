package sessionlog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A CategoryCheck says whether the events of a log carry the category that they must: every kernel event but those of memory,
// and the one that the taxonomy has for its kind.
type CategoryCheck struct {
	Passed    bool      `json:"passed"`
	Events    int       `json:"events"`
	Kernel    int       `json:"kernel"`    // of them, kernel events that must carry a category
	Offenders int       `json:"offenders"` // of them, those that do not
	First     *Offender `json:"first,omitempty"`
}

// An Offender is an event that does not carry its category.
type Offender struct {
	Line int      `json:"line"`
	Seq  *uint64  `json:"seq,omitempty"`
	Kind Kind     `json:"kind"`
	Want Category `json:"want"`
	Got  string   `json:"got"` // "" for none
}

func (o *Offender) String() string {
	got := "none"
	if o.Got != "" {
		got = fmt.Sprintf("%.40q", o.Got)
	}
	return fmt.Sprintf("line %d: %s carries %s as its category, want %q", o.Line, o.Kind, got, o.Want)
}

// CheckCategories reads a log to its end. The error is that of the reader; what was seen until then comes with it.
func CheckCategories(r *Reader) (*CategoryCheck, error) {
	c := &CategoryCheck{}
	for e, err := range r.Entries() {
		if err != nil {
			return c, err
		}
		c.See(e)
	}
	c.Passed = c.Offenders == 0
	return c, nil
}

// See adds one entry to the check, which passes as long as it has no offenders.
func (c *CategoryCheck) See(e *Entry) {
	if e.Form == FormRecord {
		return
	}
	c.Events++
	if !e.Kind.MustCarryCategory() {
		return
	}
	c.Kernel++
	want := e.Kind.Category()
	if got := e.carried(); got != string(want) {
		if c.Offenders++; c.First == nil {
			c.First = &Offender{Line: e.Line, Kind: e.Kind, Want: want, Got: got}
			if e.HasSeq {
				seq := e.Seq
				c.First.Seq = &seq
			}
		}
	}
	c.Passed = c.Offenders == 0
}

// carried is the category that the event carries: "" for none, JSON for what is no string.
func (e *Entry) carried() string {
	if len(e.category) == 0 || string(e.category) == "null" {
		return ""
	}
	if e.category[0] != '"' {
		return string(e.category)
	}
	var s jsonscan.Scanner
	s.Reset(e.category)
	return s.Text()
}

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
