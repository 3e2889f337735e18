package llm

import (
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// chatTongue is Chat Completions, of OpenAI and of all who speak it.
var chatTongue = &tongue{
	protocol: "openai-chat",
	messages: "messages", top: chatTop, message: func(h *hearing) { chatHeard(h) }, event: chatEvent,
}

func chatTop(h *hearing, key []byte) bool {
	switch string(key) {
	case "tools", "functions":
		h.top.tools = h.s.Peek() == '[' && !emptyList(h.s.Raw())
	case "system": // of Ollama's generate
		h.top.system = readText(h.s)
	default:
		return false
	}
	return true
}

// emptyList reports whether raw is a list without elements.
func emptyList(raw []byte) bool {
	empty := true
	within(raw, func(s *jsonscan.Scanner) {
		s.Begin('[')
		empty = s.Peek() == ']'
	})
	return empty
}

// chatMessageKeys are what a message of the protocol holds, in a history or as an answer.
type chatMessageKeys struct {
	role, name, id, refusal string
	content, calls, call    []byte // call is OpenAI's former function_call
	thoughts                []byte // reasoning_content or reasoning
	details                 []byte // reasoning_details
}

func (m *chatMessageKeys) read(s *jsonscan.Scanner) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "role":
			m.role = readText(s)
		case "name", "tool_name": // as Ollama has it
			m.name = readText(s)
		case "tool_call_id":
			m.id = readText(s)
		case "refusal":
			m.refusal = readText(s)
		case "content":
			m.content = s.Raw()
		case "tool_calls":
			m.calls = s.Raw()
		case "function_call":
			m.call = s.Raw()
		case "reasoning_content", "reasoning", "thinking":
			m.thoughts = s.Raw()
		case "reasoning_details":
			m.details = s.Raw()
		default:
			return false
		}
		return true
	})
}

func chatHeard(h *hearing) {
	var m chatMessageKeys
	m.read(h.s)
	h.begin(m.role)
	if h.cur.Role == RoleTool {
		h.result(sessionlog.ToolResult{CallID: m.id, Output: outputOf(m.content)}, m.name)
		return
	}
	h.parts(m.content)
	within(m.calls, func(s *jsonscan.Scanner) {
		readList(s, func() {
			c := readChatCall(s)
			h.call(c.call())
		})
	})
	if isObject(m.call) {
		var b block
		within(m.call, func(s *jsonscan.Scanner) { b.function(s) })
		h.call(b.call())
	}
}

// parts reads a content that is a string or a list of typed parts.
func (h *hearing) parts(content []byte) {
	if isText(content) {
		h.text(textIn(content))
		return
	}
	within(content, func(s *jsonscan.Scanner) {
		readList(s, func() {
			raw := s.Raw()
			kind, text := partOf(raw)
			if strings.HasSuffix(kind, "text") || strings.HasSuffix(kind, "audio") && text != "" {
				h.text(text)
			} else {
				h.attach(raw)
			}
		})
	})
}

// partOf returns the type of a part, and its text, which of sound is what was written down of it.
func partOf(raw []byte) (kind, text string) {
	within(raw, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			switch string(key) {
			case "type":
				kind = readText(s)
			case "text", "refusal", "transcript":
				text = readText(s)
			default:
				return false
			}
			return true
		})
	})
	return kind, text
}

// readChatCall reads one of tool_calls, or of the deltas of one.
func readChatCall(s *jsonscan.Scanner) (b *block) {
	b = &block{kind: callKind, key: "-1"}
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "index":
			b.key = strconv.Itoa(readIndex(s))
		case "id":
			b.id = readText(s)
		case "function", "custom":
			b.function(s)
		default:
			return false
		}
		return true
	})
	return b
}

