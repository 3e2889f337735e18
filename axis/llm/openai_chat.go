package llm

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

var chatKeys = &keys{
	messages: "messages",
	surface: []string{
		"tools", "tool_choice", "functions", "function_call", "reasoning", "reasoning_effort", "thinking",
	},
	ignored: openAIIgnored,
	omitted: []exempt{
		{"cache_control, copilot_cache_control of messages, parts and tools", "agents move the marks at every turn"},
		{"id, signature, data of reasoning_details; reasoning_opaque", "opaque echoes of OpenRouter and GitHub Copilot"},
		{"extra_content.google.thought_signature, provider_specific_fields.thought_signature(s) of messages and tool calls",
			"opaque echoes of Gemini behind this protocol"},
		{"id of a tool call and tool_call_id of its result", "numbered by first appearance: the pairing counts, the name does not"},
		{"a bare string as content", "read as the list of one text part that it is short for"},
	},
}

// readChat takes a body apart that has a list of messages; the model may stand in the path, as Azure has it.
func readChat(body *canonjson.Value, k *keys) (call, bool) {
	messages := list(body, "messages")
	if messages == nil {
		return call{}, false
	}
	var ids pairs
	each(messages, func(m *canonjson.Value) { chatMessage(m, &ids) })
	at(body, "tools", func(tools *canonjson.Value) { each(tools, dropCacheMarks) })
	c := call{
		model:          member(body, "model"),
		messages:       canonjson.Member{Key: "messages", Value: *messages},
		systemMessages: withRole(messages, "system", "developer"),
		user:           firstRole(messages, "user"),
	}
	c.surface, c.params = k.split(body, "messages", "model")
	return c, true
}

// chatMessage takes off a message what does not count.
func chatMessage(m *canonjson.Value, ids *pairs) {
	dropCacheMarks(m)
	drop(m, "reasoning_opaque")
	dropThoughtSignatures(m)
	ids.number(m, "tool_call_id")
	at(m, "content", func(content *canonjson.Value) {
		listed(content, "text")
		each(content, dropCacheMarks)
	})
	at(m, "reasoning_details", func(details *canonjson.Value) {
		each(details, func(d *canonjson.Value) { drop(d, "id", "signature", "data") })
	})
	at(m, "tool_calls", func(calls *canonjson.Value) {
		each(calls, func(call *canonjson.Value) {
			ids.number(call, "id")
			dropThoughtSignatures(call)
		})
	})
}

func dropCacheMarks(v *canonjson.Value) { drop(v, "cache_control", "copilot_cache_control") }

// dropThoughtSignatures takes off what Gemini adds behind this protocol, as Google and LiteLLM spell it.
func dropThoughtSignatures(v *canonjson.Value) {
	at(v, "extra_content", func(extra *canonjson.Value) {
		at(extra, "google", func(google *canonjson.Value) { drop(google, "thought_signature") })
	})
	at(v, "provider_specific_fields", func(fields *canonjson.Value) {
		drop(fields, "thought_signature", "thought_signatures")
	})
}

// chatProtocol is Chat Completions, of OpenAI and of all who speak it.
var chatProtocol = &protocol{
	name: "openai-chat", messages: "messages",
	top: chatTop, message: chatHeard, event: chatEvent,
}

func chatTop(h *hearing, s *jsonscan.Scanner, key string) bool {
	switch key {
	case "tools", "functions":
		h.top.tools = !isEmpty(s.Raw())
	case "system": // of Ollama's generate
		h.top.system = readText(s)
	default:
		return false
	}
	return true
}

// chatParts are what a message of the protocol holds, in a history or as an answer.
type chatParts struct {
	role, name, id, refusal string
	content, calls, call    []byte // call is OpenAI's former function_call
	thoughts                []byte // reasoning_content or reasoning
	details                 []byte // reasoning_details
	images                  []byte // of Ollama's
}

func (m *chatParts) read(s *jsonscan.Scanner) {
	read(s, "role", &m.role, "content", &m.content, "tool_calls", &m.calls, "tool_call_id", &m.id, "refusal", &m.refusal,
		"name", &m.name, "tool_name", &m.name, // as Ollama has it
		"function_call", &m.call, "reasoning_content", &m.thoughts, "reasoning", &m.thoughts, "thinking", &m.thoughts,
		"reasoning_details", &m.details, "images", &m.images)
}

