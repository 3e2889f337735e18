package llm

import (
	"maps"
	"net/http"
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
	return k.take(body, messages, call{systemMessages: withRole(messages, "system", "developer"), user: firstRole(messages, "user")})
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

// chatCounting is that of Chat Completions, completions and embeddings, of OpenAI and of those that speak its protocols. prompt_tokens
// holds what came out of a cache, completion_tokens the reasoning; but xAI and Gemini behind this protocol count reasoning beside it,
// which their total shows.
var chatCounting = counting{
	marks: []string{"prompt_tokens", "completion_tokens"},
	input: []string{"prompt_tokens"}, output: []string{"completion_tokens"},
	cacheRead:  []string{"prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"},
	cacheWrite: []string{"prompt_tokens_details.cache_write_tokens", "prompt_tokens_details.cache_creation_tokens"},
	reasoning:  []string{"completion_tokens_details.reasoning_tokens"},
	more: func(v *canonjson.Value, u *Usage) {
		if total, _ := tokensAt(v, "total_tokens"); total == u.InputTokens+u.OutputTokens+u.ReasoningTokens {
			u.OutputTokens += u.ReasoningTokens
		}
	},
}

// chatProtocol is Chat Completions, of OpenAI and of all who speak it.
var chatProtocol = &protocol{
	name: "openai-chat", messages: "messages",
	top: chatTop, message: chatHeard, event: chatEvent,
	whole: chatWhole, stream: chatStream, framing: &bareEvents,
	putSystem: putSystemMessage,
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

// OpenAIAccess is OpenAI's, and that of servers that speak its chat.
var OpenAIAccess = Access{
	Provider: openAI, Endpoint: "chat.completions",
	KeyName: "OPENAI_API_KEY", BaseName: "OPENAI_BASE_URL", Base: "https://api.openai.com/v1",
	path:      func(string) string { return "/chat/completions" },
	authorize: func(h http.Header, key string) { setKey(h, "Authorization", "Bearer ", key) },
	write:     writeChat,
}

// writeChat writes a request.
func writeChat(q *Asking) (wireObject, error) {
	effort, err := q.effort()
	if err != nil {
		return nil, err
	}
	body := wireObject{"model": q.Model, "messages": chatMessages(q.Conversation)}
	if q.Tools.Kind == canonjson.Array {
		tools := []any{}
		each(&q.Tools, func(tool *canonjson.Value) { tools = append(tools, chatTool(tool)) })
		body["tools"] = tools
	} else if q.Tools.Kind != canonjson.Null {
		body["tools"] = raw(q.Tools)
	}
	name, named := q.Choice.Get("name")
	switch {
	case q.Choice.Text() == "any":
		body["tool_choice"] = "required"
	case named:
		body["tool_choice"] = wireObject{"type": "function", "function": wireObject{"name": name.Str}}
	case q.Choice.Kind != canonjson.Null:
		body["tool_choice"] = raw(q.Choice)
	}
	if effort != "" {
		body["reasoning_effort"] = effort
	}
	return body, nil
}

func chatMessages(c *Conversation) (list []wireObject) {
	ids := newCallNumbers()
	if c.System.Kind != canonjson.Null {
		list = append(list, wireObject{"role": RoleSystem, "content": c.systemBlocks()})
	}
	for i := range c.Turns {
		m := &c.Turns[i]
		out := withExtra(wireObject{"role": m.Role, "content": raw(contentValue(m.Parts))}, m.Extra)
		var calls []wireObject
		for _, c := range m.Calls {
			args := c.Arguments.Str
			if c.Arguments.Kind != canonjson.String {
				args = string(c.Arguments.Append(nil))
			}
			calls = append(calls, wireObject{"id": ids.call(c.ID), "type": "function", "function": wireObject{"name": c.Name, "arguments": args}})
		}
		if calls != nil {
			out["tool_calls"] = calls
		}
		if m.Role == RoleTool {
			out["tool_call_id"] = ids.result(m.Of)
		}
		list = append(list, out)
	}
	return list
}

// chatTool returns a tool as Chat Completions declares it.
func chatTool(v *canonjson.Value) any {
	if name := get(v, "name"); name == nil || name.Kind != canonjson.String {
		return raw(*v)
	}
	function := wireObject{}
	for _, m := range v.Members {
		if m.Key == "input_schema" {
			m.Key = "parameters"
		}
		function[m.Key] = raw(m.Value)
	}
	return wireObject{"type": "function", "function": function}
}

// chatWhole is https://platform.openai.com/docs/api-reference/chat.
func chatWhole(r *Reply) wireObject {
	m := wireObject{"role": "assistant", "content": nil, "refusal": nil, "annotations": []wireObject{}}
	if r.Text != "" {
		m["content"] = r.Text
	}
	if calls := r.uses(func(_ int, c *CompletionCall) wireObject { return chatUse(r, c, c.text()) }); calls != nil {
		m["tool_calls"] = calls
	}
	out := chatFrame(r, "chat.completion")
	out["choices"] = []wireObject{{"index": 0, "message": m, "logprobs": nil, "finish_reason": r.stopIn("stop", "tool_calls", "length")}}
	out["usage"] = chatTokens(r)
	return out
}

func chatFrame(r *Reply, kind string) wireObject {
	return wireObject{
		"id": r.IDs.Fresh("chatcmpl-", Base62, 29), "object": kind, "created": r.IDs.Now().Unix(),
		"model": r.Model, "service_tier": "default", "system_fingerprint": "fp_scripted",
	}
}

func chatUse(r *Reply, c *CompletionCall, arguments string) wireObject {
	return wireObject{
		"id": r.callID(c, "call_", Base62, 24), "type": "function", "function": wireObject{"name": c.Name, "arguments": arguments},
	}
}

func chatTokens(r *Reply) wireObject {
	return wireObject{
		"prompt_tokens": r.InputTokens, "completion_tokens": r.OutputTokens, "total_tokens": r.InputTokens + r.OutputTokens,
		"prompt_tokens_details":     wireObject{"cached_tokens": 0, "audio_tokens": 0},
		"completion_tokens_details": wireObject{"reasoning_tokens": 0, "audio_tokens": 0},
	}
}

func chatStream(r *Reply, emit func(string, wireObject)) {
	frame := chatFrame(r, "chat.completion.chunk")
	if r.usage {
		frame["usage"] = nil // every chunk has the key once usage is asked for; the last one alone a value
	}
	send := func(choices []wireObject) {
		chunk := maps.Clone(frame)
		chunk["choices"] = choices
		emit("", chunk)
	}
	delta := func(delta wireObject, finish any) {
		send([]wireObject{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}})
	}
	delta(wireObject{"role": "assistant", "content": "", "refusal": nil}, nil)
	if r.Text != "" {
		for piece := range r.textPieces() {
			delta(wireObject{"content": piece}, nil)
		}
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		first := chatUse(r, c, "")
		first["index"] = i
		delta(wireObject{"tool_calls": []wireObject{first}}, nil)
		for _, piece := range r.pieces(c.text()) {
			delta(wireObject{"tool_calls": []wireObject{{"index": i, "function": wireObject{"arguments": piece}}}}, nil)
		}
	}
	delta(wireObject{}, r.stopIn("stop", "tool_calls", "length"))
	if r.usage {
		frame["usage"] = chatTokens(r)
		send([]wireObject{})
	}
}