// function reads the name and the arguments of a call: a text, or an object as Ollama has it. The input of a custom tool is no
// JSON, whatever it looks like.
func (b *block) function(s *jsonscan.Scanner) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "name":
			b.name = readText(s)
		case "arguments":
			if s.Peek() == '"' {
				b.text = append(b.text, s.TextBytes()...)
			} else {
				b.args = objectArguments(s.Raw())
			}
		case "input":
			b.free = true
			if s.Peek() != '"' {
				return false
			}
			b.text = append(b.text, s.TextBytes()...)
		default:
			return false
		}
		return true
	})
}

// chatEvent reads a whole completion, or one chunk of a stream.
func chatEvent(a *answering) {
	readObject(a.s, func(key []byte) bool {
		switch string(key) {
		case "id":
			a.out.ID = readText(a.s)
		case "model":
			a.out.Model = readText(a.s)
		case "choices":
			readList(a.s, func() { a.chatChoice() })
		case "error":
			a.failed = a.failed || !isNull(a.s.Raw())
		default:
			return false
		}
		return true
	})
}

// chatChoice reads a choice; those beside the first are other answers to the same.
func (a *answering) chatChoice() {
	index := 0
	var message, text []byte
	reason := ""
	readObject(a.s, func(key []byte) bool {
		switch string(key) {
		case "index":
			index = readIndex(a.s)
		case "message", "delta":
			message = a.s.Raw()
		case "finish_reason":
			reason = readText(a.s)
		case "text": // of the former completions
			text = a.s.Raw()
		default:
			return false
		}
		return true
	})
	if index > 0 {
		return
	}
	a.chatMessage(message)
	a.sayRaw(textKind, text)
	a.stop(reason)
}

// chatMessage reads the message of an answer, or one delta of it.
func (a *answering) chatMessage(raw []byte) {
	var m chatMessageKeys
	within(raw, m.read)
	a.sayRaw(thoughtKind, m.thoughts)
	if isText(m.content) {
		a.sayRaw(textKind, m.content)
	} else {
		within(m.content, func(s *jsonscan.Scanner) {
			readList(s, func() { a.chatPart(s.Raw()) })
		})
	}
	if m.refusal != "" {
		b := a.refusal()
		b.text = append(b.text, m.refusal...)
	}
	within(m.details, func(s *jsonscan.Scanner) {
		readList(s, func() { a.out.Native = append(a.out.Native, oneLine(s.Raw())) })
	})
	within(m.calls, func(s *jsonscan.Scanner) {
		readList(s, func() { a.chatCall(readChatCall(s)) })
	})
	if isObject(m.call) {
		b := &block{kind: callKind, key: "function_call"}
		within(m.call, func(s *jsonscan.Scanner) { b.function(s) })
		a.chatCall(b)
	}
}

// chatPart reads a part of a content that is a list, as Mistral gives its thoughts.
func (a *answering) chatPart(raw []byte) {
	kind, text := partOf(raw)
	switch {
	case kind == "thinking":
		within(raw, func(s *jsonscan.Scanner) {
			readObject(s, func(key []byte) bool {
				if string(key) != "thinking" {
					return false
				}
				b := a.last(thoughtKind)
				b.text = append(b.text, joinTexts(s)...)
				return true
			})
		})
	case text != "":
		b := a.last(textKind)
		b.text = append(b.text, text...)
	}
}

// sayRaw adds a JSON string to the last block of a kind.
func (a *answering) sayRaw(kind blockKind, raw []byte) {
	if text := textIn(raw); text != "" {
		b := a.last(kind)
		b.text = append(b.text, text...)
	}
}

// refusal returns the block of a refusal.
func (a *answering) refusal() *block { return a.last(refusalKind) }

// chatCall adds a call, or the delta of one. A delta without an index is of the last call, unless it has another id.
func (a *answering) chatCall(c *block) {
	was := a.block(c.key)
	if c.key == "-1" && was != nil && c.id != "" && was.id != "" && c.id != was.id {
		was = nil
	}
	if was == nil {
		a.put(c)
		return
	}
	if c.id != "" {
		was.id = c.id
	}
	was.name += c.name
	was.text = append(was.text, c.text...)
	if c.args != nil {
		was.args = c.args
	}
}
