package llm

import (
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// cohereTongue is chat of both versions. The second's messages look like OpenAI's; the first has the last message and the
// results of tools beside the history (message, tool_results, chat_history) and calls without ids.
var cohereTongue = &tongue{
	protocol: "cohere",
	messages: "messages", top: cohereTop, message: func(h *hearing) { chatHeard(h) }, event: cohereEvent,
}

// cohereFirstTongue is the first version.
var cohereFirstTongue = &tongue{
	protocol: "cohere",
	messages: "message", top: cohereTop, message: func(h *hearing) { h.s.Skip() }, event: cohereEvent,
}

func cohereTop(h *hearing, key []byte) bool {
	switch string(key) {
	case "preamble":
		h.top.system = readText(h.s)
	case "tool_results":
		h.begin(RoleTool)
		readList(h.s, func() { h.cohereResult() })
	default:
		return chatTop(h, key)
	}
	return true
}

// cohereResult reads one of tool_results: {"call":{"name":…},"outputs":[…]}.
func (h *hearing) cohereResult() {
	var name string
	var outputs []byte
	readObject(h.s, func(key []byte) bool {
		switch string(key) {
		case "call":
			readObject(h.s, func(key []byte) bool {
				if string(key) != "name" {
					return false
				}
				name = readText(h.s)
				return true
			})
		case "outputs":
			outputs = h.s.Raw()
		default:
			return false
		}
		return true
	})
	h.result(sessionlog.ToolResult{Output: outputOf(outputs)}, name)
}

// cohereEvent reads a whole answer, or one event of a stream, of either version.
func cohereEvent(a *answering) {
	var kind, key, text, reason string
	var message, delta, calls []byte
	readObject(a.s, func(name []byte) bool {
		switch string(name) {
		case "type", "event_type":
			kind = readText(a.s)
		case "index":
			key = strconv.Itoa(readIndex(a.s))
		case "id", "generation_id":
			a.out.ID = readText(a.s)
		case "message":
			message = a.s.Raw()
		case "delta", "response":
			delta = a.s.Raw()
		case "text":
			text = readText(a.s)
		case "tool_calls":
			calls = a.s.Raw()
		case "finish_reason":
			reason = readText(a.s)
		default:
			return false
		}
		return true
	})
	switch kind {
	case "": // the whole answer, of the first version where text stands at its top
		a.cohereMessage(message, "")
		a.cohereFirst(text, calls)
		a.stop(reason)
	case "text-generation", "tool-calls-generation":
		a.cohereFirst(text, calls)
	case "stream-end", "message-end":
		a.stop(reason)
		within(delta, func(s *jsonscan.Scanner) { a.stop(cohereReason(s)) })
	default:
		within(delta, func(s *jsonscan.Scanner) {
			readObject(s, func(name []byte) bool {
				if string(name) != "message" {
					return false
				}
				a.cohereMessage(s.Raw(), key)
				return true
			})
		})
	}
}

func cohereReason(s *jsonscan.Scanner) (reason string) {
	readObject(s, func(key []byte) bool {
		if string(key) != "finish_reason" {
			return false
		}
		reason = readText(s)
		return true
	})
	return reason
}

// cohereFirst adds the text and the calls of the first version.
func (a *answering) cohereFirst(text string, calls []byte) {
	if text != "" {
		b := a.last(textKind)
		b.text = append(b.text, text...)
	}
	within(calls, func(s *jsonscan.Scanner) {
		readList(s, func() {
			b := a.add(callKind, "")
			readObject(s, func(key []byte) bool {
				switch string(key) {
				case "name":
					b.name = readText(s)
				case "parameters":
					b.args = objectArguments(s.Raw())
				default:
					return false
				}
				return true
			})
		})
	})
}

// cohereMessage adds the message of an answer, or one delta of it, which is of the part or the call called index.
func (a *answering) cohereMessage(raw []byte, index string) {
	within(raw, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			switch string(key) {
			case "tool_plan":
				a.s, s = s, a.s
				a.say(thoughtKind)
				a.s, s = s, a.s
			case "content":
				content := s.Raw()
				if isObject(content) {
					a.coherePart(content)
				}
				within(content, func(s *jsonscan.Scanner) {
					readList(s, func() { a.coherePart(s.Raw()) })
				})
			case "tool_calls":
				raw := s.Raw()
				if isObject(raw) { // of a stream, where deltas follow
					within(raw, func(s *jsonscan.Scanner) {
						b := readChatCall(s)
						b.key = index
						a.cohereCall(b)
					})
				}
				within(raw, func(s *jsonscan.Scanner) {
					readList(s, func() { a.put(readChatCall(s)) })
				})
			default:
				return false
			}
			return true
		})
	})
}

// cohereCall adds a call that a stream begins, or a delta of it.
func (a *answering) cohereCall(b *block) {
	if was := a.block(b.key); was != nil && b.id == "" {
		was.text = append(was.text, b.text...)
		return
	}
	a.put(b)
}

// coherePart adds a part of a content.
func (a *answering) coherePart(raw []byte) {
	var text, thinking string
	within(raw, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			switch string(key) {
			case "text":
				text = readText(s)
			case "thinking":
				thinking = readText(s)
			default:
				return false
			}
			return true
		})
	})
	if thinking != "" {
		b := a.last(thoughtKind)
		b.text = append(b.text, thinking...)
	}
	if text != "" {
		b := a.last(textKind)
		b.text = append(b.text, text...)
	}
}
