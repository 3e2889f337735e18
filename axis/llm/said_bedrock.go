package llm

import (
	"encoding/json"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// converseTongue is Bedrock's Converse, whose blocks are told by their key.
var converseTongue = &tongue{
	protocol: "bedrock-converse",
	messages: "messages", top: converseTop, message: func(h *hearing) { converseHeard(h) }, event: converseEvent, unpack: invokeEvent,
}

// The protocols of models behind Bedrock's InvokeModel, whose streams wrap their events.
var (
	invokeAnthropic = unpacked(anthropicTongue)
	invokeChat      = unpacked(chatTongue)
	invokePrompt    = &tongue{messages: "prompt", top: func(*hearing, []byte) bool { return false },
		message: func(h *hearing) { h.s.Skip() }, event: invokedEvent, unpack: invokeEvent}
	invokeTitan = &tongue{messages: "inputText", top: invokePrompt.top, message: invokePrompt.message, event: invokedEvent, unpack: invokeEvent}
)

func unpacked(t *tongue) *tongue {
	out := *t
	out.unpack = invokeEvent
	return &out
}

// bedrockTongue returns how a call of Bedrock is written.
func bedrockTongue(call *tape.LLMCall, request []byte) *tongue {
	switch call.Endpoint {
	case "converse", "converse-stream":
		return converseTongue
	case "invoke", "invoke-with-response-stream":
	default:
		return nil
	}
	keys := make(map[string]bool)
	within(request, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			keys[string(key)] = true
			return false
		})
	})
	switch {
	case keys["messages"] && keys["anthropic_version"]:
		return invokeAnthropic
	case keys["messages"] && (keys["inferenceConfig"] || keys["toolConfig"] || keys["schemaVersion"]):
		return converseTongue
	case keys["messages"]:
		return invokeChat
	case keys["prompt"]:
		return invokePrompt
	case keys["inputText"]:
		return invokeTitan
	}
	return nil
}

func converseTop(h *hearing, key []byte) bool {
	switch string(key) {
	case "system":
		h.top.system = joinTexts(h.s)
	case "toolConfig":
		readObject(h.s, func(key []byte) bool {
			if string(key) != "tools" {
				return false
			}
			readList(h.s, func() {
				readObject(h.s, func(key []byte) bool {
					h.top.tools = h.top.tools || string(key) == "toolSpec"
					return false
				})
			})
			return true
		})
	default:
		return false
	}
	return true
}

func converseHeard(h *hearing) {
	role, content := roleAnd(h.s, "content")
	h.begin(role)
	within(content, func(s *jsonscan.Scanner) {
		readList(s, func() { h.converseBlock(s.Raw()) })
	})
}

func (h *hearing) converseBlock(raw []byte) {
	kept := false // it is what no branch is for
	within(raw, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			switch string(key) {
			case "text":
				h.text(readText(s))
			case "toolUse":
				var b block
				b.converseUse(s)
				h.call(b.call())
			case "toolResult":
				h.converseResult(s)
			case "reasoningContent", "cachePoint":
				return false
			default:
				kept = true
				return false
			}
			return true
		})
	})
	if kept {
		h.attach(raw)
	}
}

// converseUse reads a toolUse, or the start of one.
func (b *block) converseUse(s *jsonscan.Scanner) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "toolUseId":
			b.id = readText(s)
		case "name":
			b.name = readText(s)
		case "input":
			if s.Peek() == '"' { // of a delta
				b.text = append(b.text, s.TextBytes()...)
			} else {
				b.args = objectArguments(s.Raw())
			}
		default:
			return false
		}
		return true
	})
}

func (h *hearing) converseResult(s *jsonscan.Scanner) {
	r := sessionlog.ToolResult{Output: noText}
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "toolUseId":
			r.CallID = readText(s)
		case "content":
			r.Output = converseOutput(s.Raw())
		case "status":
			r.IsError = readText(s) == "error"
		default:
			return false
		}
		return true
	})
	h.result(r, "")
}

