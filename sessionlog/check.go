package sessionlog

import (
	"fmt"

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
