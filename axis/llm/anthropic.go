package llm

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// Anthropic: the Messages API, of Anthropic and of Vertex AI, and the legacy text completions.
const anthropic = "anthropic"

var anthropicKeys = &keys{
	messages: "messages",
	surface:  []string{"system", "tools", "tool_choice", "thinking", "mcp_servers"},
	ignored: []exempt{
		{"metadata", "user_id names the end user and the session"},
		{"cache_control", "where a prefix is cached, not what it says"},
	},
	omitted: []exempt{
		{"cache_control of blocks and tools", "agents move the marks at every turn"},
		{"signature, encrypted_content, encrypted_index, encrypted_stdout of blocks, data of redacted_thinking",
			"opaque echoes of the provider"},
		{"id of a tool use and tool_use_id of its result", "numbered by first appearance: the pairing counts, the name does not"},
		{"authorization_token of mcp_servers", "a credential"},
		{"system blocks that begin with " + claudeBilling, "Claude Code counts its own requests there"},
		{"a bare string as content or system", "read as the list of one text block that it is short for"},
	},
}

// claudeBilling begins the system block in which Claude Code counts its own requests.
const claudeBilling = "x-anthropic-billing-header"

var anthropicEndpoints = []endpoint{
	{provider: anthropic, name: "messages", paths: paths("*/v1/messages"),
		keys: anthropicKeys, read: readMessages, usage: anthropicUsage, fail: anthropicError},
	{provider: anthropic, name: "count_tokens", plain: countsTokens,
		paths: paths("*/v1/messages/count_tokens", "*/publishers/anthropic/models/count-tokens:rawPredict"),
		keys:  anthropicKeys, read: readMessages, fail: anthropicError},
	{provider: anthropic, name: "rawPredict", paths: paths("*/publishers/anthropic/models/{model}:rawPredict"),
		keys: anthropicKeys, read: readVertexMessages, usage: anthropicUsage, fail: anthropicError},
	{provider: anthropic, name: "streamRawPredict", paths: paths("*/publishers/anthropic/models/{model}:streamRawPredict"),
		keys: anthropicKeys, read: readVertexMessages, usage: anthropicUsage, fail: anthropicError},
	{provider: anthropic, name: "batches", paths: paths("*/v1/messages/batches"),
		plain: ordersWork, keys: anthropicBatchKeys, read: readMessageBatch, fail: anthropicError},
	{provider: anthropic, name: "complete", paths: paths("*/v1/complete"),
		keys: anthropicCompleteKeys, read: single("model", "prompt"), usage: anthropicUsage, fail: anthropicError},
}

var anthropicBatchKeys = &keys{
	surface: []string{"requests"},
	omitted: []exempt{{"params of each request", "read as the body of messages is, with the same keys ignored"}},
}

var anthropicCompleteKeys = &keys{
	surface: []string{"prompt"},
	ignored: []exempt{{"metadata", "user_id names the end user"}},
}

// readMessages takes a body apart that has a model and a list of messages.
func readMessages(body *canonjson.Value, k *keys) (call, bool) {
	if member(body, "model") == "" {
		return call{}, false
	}
	return readVertexMessages(body, k)
}

// readVertexMessages does not need a model: the path names it.
func readVertexMessages(body *canonjson.Value, k *keys) (call, bool) {
	messages := list(body, "messages")
	if messages == nil {
		return call{}, false
	}
	var ids pairs
	each(messages, func(m *canonjson.Value) {
		at(m, "content", func(content *canonjson.Value) { anthropicContent(content, &ids) })
	})
	at(body, "system", func(system *canonjson.Value) {
		anthropicContent(system, &ids)
		dropElems(system, func(b *canonjson.Value) bool { return strings.HasPrefix(member(b, "text"), claudeBilling) })
	})
	at(body, "tools", func(tools *canonjson.Value) { each(tools, dropCacheControl) })
	at(body, "mcp_servers", func(servers *canonjson.Value) {
		each(servers, func(s *canonjson.Value) { drop(s, "authorization_token") })
	})
	c := call{
		model:     member(body, "model"),
		messages:  canonjson.Member{Key: "messages", Value: *messages},
		systemKey: "system",
		user:      firstRole(messages, "user"),
	}
	c.surface, c.params = k.split(body, "messages", "model")
	return c, true
}

// anthropicContent takes the marks and the opaque echoes off the blocks of a content. The input of a tool is content.
func anthropicContent(content *canonjson.Value, ids *pairs) {
	listed(content, "text")
	each(content, func(b *canonjson.Value) {
		drop(b, "cache_control", "signature", "encrypted_content", "encrypted_index", "encrypted_stdout")
		switch kind := member(b, "type"); {
		case kind == "redacted_thinking":
			drop(b, "data")
		case strings.HasSuffix(kind, "tool_use"):
			ids.number(b, "id")
		case strings.HasSuffix(kind, "tool_result"):
			ids.number(b, "tool_use_id")
			at(b, "content", func(inner *canonjson.Value) { anthropicContent(inner, ids) })
		case kind == "text":
			at(b, "citations", func(citations *canonjson.Value) {
				each(citations, func(c *canonjson.Value) { drop(c, "encrypted_index") })
			})
		}
	})
}

