package llm

import (
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// anthropicTongue is the Messages API.
var anthropicTongue = &tongue{
	protocol: "anthropic-messages",
	messages: "messages", top: anthropicTop, message: func(h *hearing) { anthropicMessage(h) }, event: anthropicEvent,
}

func anthropicTop(h *hearing, key []byte) bool {
	switch string(key) {
	case "system":
		h.top.system = joinTexts(h.s)
	case "tools":
		readList(h.s, func() {
			kind := ""
			readObject(h.s, func(key []byte) bool {
				if string(key) != "type" {
					return false
				}
				kind = readText(h.s)
				return true
			})
			h.top.tools = h.top.tools || !ranByAnthropic(kind)
		})
	default:
		return false
	}
	return true
}

// ranByAnthropic reports whether tools of a type run at the provider.
func ranByAnthropic(kind string) bool {
	for _, prefix := range [...]string{"web_search", "web_fetch", "code_execution", "tool_search", "mcp_toolset", "advisor"} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}

// joinTexts reads a string, or a list of blocks with texts.
func joinTexts(s *jsonscan.Scanner) string {
	if s.Peek() != '[' {
		return readText(s)
	}
	var texts []string
	readList(s, func() {
		readObject(s, func(key []byte) bool {
			if string(key) != "text" {
				return false
			}
			if text := readText(s); !strings.HasPrefix(text, claudeBilling) {
				texts = append(texts, text)
			}
			return true
		})
	})
	return strings.Join(texts, "\n")
}

func anthropicMessage(h *hearing) {
	role, content := roleAnd(h.s, "content")
	h.begin(role)
	if isText(content) {
		h.text(textIn(content))
		return
	}
	within(content, func(s *jsonscan.Scanner) {
		readList(s, func() { h.anthropicBlock(s.Raw()) })
	})
}

// roleAnd reads the role of a message, and the raw value of another key.
func roleAnd(s *jsonscan.Scanner, name string) (role string, value []byte) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "role":
			role = readText(s)
		case name:
			value = s.Raw()
		default:
			return false
		}
		return true
	})
	return role, value
}

func (h *hearing) anthropicBlock(raw []byte) {
	var b struct {
		kind, text, id, use, name string
		content, input            []byte
		failed                    bool
	}
	within(raw, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			switch string(key) {
			case "type":
				b.kind = readText(s)
			case "text":
				b.text = readText(s)
			case "id":
				b.id = readText(s)
			case "tool_use_id":
				b.use = readText(s)
			case "name":
				b.name = readText(s)
			case "content":
				b.content = s.Raw()
			case "input":
				b.input = s.Raw()
			case "is_error":
				b.failed = readTrue(s)
			default:
				return false
			}
			return true
		})
	})
	switch b.kind {
	case "text":
		h.text(b.text)
	case "tool_use":
		h.call(sessionlog.ToolCall{ID: b.id, Name: b.name, Arguments: objectArguments(b.input)})
	case "tool_result":
		h.result(sessionlog.ToolResult{CallID: b.use, Output: outputOf(b.content), IsError: b.failed}, "")
	default:
		h.attach(raw)
	}
}

// anthropicEvent reads a whole message, or one event of a stream.
func anthropicEvent(a *answering) {
	var kind, key string
	var message, start, delta []byte
	readObject(a.s, func(name []byte) bool {
		switch string(name) {
		case "type":
			kind = readText(a.s)
		case "index":
			key = strconv.Itoa(readIndex(a.s))
		case "message":
			message = a.s.Raw()
		case "content_block":
			start = a.s.Raw()
		case "delta":
			delta = a.s.Raw()
		case "content":
			readList(a.s, func() { a.anthropicBlock(a.s.Raw(), "") })
		case "id":
			a.out.ID = readText(a.s)
		case "model":
			a.out.Model = readText(a.s)
		case "stop_reason":
			a.stop(readText(a.s))
		case "completion": // of the legacy text completions
			a.say(textKind)
		default:
			return false
		}
		return true
	})
	switch kind {
	case "message_start":
		within(message, func(s *jsonscan.Scanner) {
			whole := a.s
			a.s = s
			anthropicEvent(a)
			a.s = whole
		})
	case "content_block_start":
		a.anthropicBlock(start, key)
	case "content_block_delta":
		if b := a.block(key); b != nil {
			within(delta, func(s *jsonscan.Scanner) { b.anthropicDelta(s) })
		}
	case "message_delta":
		within(delta, func(s *jsonscan.Scanner) {
			readObject(s, func(key []byte) bool {
				if string(key) != "stop_reason" {
					return false
				}
				a.stop(readText(s))
				return true
			})
		})
	case "error":
		a.failed = true
	}
}

// anthropicBlock adds a block, which a stream calls by key and continues.
func (a *answering) anthropicBlock(raw []byte, key string) {
	if !isObject(raw) {
		return
	}
	b := a.add(otherKind, key)
	b.raw = raw
	within(raw, func(s *jsonscan.Scanner) {
		readObject(s, func(name []byte) bool {
			switch string(name) {
			case "type":
				b.kind = anthropicKind(readText(s))
			case "text", "thinking":
				b.text = append(b.text, readText(s)...)
			case "citations":
				readList(s, func() { b.marks = append(b.marks, s.Raw()) })
			case "id":
				b.id = readText(s)
			case "name":
				b.name = readText(s)
			case "input":
				b.args = objectArguments(s.Raw())
			default:
				return false
			}
			return true
		})
	})
	if b.kind == otherKind {
		b.text = nil
	}
}

func anthropicKind(kind string) blockKind {
	switch kind {
	case "text":
		return textKind
	case "tool_use":
		return callKind
	case "thinking", "redacted_thinking":
		return thoughtKind
	}
	return otherKind
}

func (b *block) anthropicDelta(s *jsonscan.Scanner) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "text", "thinking", "partial_json":
			if s.Peek() != '"' {
				return false
			}
			b.text = append(b.text, s.TextBytes()...)
		case "signature":
			if raw := s.Raw(); isText(raw) {
				b.sign = raw
			}
		case "citation":
			b.marks = append(b.marks, s.Raw())
		default:
			return false
		}
		return true
	})
	if b.kind == thoughtKind {
		b.raw = nil // what it began with is less than what came
	}
}
