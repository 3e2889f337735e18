package check

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// An assertion is one entry of a scenario. Exactly one of its families is set.
type assertion struct {
	Name    string       `json:"name"`
	Frame   *frameWant   `json:"frame"`
	State   *stateWant   `json:"state"`
	Timing  *timingWant  `json:"timing"`
	Input   *inputWant   `json:"input"`
	Service *serviceWant `json:"service"`
	Process *processWant `json:"process"`

	node   *plainyaml.Node
	path   string
	source string
}

// family is the one that is set, by its key.
func (a *assertion) family() string {
	return which(a.node, []string{"frame", "state", "timing", "input", "service", "process"})[0]
}

// A span is a window of time, both ends in it. To is below 0 where it is the cassette's end.
type span struct{ From, To time.Duration }

var wholeSpan = span{0, -1}

func (s *span) UnmarshalJSON(b []byte) error {
	*s = wholeSpan
	switch {
	case string(b) == "true":
		return nil
	case b[0] != '{':
		var p period
		err := json.Unmarshal(b, &p)
		s.To = time.Duration(p)
		return err
	}
	var w struct{ From, To *period }
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if w.From != nil {
		s.From = time.Duration(*w.From)
	}
	if w.To != nil {
		s.To = time.Duration(*w.To)
	}
	return nil
}

// whenWant says which screens an assertion is about: exactly one of At, Eventually, Never and Always is set.
type whenWant struct {
	At         *instant `json:"at"`
	Eventually *span    `json:"eventually"`
	Never      *span    `json:"never"`
	Always     *span    `json:"always"`
	For        period   `json:"for"`
}

func (w *whenWant) span() span {
	for _, s := range []*span{w.Eventually, w.Never, w.Always} {
		if s != nil {
			return *s
		}
	}
	return wholeSpan
}

// An instant is a time, or the cassette's end.
type instant struct {
	T   time.Duration
	End bool
}