func dropCacheControl(v *canonjson.Value) { drop(v, "cache_control") }

// readMessageBatch reads the params of each request as messages; what is not of that shape counts as it stands.
func readMessageBatch(body *canonjson.Value, k *keys) (call, bool) {
	requests := list(body, "requests")
	if requests == nil {
		return call{}, false
	}
	each(requests, func(r *canonjson.Value) {
		at(r, "params", func(params *canonjson.Value) {
			if c, ok := readMessages(params, anthropicKeys); ok {
				*params = c.whole()
			}
		})
	})
	var c call
	c.surface, c.params = k.split(body)
	return c, true
}

// anthropicUsage finds the usage of an answer. A streamed one counts its input in message_start and its output in
// message_delta: both are merged, the later value wins.
func anthropicUsage(answer []byte) []byte {
	if head := bytes.TrimLeft(answer, " \t\r\n"); len(head) > 0 && head[0] == '{' {
		return objectAt(head, "usage")
	}
	start := lastObject(answer, []string{"message", "usage"})
	delta := lastObject(answer, []string{"usage"})
	if start == nil || delta == nil {
		return append(start, delta...) // at most one of them
	}
	return mergeObjects(start, delta)
}

// anthropicError is the API's error object.
func anthropicError(status int, message string) []byte {
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return marshal(struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{anthropicErrorType(status), message}})
}

// anthropicErrorType is the error type that the API documents for a status.
func anthropicErrorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// anthropicProtocol is the Messages API.
var anthropicProtocol = &protocol{
	name: "anthropic-messages", messages: "messages",
	top: anthropicTop, message: anthropicMessage, event: anthropicEvent,
}

func anthropicTop(h *hearing, s *jsonscan.Scanner, key string) bool {
	switch key {
	case "system":
		h.top.system = joinTexts(s)
	case "tools":
		readList(s, func() {
			kind := ""
			read(s, "type", &kind)
			h.top.tools = h.top.tools || !ranByAnthropic(kind)
		})
	default:
		return false
	}
	return true
}

// ranByAnthropic reports whether tools of a type run at the provider.
func ranByAnthropic(kind string) bool {
	return slices.ContainsFunc(
		[]string{"web_search", "web_fetch", "code_execution", "tool_search", "mcp_toolset", "advisor"},
		func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}

func anthropicMessage(h *hearing, s *jsonscan.Scanner) {
	content := h.beginAs(s, "content")
	h.text(textIn(content))
	elementsOf(content, func(raw []byte) {
		var b struct {
			kind, text, id, use, name string
			content, input            []byte
			failed                    bool
		}
		readIn(raw, "type", &b.kind, "text", &b.text, "id", &b.id, "tool_use_id", &b.use, "name", &b.name,
			"content", &b.content, "input", &b.input, "is_error", &b.failed)
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
	})
}

// anthropicEvent reads a whole message, or one event of a stream.
func anthropicEvent(a *answering, s *jsonscan.Scanner) {
	var e struct {
		kind, completion, stop string
		key                    blockKey
		message, start, delta  []byte
	}
	read(s, "type", &e.kind, "index", &e.key, "message", &e.message, "content_block", &e.start, "delta", &e.delta,
		"content", func() { readList(s, func() { anthropicBlock(a, s.Raw(), "") }) },
		"id", &a.out.ID, "model", &a.out.Model, "stop_reason", &e.stop,
		"completion", &e.completion) // of the legacy text completions
	a.say(textKind, e.completion)
	a.stop(e.stop)
	switch e.kind {
	case "message_start":
		within(e.message, func(s *jsonscan.Scanner) { anthropicEvent(a, s) })
	case "content_block_start":
		anthropicBlock(a, e.start, e.key)
	case "content_block_delta":
		if b := a.block(e.key); b != nil {
			anthropicDelta(b, e.delta)
		}
	case "message_delta":
		readIn(e.delta, "stop_reason", &e.stop)
		a.stop(e.stop)
	case "error":
		a.failed = true
	}
}

// anthropicBlock adds a block, which a stream calls by key and continues.
func anthropicBlock(a *answering, raw []byte, key blockKey) {
	if !isObject(raw) {
		return
	}
	kind, input := "", []byte(nil)
	b := a.add(otherKind, key)
	b.raw = raw
	var marks []byte
	readIn(raw, "type", &kind, "text", &b.text, "thinking", &b.text, "citations", &marks, "id", &b.id, "name", &b.name, "input", &input)
	elementsOf(marks, func(mark []byte) { b.marks = append(b.marks, mark) })
	if input != nil {
		b.args = objectArguments(input)
	}
	switch kind {
	case "text":
		b.kind = textKind
	case "tool_use":
		b.kind = callKind
	case "thinking", "redacted_thinking":
		b.kind = thoughtKind
	default:
		b.text = nil
	}
}

// anthropicDelta adds to a block.
func anthropicDelta(b *block, delta []byte) {
	var sign, mark []byte
	readIn(delta, "text", &b.text, "thinking", &b.text, "partial_json", &b.text, "signature", &sign, "citation", &mark)
	if isText(sign) {
		b.sign = sign
	}
	if mark != nil {
		b.marks = append(b.marks, mark)
	}
	if b.kind == thoughtKind {
		b.raw = nil // what it began with is less than what came
	}
}
