package cassette

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A Stream is one of the five that an event may be of.
type Stream uint8

// The streams.
const (
	StreamInput Stream = iota + 1
	StreamOutput
	StreamFrames
	StreamService
	StreamFinal
)

var streamFiles = [...]string{"", InputFile, ChunksFile, FramesFile, ServiceFile, FinalFile}

// File returns the name of the stream's file.
func (s Stream) File() string { return streamFiles[s] }

// Timed is what every event has.
type Timed struct {
	Seq uint64 `json:"seq"`  // from 1, without gaps over all streams
	TMS int64  `json:"t_ms"` // milliseconds since the start
}

// An Event is one line of one stream. The field that Stream names is set, the others are nil.
type Event struct {
	Timed
	Stream  Stream
	G       uint64 // the recorder's global ordinal; 0 where there is none
	Chunk   *Chunk
	Bytes   []byte // of the chunk; valid until the next event. Nil where it was not asked for
	Input   *Input
	Frame   *Frame
	Service *ServiceEvent
	Final   *Final
}

// A Chunk is one read of output.
type Chunk struct {
	Timed
	Offset int64  `json:"offset"` // in output.raw, bytes
	Length int64  `json:"length"` // bytes
	SHA256 string `json:"sha256,omitempty"`
	G      uint64 `json:"g,omitempty"`
}

// The kinds of Input.
const (
	KindInput  = "input"
	KindResize = "resize"
	KindSignal = "signal"
)

// An Input is something that was done to the program.
type Input struct {
	Timed
	Kind   string `json:"kind"`
	Bytes  []byte `json:"bytes,omitempty"`  // of an input; base64 in JSON
	Key    string `json:"key,omitempty"`    // the key's name where it was known: "enter", "ctrl-c"
	Size   *Size  `json:"size,omitempty"`   // of a resize
	Signal string `json:"signal,omitempty"` // of a signal
	G      uint64 `json:"g,omitempty"`
}

// A Size is a terminal's.
type Size struct{ Rows, Cols int }

// A Cursor is where it stands, counted from 0.
type Cursor struct {
	Row, Col int
	Visible  bool
}

// An Exit is how the process ended.
type Exit struct {
	Code     int
	Signal   string
	Exited   bool
	Signaled bool
	Err      json.RawMessage // an object; nil is null, which every reader takes. Older cassettes have a string, which is written as null
}

// A Frame is the screen after RawEnd bytes of output.
type Frame struct {
	Timed
	Size         Size     `json:"size"`
	Text         []string `json:"text"`            // one a row; a wide character once; trailing blanks cut
	Cells        [][]Cell `json:"cells,omitempty"` // of other producers; ours has none
	Cursor       Cursor   `json:"cursor"`
	Title        string   `json:"title,omitempty"`
	RawStart     int64    `json:"raw_start"`     // bytes of output before the change that the frame shows
	RawEnd       int64    `json:"raw_end"`       // bytes of output that the frame shows
	ParserOffset int64    `json:"parser_offset"` // how far the screen model had read
	G            uint64   `json:"g,omitempty"`
}

// A Cell is a place of the screen as other producers write it. FG and BG are the producer's numbers or names.
type Cell struct {
	Char   Char
	Mode   json.RawMessage `json:",omitempty"`
	FG, BG json.RawMessage `json:",omitempty"`
}

// A Char is the text of a cell. In JSON it is the number of a rune, or a string.
type Char string

// A ServiceEvent is something that the layer above noted.
type ServiceEvent struct {
	Timed
	Payload json.RawMessage `json:"payload"` // any JSON
	G       uint64          `json:"g,omitempty"`
}

// MarshalJSON writes one character as the number of its rune, as the format's first producer does, else a string.
func (c Char) MarshalJSON() ([]byte, error) {
	r, n := utf8.DecodeRuneInString(string(c))
	switch {
	case c == "":
		return []byte("0"), nil
	case n == len(c) && r != utf8.RuneError:
		return strconv.AppendInt(nil, int64(r), 10), nil
	}
	return jsonscan.Marshal(string(c))
}

// UnmarshalJSON takes the number of a rune or a string. 0 is no text, what is no rune U+FFFD.
func (c *Char) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = Char(s)
		return nil
	}
	var r *int64
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	switch {
	case r == nil || *r == 0:
		*c = ""
	case *r < 0 || *r > utf8.MaxRune:
		*c = Char(utf8.RuneError)
	default:
		*c = Char(rune(*r))
	}
	return nil
}

// An exitJSON is an Exit as it may come: Signal and Err are whatever the producer's error and signal made of themselves.
type exitJSON struct {
	Code     int
	Signal   json.RawMessage
	Exited   bool
	Signaled bool
	Err      json.RawMessage
}

// UnmarshalJSON takes a signal that is a string, a number, which stays as its digits, or anything else, as its JSON.
func (e *Exit) UnmarshalJSON(b []byte) error {
	var j exitJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*e = Exit{Code: j.Code, Exited: j.Exited, Signaled: j.Signaled, Err: j.Err, Signal: string(j.Signal)}
	switch {
	case string(e.Err) == "null":
		e.Err = nil
	case len(e.Err) > 0 && e.Err[0] != '{' && e.Err[0] != '"':
		return fmt.Errorf("Err: expected an object or null, found %.40q", e.Err)
	}
	switch {
	case e.Signal == "null":
		e.Signal = ""
	case len(j.Signal) > 0 && j.Signal[0] == '"':
		return json.Unmarshal(j.Signal, &e.Signal)
	}
	return nil
}

// MarshalJSON writes an Err that is no object as null, which the format's first producer reads back.
func (e Exit) MarshalJSON() ([]byte, error) {
	err := e.Err
	if len(err) == 0 || err[0] != '{' {
		err = json.RawMessage("null")
	}
	return jsonscan.Marshal(struct {
		Code     int
		Signal   string
		Exited   bool
		Signaled bool
		Err      json.RawMessage
	}{e.Code, e.Signal, e.Exited, e.Signaled, err})
}
