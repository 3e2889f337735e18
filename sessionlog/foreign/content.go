package foreign

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

var scanners = sync.Pool{New: func() any { return new(jsonscan.Scanner) }}

// decode reads one object into a struct: see jsonscan.Into.
func decode(b []byte, to any) error {
	s := scanners.Get().(*jsonscan.Scanner)
	defer scanners.Put(s)
	s.Reset(b)
	if s.Peek() != '{' {
		s.Fail("want an object")
	}
	jsonscan.Into(s, to)
	if err := s.End(); err != nil {
		return broken{err}
	}
	return nil
}

// each reads a list value by value into Ts and gives them to do, or the one value that stands there in its place. Nothing is no
// value. Of what was stepped over, and so is JSON, the error can only be that of a number which is no integer.
func each[T any](b []byte, do func(*T)) error {
	if len(b) == 0 {
		return nil
	}
	s := scanners.Get().(*jsonscan.Scanner)
	defer scanners.Put(s)
	s.Reset(b)
	one := func() {
		var v T
		if jsonscan.Into(s, &v); s.Err() == nil {
			do(&v)
		}
	}
	if s.Peek() != '[' {
		one()
	} else {
		for s.Begin('['); s.More(']'); {
			one()
		}
	}
	if s.Err() != nil {
		return broken{s.Err()}
	}
	return nil
}

// first reads of an object what it begins with: see jsonscan.First.
func first(b []byte, to any) error {
	s := scanners.Get().(*jsonscan.Scanner)
	defer scanners.Put(s)
	s.Reset(b)
	if jsonscan.First(s, to); s.Err() != nil {
		return broken{s.Err()}
	}
	return nil
}

// text is the string that b is, decoded; "" where it is none.
func text(b []byte) string {
	if len(b) == 0 || b[0] != '"' {
		return ""
	}
	s := scanners.Get().(*jsonscan.Scanner)
	defer scanners.Put(s)
	s.Reset(b)
	return s.Text()
}

// A maybe is a text, or not one.
type maybe struct {
	text string
	some bool
}

// ReadJSON implements jsonscan.Value.
func (m *maybe) ReadJSON(s *jsonscan.Scanner) {
	if m.some = s.Peek() == '"'; m.some {
		m.text = s.Text()
	} else {
		s.Skip()
	}
}

// textIn is the text under a key of an object that was stepped over and so is well formed; a string is returned as it is, and of
// anything else it is "".
func textIn(b []byte, key string) (found string) {
	if len(b) == 0 || b[0] != '{' {
		return text(b)
	}
	var s jsonscan.Scanner
	s.Reset(b)
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) == key {
			found = text(s.Raw())
		} else {
			s.Skip()
		}
	}
	return found
}

// A tokens is a number of tokens: the sum of those under some keys of a usage, or the total where the agent keeps one.
type tokens struct {
	Total      int64 `json:"total|totalTokens|totalTokenCount"`
	Input      int64 `json:"input|input_tokens|prompt_tokens"`
	Output     int64 `json:"output|output_tokens|completion_tokens"`
	Reasoning  int64 `json:"reasoning"`
	CacheRead  int64 `json:"cacheRead|cache_read_input_tokens"`
	CacheWrite int64 `json:"cacheWrite|cache_creation_input_tokens"`
	Cache      struct {
		Read  int64 `json:"read"`
		Write int64 `json:"write"`
	} `json:"cache"`
}

func (t *tokens) sum() int64 {
	if t.Total > 0 {
		return t.Total
	}
	return t.Input + t.Output + t.Reasoning + t.CacheRead + t.CacheWrite + t.Cache.Read + t.Cache.Write
}

// parts is the content of a message: a text, or a list of blocks.
type parts struct {
	texts  []string          // of each block that is a text
	others []json.RawMessage // the other blocks
	all    []json.RawMessage // every block, in order, once one is no text
}

// A block is one of those: a text where it has one.
type block struct {
	Text  maybe  `json:"text"`
	Whole []byte `json:"*"`
}

