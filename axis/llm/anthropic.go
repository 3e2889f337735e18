package llm

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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
}

// claudeBilling begins the system block in which Claude Code counts its own requests.
const claudeBilling = "x-anthropic-billing-header"

var anthropicEndpoints = []endpoint{
	{name: "messages", paths: paths("*/v1/messages"), keys: anthropicKeys, read: readMessages, talk: anthropicProtocol},
	{name: "count_tokens", plain: countsTokens,
		paths: paths("*/v1/messages/count_tokens", "*/publishers/anthropic/models/count-tokens:rawPredict"),
		keys:  anthropicKeys, read: readMessages},
	{name: "rawPredict", paths: paths("*/publishers/anthropic/models/{model}:rawPredict"),
		keys: anthropicKeys, read: readVertexMessages, talk: anthropicProtocol},
	{name: "streamRawPredict", paths: paths("*/publishers/anthropic/models/{model}:streamRawPredict"),
		keys: anthropicKeys, read: readVertexMessages, talk: anthropicProtocol},
	{name: "batches", paths: paths("*/v1/messages/batches"), plain: ordersWork, keys: anthropicBatchKeys, read: readMessageBatch},
	{name: "complete", paths: paths("*/v1/complete"),
		keys: anthropicCompleteKeys, read: single("model", "prompt"), talk: prompted(anthropicProtocol)},
}

var anthropicBatchKeys = &keys{
	surface: []string{"requests"},
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
	return k.take(body, messages, call{systemKey: "system", user: firstRole(messages, "user")})
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
	return k.take(body, nil, call{})
}

// anthropicProvider has the error types that the API documents for a status.
var anthropicProvider = provider{
	fail: wordedError(map[int]string{
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		429: "rate_limit_error", 529: "overloaded_error",
	}, "api_error", "invalid_request_error", func(_ int, word string, message []byte) []byte {
		return fmt.Appendf(nil, `{"type":"error","error":{"type":%q,"message":%s}}`, word, message)
	}),
	header: func(h http.Header, ids *IDs) { h.Set("Request-Id", ids.Fresh("req_011C", Base62, 20)) },
}

// anthropicProtocol is the Messages API.
var anthropicProtocol = &protocol{
	name: "anthropic-messages", messages: "messages",
	event: anthropicEvent,
	whole: anthropicWhole, stream: anthropicStream, framing: &namedEvents,
	putSystem: func(body *canonjson.Value, s string) { put(body, "system", text(s)) },
}

// anthropicEvent reads a whole message, or one event of a stream.
func anthropicEvent(a *answering, e *event) {
	for _, part := range elements(e.Content) {
		a.put(partOf(part))
	}
	a.say(textKind, textIn(e.Text)) // of the legacy text completions
	a.stop(e.Stop)
	switch e.Kind {
	case "message_start":
		a.read(anthropicEvent, e.Message)
	case "content_block_start":
		b := partOf(e.Begun)
		b.key = e.Index
		a.put(b)
	case "content_block_delta":
		if b := a.keyed[e.Index]; b != nil {
			anthropicAdds(a, b, e.Delta)
		}
	case "message_delta":
		delta := eventOf(e.Delta)
		a.stop(delta.Stop)
	}
}

// An anthropicDelta adds to a block.
type anthropicDelta struct {
	Text saying `json:"text|thinking|partial_json"`
	Sign []byte `json:"signature"`
	Mark []byte `json:"citation"`
}

func anthropicAdds(a *answering, b *block, raw []byte) {
	d := &a.delta
	*d = anthropicDelta{Text: b.text}
	a.scan.Reset(raw)
	jsonscan.Into(&a.scan, d)
	b.text = d.Text
	if isText(d.Sign) {
		b.sign = d.Sign
	}
	if d.Mark != nil {
		b.marks = append(b.marks, d.Mark)
	}
	if b.kind == thoughtKind {
		b.raw = nil // what it began with is less than what came
	}
}

var anthropicAccess = Access{
	Provider: anthropic, Endpoint: "messages",
	KeyName: "ANTHROPIC_API_KEY", BaseName: "ANTHROPIC_BASE_URL", Base: "https://api.anthropic.com",
	path: func(string) string { return "/v1/messages" },
	authorize: func(h http.Header, key string) {
		h.Set("Anthropic-Version", "2023-06-01")
		setKey(h, "X-Api-Key", "", key)
	},
	write: writeAnthropic,
}

// maxAnswer is the bound of an answer in tokens, which the API wants; thoughts come on top.
const maxAnswer = 4096

