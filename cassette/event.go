package cassette

import "encoding/json"

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
