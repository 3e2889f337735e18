package tape

import "encoding/json"

// Version is the format version that this package writes, and the highest that it reads.
const Version = 1

// A Header is the first line of a tape.
type Header struct {
	Version         int      // format version; 0 writes Version
	Producer        string   // harn_version: the producer's name and version
	StartedAtUnixMS *int64   // Unix epoch ms, nil where the run used the real clock
	ScriptPath      *string  // informational
	Argv            []string // the program's arguments
	Extra           []Field  // further keys, as they stood
}

// A Field is a JSON key and its value, verbatim.
type Field struct {
	Name  string
	Value json.RawMessage
}

// A Phase says whose doing a record is.
type Phase uint8

// The phases. A reader takes an unknown one for PhaseUserScript, and what is saved from it says so.
const (
	PhaseUserScript      Phase = iota // the program's own body
	PhaseRuntimeFinalize              // the runtime, while it drained after the program
)

// String returns the format's name of p.
func (p Phase) String() string {
	if p == PhaseRuntimeFinalize {
		return "runtime_finalize"
	}
	return "user_script"
}

// A Record is one line of a tape after the header.
type Record struct {
	Seq           uint64
	Phase         Phase
	VirtualTimeMS int64 // the run's clock, Unix epoch ms
	MonotonicMS   int64 // ms since the recording began
	Kind          Kind
	G             uint64     // the recorder's global ordinal, from 1; 0 where the tape has none
	Raw           []RawBytes // true bytes of strings that are not UTF-8
	Extra         []Field    // further keys of the line, as they stood
}

// RawBytes holds the true bytes of a string that stands on the tape with U+FFFD in it. Key is the key of the string in
// the kind's object; an element of a list is key.index ("args.2", "request_headers.3").
type RawBytes struct {
	Key   string
	Bytes []byte
}

// A Kind is the payload of a record: one of the pointer types of this package, *Unknown for any other.
type Kind interface {
	// Name is the value of the inner key "kind".
	Name() string
}
