package llm

import (
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// geminiTongue is the Gemini API, and Code Assist, which wraps its requests and its answers. Keys stand in camel case or in
// snake case.
var geminiTongue = &tongue{
	protocol: "gemini",
	messages: "contents", wrapped: "request", top: geminiTop, message: func(h *hearing) { geminiHeard(h) }, event: geminiEvent,
}

// liveTongue is Gemini Live. Its requests are folded to those of the Gemini API.
var liveTongue = &tongue{
	protocol: "gemini-live",
	messages: "contents", top: geminiTop, message: func(h *hearing) { geminiHeard(h) }, event: liveEvent,
}

// liveEvent reads one message of the server.
func liveEvent(a *answering) {
	readObject(a.s, func(key []byte) bool {
		switch liveName(string(key)) {
		case "serverContent":
			readObject(a.s, a.liveContent)
		case "toolCall":
			readObject(a.s, func(key []byte) bool {
				if liveName(string(key)) != "functionCalls" {
					return false
				}
				readList(a.s, func() { a.geminiCall(a.s.Raw()) })
				a.stop("toolCall")
				return true
			})
		default:
			return false
		}
		return true
	})
}

// liveContent reads one member of what the model says. What was spoken counts as it was written down, and not as sound.
func (a *answering) liveContent(key []byte) bool {
	switch liveName(string(key)) {
	case "modelTurn":
		_, parts := roleAnd(a.s, "parts")
		elementsOf(parts, func(part []byte) {
			if objectAt(part, "inlineData") == nil && objectAt(part, "inline_data") == nil {
				a.geminiPart(part)
			}
		})
	case "outputTranscription":
		readObject(a.s, func(key []byte) bool {
			if string(key) == "text" {
				a.say(textKind)
			}
			return string(key) == "text"
		})
	case "turnComplete":
		if readTrue(a.s) {
			a.stop("turnComplete")
		}
	default:
		return false
	}
	return true
}

func geminiTop(h *hearing, key []byte) bool {
	switch string(key) {
	case "systemInstruction", "system_instruction":
		_, parts := roleAnd(h.s, "parts")
		within(parts, func(s *jsonscan.Scanner) { h.top.system = joinTexts(s) })
	case "tools":
		readList(h.s, func() {
			readObject(h.s, func(key []byte) bool {
				if string(key) != "functionDeclarations" && string(key) != "function_declarations" {
					return false
				}
				h.top.tools = h.s.Peek() == '[' && !emptyList(h.s.Raw()) || h.top.tools
				return true
			})
		})
	default:
		return false
	}
	return true
}

// A geminiPart is one part of a content.
type geminiPart struct {
	text           string
	hasText        bool
	thought        bool
	sign           []byte
	call, response []byte
}

func (p *geminiPart) read(s *jsonscan.Scanner) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "text":
			p.hasText = s.Peek() == '"'
			p.text = readText(s)
		case "thought":
			p.thought = readTrue(s)
		case "thoughtSignature", "thought_signature":
			if raw := s.Raw(); isText(raw) {
				p.sign = raw
			}
		case "functionCall", "function_call":
			p.call = s.Raw()
		case "functionResponse", "function_response":
			p.response = s.Raw()
		default:
			return false
		}
		return true
	})
}

// geminiFunction is a call or a response.
type geminiFunction struct {
	id, name       string
	args, response []byte
}

func (f *geminiFunction) read(s *jsonscan.Scanner) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "id":
			f.id = readText(s)
		case "name":
			f.name = readText(s)
		case "args":
			f.args = s.Raw()
		case "response":
			f.response = s.Raw()
		default:
			return false
		}
		return true
	})
}

func geminiHeard(h *hearing) {
	role, parts := roleAnd(h.s, "parts")
	h.begin(role)
	within(parts, func(s *jsonscan.Scanner) {
		readList(s, func() { h.geminiPart(s.Raw()) })
	})
}

func (h *hearing) geminiPart(raw []byte) {
	var p geminiPart
	var f geminiFunction
	within(raw, p.read)
	switch {
	case p.call != nil:
		within(p.call, f.read)
		h.call(sessionlog.ToolCall{ID: f.id, Name: f.name, Arguments: objectArguments(f.args)})
	case p.response != nil:
		within(p.response, f.read)
		output, failed := geminiOutput(f.response)
		h.result(sessionlog.ToolResult{CallID: f.id, Output: output, IsError: failed}, f.name)
	case p.thought:
	case p.hasText:
		h.text(p.text)
	default:
		h.attach(raw)
	}
}

// geminiOutput returns what a response holds: the value of its one key where that is output or error, which the reference
// gives a meaning, else all of it.
func geminiOutput(response []byte) (output json.RawMessage, failed bool) {
	n := 0
	var only []byte
	name := ""
	within(response, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			name = string(key)
			only = s.Raw()
			n++
			return true
		})
	})
	switch {
	case isNull(response):
		return noText, false
	case n == 1 && (name == "output" || name == "error"):
		return outputOf(only), name == "error"
	}
	return oneLine(response), false
}

// geminiEvent reads an answer, or one chunk of a stream.
func geminiEvent(a *answering) {
	readObject(a.s, func(key []byte) bool {
		switch string(key) {
		case "response":
			geminiEvent(a)
		case "responseId":
			a.out.ID = readText(a.s)
		case "modelVersion":
			a.out.Model = readText(a.s)
		case "candidates":
			readList(a.s, func() { a.geminiCandidate() })
		case "promptFeedback":
			readObject(a.s, func(key []byte) bool {
				if string(key) != "blockReason" {
					return false
				}
				a.stop(readText(a.s))
				return true
			})
		case "error":
			a.failed = a.failed || !isNull(a.s.Raw())
		default:
			return false
		}
		return true
	})
}

// geminiCandidate reads a candidate; those beside the first are other answers to the same.
func (a *answering) geminiCandidate() {
	index, reason := 0, ""
	var content []byte
	readObject(a.s, func(key []byte) bool {
		switch string(key) {
		case "index":
			index = readIndex(a.s)
		case "content":
			content = a.s.Raw()
		case "finishReason":
			reason = readText(a.s)
		default:
			return false
		}
		return true
	})
	if index > 0 {
		return
	}
	var parts []byte
	within(content, func(s *jsonscan.Scanner) { _, parts = roleAnd(s, "parts") })
	within(parts, func(s *jsonscan.Scanner) {
		readList(s, func() { a.geminiPart(s.Raw()) })
	})
	a.stop(reason)
}

// geminiPart adds a part. Texts that follow one another are one: chunks cut them anywhere.
func (a *answering) geminiPart(raw []byte) {
	var p geminiPart
	within(raw, p.read)
	if len(p.sign) > 0 {
		a.out.Native = append(a.out.Native, append(append([]byte(`{"thoughtSignature":`), p.sign...), '}'))
	}
	switch {
	case p.call != nil:
		a.geminiCall(p.call)
	case p.hasText && p.text == "":
	case p.hasText && p.thought:
		b := a.last(thoughtKind)
		b.text = append(b.text, p.text...)
	case p.hasText:
		b := a.last(textKind)
		b.text = append(b.text, p.text...)
	default:
		a.other(raw)
	}
}

// geminiCall adds a call of a tool.
func (a *answering) geminiCall(raw []byte) {
	var f geminiFunction
	within(raw, f.read)
	b := a.add(callKind, "")
	b.id, b.name, b.args = f.id, f.name, objectArguments(f.args)
}
