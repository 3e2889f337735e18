package sessionlog

import (
	"encoding/json"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Unknown is an event of a kind that this package does not know. All its keys but those of Common are in Extra.
type Unknown struct {
	Common    `turn:"optional"`
	EventKind Kind
}

// ParseEvent reads one event, an object with a "kind". It shares no memory with b. The error is an *EventError: what is no
// JSON in UTF-8, no object, without a kind that is a string, has a known key twice, or a known key with a value of another
// type or out of range. Any other missing key reads as zero.
func ParseEvent(b []byte) (Event, error) {
	kind, err := kindOf(b)
	if err != nil {
		return nil, &EventError{Err: err}
	}
	return parseEvent(kind, b)
}

// parseEvent reads an event in UTF-8 whose kind is known and stands in it once.
func parseEvent(kind Kind, b []byte) (Event, error) {
	e := newEvent(kind)
	s := scanners.Get().(*jsonscan.Scanner)
	s.Reset(b)
	readObject(s, e)
	err := s.End()
	s.Reset(nil)
	scanners.Put(s)
	if err != nil {
		return nil, &EventError{EventKind: kind, Err: err}
	}
	return e, nil
}

// scanners are kept for the room that each has for strings with escapes.
var scanners = sync.Pool{New: func() any { return new(jsonscan.Scanner) }}

// kindOf returns the kind of an event that is valid JSON.
func kindOf(b []byte) (Kind, error) {
	if err := jsonscan.ValidUTF8(b); err != nil {
		return "", err
	}
	var s jsonscan.Scanner
	s.Reset(b)
	kind, found := Kind(""), false
	for s.Begin('{'); s.More('}'); {
		switch {
		case string(s.Key()) != "kind":
			s.Skip()
		case found:
			s.Fail(`key "kind" stands twice`)
		default:
			kind, found = Kind(s.Text()), true
		}
	}
	if err := s.End(); err != nil {
		return "", err
	}
	if !found {
		return "", errNoKind
	}
	return kind, nil
}

// AppendEvent appends the object of e on one line, without a newline: the kind, the keys of the format in its order, tape_seq,
// then what else the event has. An event that was read has the keys that it had, and no others unless they were set since.
// The error is an *EventError for a field that should hold JSON and holds none; dst is then as it was.
func AppendEvent(dst []byte, e Event) ([]byte, error) {
	out, err := appendObject(dst, e)
	if err != nil {
		return dst, &EventError{EventKind: KindOf(e), Err: err}
	}
	return out, nil
}

// JSON returns the object of p. The error says which field should hold JSON and holds none.
func (p *ProviderReplay) JSON() (json.RawMessage, error) {
	return appendObject(nil, p)
}

// A ProviderReplay is what a provider needs to go on with a conversation behind an answer, in its own form.
type ProviderReplay struct {
	Protocol         string            `json:"protocol"` // whose form it is
	Provider         string            `json:"provider,omitempty"`
	Model            string            `json:"model,omitempty"`
	NativeBlocks     []json.RawMessage `json:"native_blocks,omitempty"`
	ReasoningContent string            `json:"reasoning_content,omitempty"`
	ReasoningDetails json.RawMessage   `json:"reasoning_details,omitempty"`
	NativeMessage    json.RawMessage   `json:"native_message,omitempty"`
	ToolCalls        json.RawMessage   `json:"tool_calls,omitempty"`
	Extra            []Field           // further keys, as they stood

	had had
}

func (p *ProviderReplay) kept() (*had, *[]Field) { return &p.had, &p.Extra }
