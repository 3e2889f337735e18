package sessionlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Unknown is an event of a kind that this package does not know. All its keys but those of Common are in Extra.
type Unknown struct {
	Common
	EventKind Kind
}

// Kind implements Event.
func (e *Unknown) Kind() Kind { return e.EventKind }

func (e *Unknown) fields(c *codec) {
	e.begin(c, optional)
	e.end(c)
}

// A tagged event is an event with the key that names its kind, which stands first.
type tagged struct {
	Event
	kind Kind
}

func (t *tagged) fields(c *codec) {
	if c.mode == writing || c.mode == finding && string(c.want) == "kind" {
		c.kind(&t.kind)
	}
	t.Event.fields(c)
}

// kind is the way of the key that names a kind. It has no bit of its own: it is always there.
func (c *codec) kind(k *Kind) {
	if c.mode == writing {
		c.key("kind")
		c.buf = jsonscan.AppendText(c.buf, string(*k))
		return
	}
	c.found = true
	c.s.Skip()
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
	readObject(s, &tagged{Event: e})
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

func newEvent(kind Kind) Event {
	if make := kinds[kind]; make != nil {
		return make()
	}
	return &Unknown{EventKind: kind}
}

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
	var err error
	out := appendObject(dst, &tagged{Event: e, kind: e.Kind()}, &err)
	if err != nil {
		return dst, &EventError{EventKind: e.Kind(), Err: err}
	}
	return out, nil
}

// ParseReplay reads the provider_replay of an answer. A replay without a protocol is an error, for nothing can be replayed
// by it.
func ParseReplay(b json.RawMessage) (*ProviderReplay, error) {
	p := new(ProviderReplay)
	var s jsonscan.Scanner
	s.Reset(b)
	readObject(&s, p)
	if err := errors.Join(s.End(), jsonscan.ValidUTF8(b)); err != nil {
		return nil, fmt.Errorf("provider_replay: %w", err)
	}
	if p.Protocol == "" {
		return nil, errors.New(`provider_replay: want "protocol"`)
	}
	return p, nil
}

// JSON returns the object of p. The error says which field should hold JSON and holds none.
func (p *ProviderReplay) JSON() (json.RawMessage, error) {
	var err error
	b := appendObject(nil, p, &err)
	return b, err
}

// A ProviderReplay is what a provider needs to go on with a conversation behind an answer, in its own form.
type ProviderReplay struct {
	Protocol         string // whose form it is
	Provider         string
	Model            string
	NativeBlocks     []json.RawMessage
	ReasoningContent string
	ReasoningDetails json.RawMessage
	NativeMessage    json.RawMessage
	ToolCalls        json.RawMessage
	Extra            []Field // further keys, as they stood

	had had
}

func (p *ProviderReplay) kept() (*had, *[]Field) { return &p.had, &p.Extra }

func (p *ProviderReplay) fields(c *codec) {
	c.text("protocol", &p.Protocol, required)
	c.text("provider", &p.Provider, optional)
	c.text("model", &p.Model, optional)
	c.jsons("native_blocks", &p.NativeBlocks, optional)
	c.text("reasoning_content", &p.ReasoningContent, optional)
	c.json("reasoning_details", &p.ReasoningDetails, optional)
	c.json("native_message", &p.NativeMessage, optional)
	c.json("tool_calls", &p.ToolCalls, optional)
}