func chatHeard(h *hearing, s *jsonscan.Scanner) {
	var m chatParts
	m.read(s)
	h.begin(m.role)
	if h.cur.Role == RoleTool {
		h.result(sessionlog.ToolResult{CallID: m.id, Output: outputOf(m.content)}, m.name)
		return
	}
	h.parts(m.content)
	elementsOf(m.images, h.attach)
	elementsOf(m.calls, func(raw []byte) { h.call(chatCall(raw).call()) })
	if isObject(m.call) {
		var b block
		readFunction(&b, m.call)
		h.call(b.call())
	}
}

// parts reads a content that is a string or a list of typed parts.
func (h *hearing) parts(content []byte) {
	h.text(textIn(content))
	elementsOf(content, func(raw []byte) {
		kind, text := partOf(raw)
		if strings.HasSuffix(kind, "text") || strings.HasSuffix(kind, "audio") && text != "" {
			h.text(text)
		} else {
			h.attach(raw)
		}
	})
}

// partOf returns the type of a part, and its text, which of sound is what was written down of it.
func partOf(raw []byte) (kind, text string) {
	readIn(raw, "type", &kind, "text", &text, "refusal", &text, "transcript", &text)
	return kind, text
}

// chatCall reads one of tool_calls, or of the deltas of one.
func chatCall(raw []byte) *block {
	b := &block{kind: callKind, key: "-1"}
	var function []byte
	readIn(raw, "index", &b.key, "id", &b.id, "function", &function, "custom", &function)
	readFunction(b, function)
	return b
}

// readFunction reads the name and the arguments of a call: a text, or an object as Ollama has it. The input of a custom tool is no
// JSON, whatever it looks like.
func readFunction(b *block, raw []byte) {
	var args, input []byte
	readIn(raw, "name", &b.name, "arguments", &args, "input", &input)
	switch {
	case isText(args):
		b.text = append(b.text, textIn(args)...)
	case args != nil:
		b.args = objectArguments(args)
	}
	if input != nil {
		b.free = true
		b.text = append(b.text, textIn(input)...)
	}
}

// chatEvent reads a whole completion, or one chunk of a stream.
func chatEvent(a *answering, s *jsonscan.Scanner) {
	var failure, choices []byte
	read(s, "id", &a.out.ID, "model", &a.out.Model, "choices", &choices, "error", &failure)
	a.failed = a.failed || !isNull(failure)
	elementsOf(choices, func(raw []byte) {
		var c struct {
			index                blockKey
			message, delta, text []byte // text is of the former completions
			reason               string
		}
		readIn(raw, "index", &c.index, "message", &c.message, "delta", &c.message, "finish_reason", &c.reason, "text", &c.text)
		if c.index.further() {
			return // another answer to the same
		}
		addChatMessage(a, c.message)
		a.say(textKind, textIn(c.text))
		a.stop(c.reason)
	})
}

// addChatMessage adds the message of an answer, or one delta of it.
func addChatMessage(a *answering, raw []byte) {
	var m chatParts
	within(raw, m.read)
	a.say(thoughtKind, textIn(m.thoughts))
	a.say(textKind, textIn(m.content))
	elementsOf(m.content, func(raw []byte) { chatPart(a, raw) })
	a.say(refusalKind, m.refusal)
	elementsOf(m.details, func(raw []byte) { a.out.Native = append(a.out.Native, oneLine(raw)) })
	elementsOf(m.calls, func(raw []byte) { addChatCall(a, chatCall(raw)) })
	if isObject(m.call) {
		b := &block{kind: callKind, key: "function_call"}
		readFunction(b, m.call)
		addChatCall(a, b)
	}
}

// chatPart reads a part of a content that is a list, as Mistral gives its thoughts.
func chatPart(a *answering, raw []byte) {
	kind, text := partOf(raw)
	if kind != "thinking" {
		a.say(textKind, text)
		return
	}
	var thinking []byte
	readIn(raw, "thinking", &thinking)
	a.say(thoughtKind, textsIn(thinking))
}

// addChatCall adds a call, or the delta of one. A delta without an index is of the last call, unless it has another id.
func addChatCall(a *answering, c *block) {
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