// readParts reads a content: a string, a list of blocks of which those with a text are texts, or null. What it returns is its own
// memory.
func readParts(content []byte) (p parts) {
	if !isContent(content) {
		return p
	}
	_ = each(content, func(b *block) {
		switch {
		case b.Text.some:
			p.text(b.Text.text)
		case b.Whole[0] == '"':
			p.text(text(b.Whole))
		default:
			p.block(b.Whole)
		}
	})
	return p
}

// isContent reports whether b is a text or a list of blocks.
func isContent(b []byte) bool { return len(b) > 0 && (b[0] == '[' || b[0] == '"') }

// goal is what a prompt asks, as text.
func (p *parts) goal() string { return strings.Join(p.texts, "\n") }

func (p *parts) text(s string) {
	if s == "" {
		return
	}
	if p.all != nil {
		p.all = append(p.all, textBlock(s))
	}
	p.texts = append(p.texts, s)
}

// block adds one whose memory is borrowed.
func (p *parts) block(b []byte) {
	p.mix()
	own := owned(b)
	p.all = append(p.all, own)
	p.others = append(p.others, own)
}

// add adds another content.
func (p *parts) add(q parts) {
	if q.all == nil {
		for _, s := range q.texts {
			p.text(s)
		}
		return
	}
	p.mix()
	p.texts, p.others, p.all = append(p.texts, q.texts...), append(p.others, q.others...), append(p.all, q.all...)
}

// mix makes blocks of the texts so far.
func (p *parts) mix() {
	if p.all == nil {
		p.all = []json.RawMessage{}
		for _, text := range p.texts {
			p.all = append(p.all, textBlock(text))
		}
	}
}

// output is what a tool gave: a string as it stands, a list of one text as that text, anything else as it stands.
func output(raw []byte) json.RawMessage {
	switch {
	case len(raw) == 0 || string(raw) == "null" || string(raw) == "[]":
		return sessionlog.Text("")
	case raw[0] != '[':
		return owned(raw)
	}
	if p := readParts(raw); p.others == nil && len(p.texts) == 1 {
		return sessionlog.Text(p.texts[0])
	}
	return owned(raw)
}

// arguments are those of a call: an object as it stands; of a string the object in it, or the string where it holds none.
func arguments(raw []byte) json.RawMessage {
	if len(raw) == 0 || raw[0] != '"' {
		return orObject(raw)
	}
	inner := bytes.TrimSpace([]byte(text(raw)))
	switch {
	case len(inner) == 0:
		return json.RawMessage("{}")
	case inner[0] == '{' && jsonscan.Valid(inner) == nil:
		return owned(inner)
	}
	return bytes.Clone(raw)
}

// orObject is raw as memory of its own, an empty object for nothing.
func orObject(raw []byte) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return owned(raw)
}

// owned is JSON that is borrowed as memory of its own, and in one line: line breaks stand in the white space of what was written
// for people.
func owned(b []byte) json.RawMessage {
	if bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 {
		return bytes.Clone(b)
	}
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return bytes.Clone(b) // a scanner has stepped over it, so it is a value
	}
	return out.Bytes()
}

func textBlock(s string) json.RawMessage {
	b := append([]byte(`{"type":"text","text":`), sessionlog.Text(s)...)
	return append(b, '}')
}

// textAnd is a list of blocks: one of a text, which is JSON, unless that is "", and those of another list. open is how the text's
// block begins.
func textAnd(open string, text json.RawMessage, blocks []byte) json.RawMessage {
	rest := owned(blocks)
	var first json.RawMessage
	if string(text) != `""` {
		first = append(append(append(first, open...), text...), "},"...)
	}
	return append(append([]byte{'['}, first...), rest[1:]...)
}

func list(items []json.RawMessage) json.RawMessage {
	all := make([][]byte, len(items))
	for i, b := range items {
		all[i] = b
	}
	return append(append([]byte{'['}, bytes.Join(all, []byte{','})...), ']')
}