func (i *instant) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"start"`:
		return nil
	case `"end"`:
		i.End = true
		return nil
	}
	var p period
	err := json.Unmarshal(b, &p)
	i.T = time.Duration(p)
	return err
}

type frameWant struct {
	whenWant
	Contains  string         `json:"contains"`
	Matches   lineExpression `json:"matches"`
	Equals    *textRows      `json:"equals"`
	Stable    period         `json:"stable"`
	Row       *int           `json:"row"`
	Region    *region        `json:"region"`
	Normalise *bool          `json:"normalise"`
}

// textRows are rows: a list of them, or a text with newlines.
type textRows []string

func (t *textRows) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	var s string
	err := json.Unmarshal(b, &s)
	*t = splitRows(s)
	return err
}

type region struct{ Row, Col, Rows, Cols int }

// An expression is a regular expression; the zero one is none. text is as it is written.
type expression struct {
	*regexp.Regexp
	text string
}

func (e *expression) UnmarshalJSON(b []byte) (err error) { return e.read(b, "") }

func (e *expression) read(b []byte, flags string) (err error) {
	if err = json.Unmarshal(b, &e.text); err == nil {
		e.Regexp, err = regexp.Compile(flags + e.text)
	}
	return err
}

// A lineExpression is one in which ^ and $ are the beginning and the end of a line.
type lineExpression struct{ expression }

func (e *lineExpression) UnmarshalJSON(b []byte) error { return e.read(b, "(?m)") }

type size struct{ Rows, Cols int }

type cursorWant struct {
	Row     *int  `json:"row"`
	Col     *int  `json:"col"`
	Visible *bool `json:"visible"`
}

type stateWant struct {
	whenWant
	Cursor    *cursorWant     `json:"cursor"`
	Size      *size           `json:"size"`
	Alternate *bool           `json:"alternate_screen"`
	Title     *titleWant      `json:"title"`
	Modes     map[string]bool `json:"modes"`
	Style     *styleWant      `json:"style"`
}

type titleWant struct {
	Text    string
	Matches expression
}

func (t *titleWant) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &t.Text)
	}
	type plain titleWant
	return json.Unmarshal(b, (*plain)(t))
}

type styleWant struct {
	Row            *int     `json:"row"`
	Col            *int     `json:"col"`
	Text           string   `json:"text"`
	FG             *colorOf `json:"fg"`
	BG             *colorOf `json:"bg"`
	UnderlineColor *colorOf `json:"underline_color"`
	Underline      *string  `json:"underline"`
	Link           *string  `json:"link"`
	Bold           *bool    `json:"bold"`
	Faint          *bool    `json:"faint"`
	Italic         *bool    `json:"italic"`
	Blink          *bool    `json:"blink"`
	Reverse        *bool    `json:"reverse"`
	Hidden         *bool    `json:"hidden"`
	Strike         *bool    `json:"strike"`
	Overline       *bool    `json:"overline"`
}

type timingWant struct {
	Order   []string   `json:"order"`
	MaxGap  *period    `json:"max_gap"`
	Delay   *delayWant `json:"delay"`
	Total   *bounds    `json:"total"`
	Between *span      `json:"between"`
}

type delayWant struct {
	From, To pointWant
	bounds
}

// bounds are a least and a greatest time.
type bounds struct {
	Min *period `json:"min"`
	Max *period `json:"max"`
}

type pointWant struct {
	Text    string        `json:"text"`
	Input   string        `json:"input"`
	Key     string        `json:"key"`
	Resize  *size         `json:"resize"`
	Service *servicePoint `json:"service"`
	At      string        `json:"at"`
}

type servicePoint struct {
	Path   jsonPath        `json:"path"`
	Equals json.RawMessage `json:"equals"`
}

type inputWant struct {
	Equals   *string   `json:"equals"`
	Base64   *[]byte   `json:"equals_base64"`
	Contains string    `json:"contains"`
	Keys     []string  `json:"keys"`
	Paste    []string  `json:"paste"`
	Resizes  *[]size   `json:"resizes"`
	Signals  *[]string `json:"signals"`
	Between  *span     `json:"between"`
}

type serviceWant struct {
	Where   map[string]json.RawMessage `json:"where"`
	Path    jsonPath                   `json:"path"`
	Equals  json.RawMessage            `json:"equals"`
	Matches expression                 `json:"matches"`
	Exists  *bool                      `json:"exists"`
	Count   *countWant                 `json:"count"`
	Between *span                      `json:"between"`
}

// A countWant is how many there must be: from Min to Max, which is below 0 for no end.
type countWant struct{ Min, Max int }

func (c *countWant) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		err := json.Unmarshal(b, &c.Min)
		c.Max = c.Min
		return err
	}
	type plain countWant
	c.Max = -1
	return json.Unmarshal(b, (*plain)(c))
}

type processWant struct {
	ExitCode *int    `json:"exit_code"`
	Signal   *string `json:"signal"`
	TimedOut *bool   `json:"timed_out"`
}

// normalise says what is masked on a screen before texts are looked for.
type normalise struct {
	Off      bool     `json:"-"`
	Home     string   `json:"home"`
	WorkTree string   `json:"worktree"`
	Temp     string   `json:"temp"`
	Disable  []string `json:"disable"`
	Extra    []struct {
		Name    string     `json:"name"`
		Pattern expression `json:"pattern"`
	} `json:"extra"`
}

func (n *normalise) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		n.Off = string(b) == "false"
		return nil
	}
	type plain normalise
	return json.Unmarshal(b, (*plain)(n))
}

func (n *normalise) options() *masks.Options {
	o := &masks.Options{Home: n.Home, WorkTree: n.WorkTree, Temp: n.Temp, Disabled: n.Disable}
	for _, e := range n.Extra {
		o.Extra = append(o.Extra, masks.Extra{Name: e.Name, Pattern: e.Pattern.Regexp})
	}
	return o
}

// masks refuses masks that there are not.
func (r *reading) masks(n *normalise, at *plainyaml.Node) {
	if err := checkMasks(n.options()); err != nil {
		r.errorf(at.Place, "normalise: %v", err)
	}
}
