package sessionlog

import "bytes"

// A Form is how an entry stands in its log.
type Form uint8

// The forms. Each stands on a line of its own or is an element of one list that is the whole log.
const (
	FormEnvelope Form = iota // {"seq":0,"event":{"kind":…}}
	FormBare                 // {"kind":…}
	FormRecord               // {"seq":0,"record_type":…}: what older producers kept in the same file; not an event
)

// String returns the form's name.
func (f Form) String() string { return [...]string{"envelope", "bare", "record"}[f] }

// An Entry is one entry of a log: its bytes as they stood, and what a reader needs to know of them. What the event holds is
// read on demand.
type Entry struct {
	Form   Form
	Line   int   // where it begins, from 1
	Offset int64 // the same in bytes

	Seq    uint64
	HasSeq bool
	G      uint64 // the recorder's global ordinal; 0 for none
	TMS    *int64 // milliseconds since the recording began; nil for none

	// Kind is the event's kind; of a FormRecord, "". Turn is the event's turn, where it has one that is an integer.
	Kind    Kind
	Turn    int
	HasTurn bool

	before []byte // what stands between the entry before and this one
	raw    []byte
	after  []byte // what stands behind it in its line, with the newline
	event  []byte // of raw, from at on
	at     int

	category []byte // what the event carries, as it stands; nil for none
}

// Raw returns the entry as it stood: one JSON value.
func (e *Entry) Raw() []byte { return e.raw }

// EventRaw returns the event as it stood: one JSON object; nil of a FormRecord.
func (e *Entry) EventRaw() []byte { return e.event }

// Event reads the event. It is nil of a FormRecord. The error is an *EventError.
func (e *Entry) Event() (Event, error) {
	if e.event == nil {
		return nil, nil
	}
	return parseEvent(e.Kind, e.event)
}

// AppendTo appends the entry as it stood, with the white space and the commas around it, so that all entries of a log and
// the Tail of its reader are the log again.
func (e *Entry) AppendTo(dst []byte) []byte {
	return append(append(append(dst, e.before...), e.raw...), e.after...)
}

// Clone returns a copy that shares no memory with the reader.
func (e *Entry) Clone() *Entry {
	c := *e
	all := e.AppendTo(nil)
	raw, after := len(e.before), len(e.before)+len(e.raw)
	c.before, c.raw, c.after = all[:raw:raw], all[raw:after:after], all[after:]
	if e.event != nil {
		c.event = c.raw[e.at : e.at+len(e.event)]
		c.category = bytes.Clone(e.category)
	}
	if e.TMS != nil {
		ms := *e.TMS
		c.TMS = &ms
	}
	return &c
}
