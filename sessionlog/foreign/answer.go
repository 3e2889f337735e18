package foreign

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// parts is the content of a message: a text, or a list of blocks.
type parts struct {
	text   string            // of all blocks that are text, a line each
	blocks []json.RawMessage // all of them, where some are not text; else nil
	others []json.RawMessage // those that are not text
}

// readParts reads a content: a string, a list of blocks of which those with a text are texts, or null. What it returns is its own
// memory.
func readParts(s *jsonscan.Scanner, content []byte) parts {
	var p parts
	if len(content) == 0 {
		return p
	}
	s.Reset(content)
	if s.Peek() == '"' {
		p.text = s.Text()
		return p
	}
	if s.Null() {
		return p
	}
	var texts []string
	var all []json.RawMessage
	for s.Begin('['); s.More(']'); {
		at := s.Mark()
		raw := s.Raw()
		s.Back(at)
		text, ok := blockText(s)
		if s.Err() != nil {
			break
		}
		all = append(all, bytes.Clone(raw))
		if ok {
			texts = append(texts, text)
		} else {
			p.others = append(p.others, all[len(all)-1])
		}
	}
	p.text = strings.Join(texts, "\n")
	if p.others != nil {
		p.blocks = all
	}
	return p
}

// blockText reads a block. It is a text where it has one, and is no thought of the model's.
func blockText(s *jsonscan.Scanner) (t string, ok bool) {
	if s.Peek() == '"' {
		return s.Text(), true
	}
	if s.Peek() != '{' {
		s.Skip()
		return "", false
	}
	thought := false
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "text", "refusal":
			if s.Peek() == '"' {
				t, ok = s.Text(), true
				continue
			}
			s.Skip()
		case "thought":
			thought = s.Peek() == 't'
			s.Skip()
		default:
			s.Skip()
		}
	}
	return t, ok && !thought
}

// output is what a tool gave: a string as it stands, a list of texts as one string, anything else as it stands.
func output(s *jsonscan.Scanner, raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return sessionlog.Text("")
	}
	if raw[0] != '[' {
		return bytes.Clone(raw)
	}
	if p := readParts(s, raw); p.others == nil {
		return sessionlog.Text(p.text)
	}
	return bytes.Clone(raw)
}

// arguments are those of a call that were written as a string: the JSON in it, or the string where it holds no JSON object.
func arguments(s *jsonscan.Scanner, raw []byte) json.RawMessage {
	if len(raw) == 0 || raw[0] != '"' {
		return bytes.Clone(raw)
	}
	s.Reset(raw)
	inner := bytes.Clone(bytes.TrimSpace(s.TextBytes()))
	if len(inner) > 0 && inner[0] == '{' && jsonscan.Valid(inner) == nil {
		return inner
	}
	return bytes.Clone(raw)
}

// An answer gathers the parts of one turn, in whatever pieces an agent keeps them.
type answer struct {
	texts    []string
	blocks   []json.RawMessage // all, in order; used where one is no text
	mixed    bool
	calls    []sessionlog.ToolCall
	thoughts []string
	native   []json.RawMessage // thoughts as the provider wants them back
	model    string
	some     bool
}

func (a *answer) empty() bool { return !a.some }

func (a *answer) call(c sessionlog.ToolCall) {
	a.some = true
	a.calls = append(a.calls, c)
}

// parts adds a message's content.
func (a *answer) parts(p parts) {
	a.some = true
	if p.text != "" {
		a.texts = append(a.texts, p.text)
	}
	if p.blocks != nil {
		a.mixed = true
		a.blocks = append(a.blocks, p.blocks...)
	} else if p.text != "" {
		a.blocks = append(a.blocks, textBlock(p.text))
	}
}

// say adds a text.
func (a *answer) say(text string) { a.parts(parts{text: text}) }

// block adds one that is no text, whose memory is borrowed.
func (a *answer) block(b []byte) {
	a.some, a.mixed = true, true
	a.blocks = append(a.blocks, bytes.Clone(b))
}

// think adds a thought: as text, which may be "", and as the provider's own block, whose memory is borrowed.
func (a *answer) think(text string, native []byte) {
	a.some = true
	if text != "" {
		a.thoughts = append(a.thoughts, text)
	}
	if native != nil {
		a.native = append(a.native, bytes.Clone(native))
	}
}

func textBlock(s string) json.RawMessage {
	b := append([]byte(`{"type":"text","text":`), sessionlog.Text(s)...)
	return append(b, '}')
}

// message is the answer as an event has it.
func (a *answer) message() sessionlog.Message {
	m := sessionlog.Message{Role: "assistant", ToolCalls: a.calls}
	if !a.mixed {
		m.Content = sessionlog.Text(strings.Join(a.texts, "\n"))
		return m
	}
	m.Content = list(a.blocks)
	return m
}

func list(items []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, x := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, x...)
	}
	return append(b, ']')
}

// replay is what the provider needs to go on, nil where the answer has no thoughts.
func (a *answer) replay(protocol string) json.RawMessage {
	if a.native == nil && a.thoughts == nil {
		return nil
	}
	b := append([]byte(`{"protocol":`), sessionlog.Text(protocol)...)
	if a.model != "" {
		b = append(append(b, `,"model":`...), sessionlog.Text(a.model)...)
	}
	if a.native != nil {
		b = append(append(b, `,"native_blocks":`...), list(a.native)...)
	}
	if a.thoughts != nil {
		b = append(append(b, `,"reasoning_content":`...), sessionlog.Text(strings.Join(a.thoughts, "\n"))...)
	}
	return append(b, '}')
}

// give hands the answer to a dialog, and begins anew.
func (a *answer) give(d *sessionlog.Dialog, protocol string, tokens int64) error {
	e := &sessionlog.LLMCompleted{Message: a.message(), ProviderReplay: a.replay(protocol)}
	*a = answer{}
	return d.Answer(e, tokens)
}
