package check

import (
	"encoding/json"
	"io"
	"time"
)

// ResultVersion is the version of a Result's JSON.
const ResultVersion = 1

// A Status is what came of an assertion.
type Status string

// The statuses. What could not be looked at is not passed.
const (
	Passed    Status = "passed"
	Failed    Status = "failed"
	Unchecked Status = "unchecked" // the cassette does not hold what would tell
)

// A Result is what came of a scenario.
type Result struct {
	Version    int       `json:"version"`
	Passed     bool      `json:"passed"` // all of them
	Scenario   string    `json:"scenario"`
	Cassette   Checked   `json:"cassette"`
	Counts     Counts    `json:"counts"`
	Assertions []Outcome `json:"assertions"`
}

// Checked is the cassette that was looked at.
type Checked struct {
	Path       string `json:"path"`
	ID         string `json:"id"`
	SHA256     string `json:"sha256"`
	DurationMS int64  `json:"duration_ms"`
	Screens    int    `json:"screens"` // with the blank one at the start
	Finished   bool   `json:"finished"`
}

// Counts are how many assertions came out how.
type Counts struct {
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Unchecked int `json:"unchecked"`
}

// An Outcome is what came of one assertion. Wanted and Came are for people.
type Outcome struct {
	Name     string    `json:"name,omitempty"`
	Family   string    `json:"family"`
	Line     int       `json:"line"` // in the scenario, from 1
	Column   int       `json:"column"`
	Status   Status    `json:"status"`
	Source   string    `json:"source"` // as it is written
	Wanted   string    `json:"wanted,omitempty"`
	Came     string    `json:"came,omitempty"`
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Evidence is what a failure is understood by.
type Evidence struct {
	Frames  []FrameTime `json:"frames,omitempty"`
	Screen  *Excerpt    `json:"screen,omitempty"`
	Context []Nearby    `json:"context,omitempty"` // service events, inputs, resizes and signals before it and while it stood, the latest last
}

// A FrameTime is when a screen came to stand: after the event Seq. Seq 0 is the blank screen at the start.
type FrameTime struct {
	Is  string `json:"is"` // before, at, after
	Seq int64  `json:"seq"`
	TMS int64  `json:"t_ms"`
}

// A Nearby is an event that came shortly before.
type Nearby struct {
	Kind string `json:"kind"` // input, resize, signal, service
	Seq  int64  `json:"seq"`
	TMS  int64  `json:"t_ms"`
	Text string `json:"text"`
}

// An Excerpt is a part of a screen. Rows and columns count from 0.
type Excerpt struct {
	Seq     int64  `json:"seq"`
	TMS     int64  `json:"t_ms"`
	Rows    int    `json:"rows"`
	Cols    int    `json:"cols"`
	Cursor  [2]int `json:"cursor"` // row, column
	Hidden  bool   `json:"cursor_hidden,omitempty"`
	Lines   []Line `json:"lines"`
	Omitted int    `json:"omitted,omitempty"` // rows that are not shown and not blank
}

// A Line is a row of an Excerpt, or several that wrap.
type Line struct {
	Row       int      `json:"row"`
	Col       int      `json:"col,omitempty"` // where the text begins
	Text      string   `json:"text"`
	Marks     [][2]int `json:"marks,omitempty"` // columns of Text from…to that are not as wanted or, of what must not be, that are
	Wanted    string   `json:"wanted,omitempty"`
	WantedCol int      `json:"wanted_col,omitempty"`
	HasWanted bool     `json:"-"`
}

// WriteJSON writes r as one object and a newline.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

func (r *Result) add(o Outcome) {
	switch o.Status {
	case Passed:
		r.Counts.Passed++
	case Failed:
		r.Counts.Failed++
	default:
		r.Counts.Unchecked++
	}
	r.Assertions = append(r.Assertions, o)
	r.Passed = r.Counts.Passed == len(r.Assertions)
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