// converseOutput returns what a tool gave: one text as a string, one JSON as it is, else the list of blocks.
func converseOutput(content []byte) json.RawMessage {
	n := 0
	var only []byte
	within(content, func(s *jsonscan.Scanner) {
		readList(s, func() {
			n++
			readObject(s, func(key []byte) bool {
				if string(key) != "json" {
					return false
				}
				only = s.Raw()
				return true
			})
		})
	})
	if n == 1 && only != nil {
		return oneLine(only)
	}
	return outputOf(content)
}

// converseEvent reads a whole answer, or one event of a stream, which is told by its keys.
func converseEvent(a *answering) {
	var key string
	var start, delta []byte
	readObject(a.s, func(name []byte) bool {
		switch string(name) {
		case "output":
			readObject(a.s, func(name []byte) bool {
				if string(name) != "message" {
					return false
				}
				_, content := roleAnd(a.s, "content")
				within(content, func(s *jsonscan.Scanner) {
					readList(s, func() { a.converseBlock(s.Raw()) })
				})
				return true
			})
		case "contentBlockIndex":
			key = strconv.Itoa(readIndex(a.s))
		case "start":
			start = a.s.Raw()
		case "delta":
			delta = a.s.Raw()
		case "stopReason":
			a.stop(readText(a.s))
		// Events may also stand under their names, as the models behind InvokeModel send them.
		case "contentBlockStart", "contentBlockDelta", "messageStop":
			converseEvent(a)
		default:
			return false
		}
		return true
	})
	within(start, func(s *jsonscan.Scanner) {
		readObject(s, func(name []byte) bool {
			if string(name) != "toolUse" {
				return false
			}
			a.add(callKind, key).converseUse(s)
			return true
		})
	})
	if delta != nil {
		a.converseDelta(delta, key)
	}
}

func (a *answering) converseDelta(delta []byte, key string) {
	within(delta, func(s *jsonscan.Scanner) {
		readObject(s, func(name []byte) bool {
			switch string(name) {
			case "text":
				b := a.part(textKind, key)
				b.text = append(b.text, readText(s)...)
			case "toolUse":
				a.part(callKind, key).converseUse(s)
			case "reasoningContent":
				b := a.part(thoughtKind, key)
				b.converseThought(s)
			default:
				return false
			}
			return true
		})
	})
}

// part returns the block that a stream calls by key, a new one where there is none.
func (a *answering) part(kind blockKind, key string) *block {
	if b := a.block(key); b != nil && b.kind == kind {
		return b
	}
	return a.add(kind, key)
}

// converseThought reads a reasoningContent: a delta, or a whole one.
func (b *block) converseThought(s *jsonscan.Scanner) {
	readObject(s, func(key []byte) bool {
		switch string(key) {
		case "text":
			b.text = append(b.text, readText(s)...)
		case "signature":
			if raw := s.Raw(); isText(raw) {
				b.sign = raw
			}
		case "reasoningText":
			b.converseThought(s)
		default:
			return false
		}
		return true
	})
}

func (a *answering) converseBlock(raw []byte) {
	kind := otherKind
	var b block
	within(raw, func(s *jsonscan.Scanner) {
		readObject(s, func(key []byte) bool {
			switch string(key) {
			case "text":
				kind, b.text = textKind, []byte(readText(s))
			case "toolUse":
				kind = callKind
				b.converseUse(s)
			case "reasoningContent":
				kind = thoughtKind
				b.converseThought(s)
				b.raw = raw
			default:
				return false
			}
			return true
		})
	})
	if kind == otherKind {
		b.raw = raw
	}
	b.kind = kind
	a.put(&b)
}

// invokedEvent reads an answer of a model that is given a prompt alone: Llama, Titan, Mistral.
func invokedEvent(a *answering) {
	readObject(a.s, func(key []byte) bool {
		switch string(key) {
		case "generation", "outputText", "completion", "text":
			a.say(textKind)
		case "results", "outputs":
			readList(a.s, func() { invokedEvent(a) })
		case "stop_reason", "completionReason":
			a.stop(readText(a.s))
		default:
			return false
		}
		return true
	})
}
