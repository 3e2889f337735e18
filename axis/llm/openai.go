package llm

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// OpenAI: Chat Completions, Responses and their siblings, which most other servers speak too, and Azure.
const openAI = "openai"

// openAIIgnored are the keys that never change an answer, of OpenAI and of the servers and gateways that speak its
// protocols.
var openAIIgnored = []exempt{
	{"client_metadata", "Codex names its session and turn in it"},
	{"metadata", "labels for the caller's own books"},
	{"prompt_cache_key", "which cache a prefix is looked up in; agents put their session's id there"},
	{"prompt_cache_retention", "how long a prefix stays cached"},
	{"safety_identifier", "names the end user"},
	{"store", "whether the provider keeps the answer"},
	{"user", "names the end user"},
	{"session_id", "OpenRouter: groups requests for tracing"},
	{"trace", "OpenRouter: names of traces and spans"},
	{"litellm_session_id", "LiteLLM: groups requests in its log"},
	{"litellm_trace_id", "LiteLLM: groups requests in its log"},
	{"litellm_metadata", "LiteLLM: labels in its log"},
	{"request_id", "vLLM and Z.ai: the caller's name of the request"},
	{"user_id", "DeepSeek and Z.ai: names the end user"},
	{"cache_salt", "vLLM: keeps callers' caches apart"},
}

// azureAny begins the paths of Azure OpenAI that name the deployment, which stands for the model.
const azureAny = "*/deployments/{model}"

var openAIEndpoints = []endpoint{
	{name: "chat.completions", keys: chatKeys, read: readChat, talk: chatProtocol,
		paths: paths(azureAny+"/chat/completions", azureAny+"/extensions/chat/completions", "*/chat/completions",
			"*/publishers/mistralai/models/{model}:rawPredict", "*/publishers/mistralai/models/{model}:streamRawPredict")},
	{name: "responses", paths: paths("*/responses"), keys: responsesKeys, read: readResponses, talk: responsesProtocol},
	{name: responsesWarmUp, paths: paths("*/responses"), turns: newResponsesTurns, keys: responsesWarmUpKeys, read: readWarmUp},
	{name: "responses.ws", paths: paths("*/responses"), turns: newResponsesTurns,
		keys: responsesSocketKeys, read: readResponsesSocket, talk: responsesProtocol},
	{name: "realtime", paths: paths("*/realtime"), turns: newRealtimeTurns,
		keys: realtimeKeys, read: readResponses, talk: realtimeProtocol},
	{name: "responses.compact", paths: paths("*/responses/compact"), keys: responsesKeys, read: readResponses, talk: responsesProtocol},
	{name: "responses.input_tokens", paths: paths("*/responses/input_tokens"), plain: countsTokens,
		keys: responsesKeys, read: readResponses},
	{name: "completions",
		paths: paths(azureAny+"/completions", "*/engines/{model}/completions", "*/completions"),
		keys:  completionKeys, read: single("prompt"), talk: prompted(chatProtocol)},
	{name: "embeddings", paths: paths(azureAny+"/embeddings", "*/embeddings"), keys: embeddingKeys, read: single("input")},
	{name: "images.generations",
		paths: paths(azureAny+"/images/generations", "*/images/generations"),
		keys:  imageKeys, read: single("prompt")},
	{name: "images.edits",
		paths: paths(azureAny+"/images/edits", "*/images/edits"),
		keys:  imageKeys, read: single("prompt"), form: formCall},
	{name: "audio.speech", paths: paths(azureAny+"/audio/speech", "*/audio/speech"), keys: speechKeys, read: single("model", "input")},
	{name: "audio.transcriptions",
		paths: paths(azureAny+"/audio/transcriptions", "*/audio/transcriptions"),
		keys:  audioKeys, form: formCall},
	{name: "audio.translations", paths: paths(azureAny+"/audio/translations", "*/audio/translations"), keys: audioKeys, form: formCall},
}

// The endpoints without messages.
var (
	completionKeys = &keys{surface: []string{"prompt", "suffix"}, ignored: openAIIgnored}
	embeddingKeys  = &keys{surface: []string{"input"}, ignored: openAIIgnored}
	imageKeys      = &keys{surface: []string{"prompt", "image", "image[]", "images", "mask"}, ignored: openAIIgnored}
	speechKeys     = &keys{surface: []string{"input", "instructions"}, ignored: openAIIgnored}
	audioKeys      = &keys{surface: []string{"file", "prompt"}, ignored: openAIIgnored}
)

var openAIProvider = provider{openAIError, func(h http.Header, ids *IDs) {
	h.Set("X-Request-Id", ids.Fresh("req_", Hexits, 32))
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Processing-Ms", "42")
}}

// openAIError is the error object of the APIs.
func openAIError(status int, message string) []byte {
	kind, code := "invalid_request_error", "null"
	switch {
	case status == http.StatusUnauthorized:
		code = `"invalid_api_key"`
	case status == http.StatusTooManyRequests:
		kind, code = "requests", `"rate_limit_exceeded"`
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%q,"param":null,"code":%s}}`, jsonText(message), kind, code)
}

var chatKeys = &keys{
	messages: "messages",
	surface: []string{
		"tools", "tool_choice", "functions", "function_call", "reasoning", "reasoning_effort", "thinking",
	},
	ignored: openAIIgnored,
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

// chatProtocol is Chat Completions, of OpenAI and of all who speak it.
var chatProtocol = &protocol{
	name: "openai-chat", messages: "messages",
	event: chatEvent,
	whole: chatWhole, stream: chatStream, framing: &bareEvents,
	putSystem: putSystemMessage,
}

// chatEvent reads a whole completion, or one chunk of a stream.
func chatEvent(a *answering, e *event) {
	for _, raw := range elements(e.Choices) {
		c := eventOf(raw)
		if c.Index.further() {
			continue // another answer to the same
		}
		chatDelta(a, latest(c.Message, c.Delta))
		a.say(textKind, textIn(c.Text)) // of the former completions
		a.stop(c.Stop)
	}
}

// chatDelta adds the message of an answer, or one delta of it.
func chatDelta(a *answering, raw []byte) {
	m := nodeOf(raw)
	a.say(thoughtKind, textIn(m.Thinking))
	a.sayParts(m.Content)
	a.say(refusalKind, textIn(m.Text))
	for _, detail := range elements(m.Details) {
		a.out.Native = append(a.out.Native, oneLine(detail))
	}
	for _, raw := range elements(m.Calls) {
		call := callOf(raw)
		a.join(cmp.Or(call.key, noIndex), call)
	}
	if isObject(m.Call) { // OpenAI's former function_call
		a.join("function_call", m.call())
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
		"id": r.callID(c, "call_", 24), "type": "function", "function": wireObject{"name": c.Name, "arguments": arguments},
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