// writeAnthropic writes a request.
func writeAnthropic(q *Asking) (wireObject, error) {
	if err := q.laterSystem("Anthropic"); err != nil {
		return nil, err
	}
	budget, err := q.budget()
	if err != nil {
		return nil, err
	}
	body := wireObject{"model": q.Model, "max_tokens": maxAnswer + budget, "messages": anthropicMessages(q.Turns)}
	if q.System.Kind != canonjson.Null {
		body["system"] = q.systemBlocks()
	}
	if q.Tools.Kind != canonjson.Null {
		body["tools"] = raw(q.Tools)
	}
	switch {
	case q.Choice.Kind == canonjson.String:
		body["tool_choice"] = wireObject{"type": q.Choice.Str}
	case q.Choice.Kind != canonjson.Null:
		body["tool_choice"] = raw(q.Choice)
	}
	if budget > 0 {
		body["thinking"] = wireObject{"type": "enabled", "budget_tokens": budget}
	}
	return body, nil
}

func anthropicMessages(turns []Turn) []wireObject {
	j, ids := joining{key: "content"}, newCallNumbers()
	for i := range turns {
		m := &turns[i]
		if m.Role == RoleTool {
			result := wireObject{"type": "tool_result", "tool_use_id": ids.result(m.Of), "content": raw(contentValue(m.Parts))}
			if m.Failed {
				result["is_error"] = true
			}
			j.add(RoleUser, []any{result}, m.Extra)
			continue
		}
		parts := []any{}
		for _, b := range blocksOf(m.Parts) {
			parts = append(parts, raw(b))
		}
		for _, c := range m.Calls {
			parts = append(parts, wireObject{"type": "tool_use", "id": ids.call(c.ID), "name": c.Name, "input": raw(c.Arguments)})
		}
		j.add(m.Role, parts, m.Extra)
	}
	return j.list
}

// anthropicWhole is https://docs.anthropic.com/en/api/messages.
func anthropicWhole(r *Reply) wireObject {
	content := []wireObject{}
	if r.Thought != "" {
		content = append(content, wireObject{"type": "thinking", "thinking": r.Thought, "signature": anthropicSeal(r)})
	}
	if r.Text != "" {
		content = append(content, wireObject{"type": "text", "text": r.Text})
	}
	content = append(content, r.uses(func(_ int, c *CompletionCall) wireObject { return anthropicUse(r, c, c.Arguments) })...)
	m := anthropicBegun(r, content, r.OutputTokens)
	m["stop_reason"] = r.stop()
	return m
}

// anthropicBegun is a message that has not ended.
func anthropicBegun(r *Reply, content []wireObject, outputTokens int64) wireObject {
	return wireObject{
		"id": r.IDs.Fresh("msg_01", Base62, 22), "type": "message", "role": "assistant", "model": r.Model,
		"content": content, "stop_reason": nil, "stop_sequence": nil,
		"usage": wireObject{
			"input_tokens": r.InputTokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": outputTokens,
			"service_tier": "standard",
		},
	}
}

func anthropicSeal(r *Reply) string { return r.IDs.Fresh("Ep", Base62, 60) + "==" }

func anthropicUse(r *Reply, c *CompletionCall, input any) wireObject {
	return wireObject{"type": "tool_use", "id": r.callID(c, "toolu_01", 22), "name": c.Name, "input": input}
}

// anthropicStream is https://docs.anthropic.com/en/api/messages-streaming: the thought, the text and the tool calls, each one content
// block. The ping follows the first block's start, as it does at the provider.
func anthropicStream(r *Reply, emit func(string, wireObject)) {
	send := func(kind string, o wireObject) {
		o["type"] = kind
		emit(kind, o)
	}
	index := 0
	block := func(start wireObject, kind, field string, pieces iter.Seq[string], more ...wireObject) {
		send("content_block_start", wireObject{"index": index, "content_block": start})
		if index == 0 {
			send("ping", wireObject{})
		}
		for piece := range pieces {
			send("content_block_delta", wireObject{"index": index, "delta": wireObject{"type": kind, field: piece}})
		}
		for _, delta := range more {
			send("content_block_delta", wireObject{"index": index, "delta": delta})
		}
		send("content_block_stop", wireObject{"index": index})
		index++
	}
	send("message_start", wireObject{"message": anthropicBegun(r, []wireObject{}, 1)})
	if r.Thought != "" {
		block(wireObject{"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking",
			slices.Values(r.pieces(r.Thought)), wireObject{"type": "signature_delta", "signature": anthropicSeal(r)})
	}
	if r.Text != "" {
		block(wireObject{"type": "text", "text": ""}, "text_delta", "text", r.textPieces())
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		block(anthropicUse(r, c, wireObject{}), "input_json_delta", "partial_json", slices.Values(append([]string{""}, r.pieces(c.text())...)))
	}
	send("message_delta", wireObject{
		"delta": wireObject{"stop_reason": r.stop(), "stop_sequence": nil}, "usage": wireObject{"output_tokens": r.OutputTokens},
	})
	send("message_stop", wireObject{})
}
