package llm

import (
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// Cohere: chat and embed of both versions of its API.
const cohere = "cohere"

var (
	cohereChatKeys = &keys{
		messages: "messages", surface: []string{"tools", "tool_choice", "documents", "thinking"},
		omitted: []exempt{{"id of a tool call and tool_call_id of its result",
			"numbered by first appearance: the pairing counts, the name does not"}},
	}
	cohereOldChatKeys = &keys{surface: []string{"message", "chat_history", "preamble", "tools", "tool_results", "documents",
		"connectors", "conversation_id"}}
	cohereEmbedKeys = &keys{surface: []string{"texts", "images", "inputs"}}
)

var cohereEndpoints = []endpoint{
	{provider: cohere, name: "chat", paths: paths("*/v2/chat"),
		keys: cohereChatKeys, read: readCohereChat, usage: cohereUsage, talk: cohereProtocol},
	{provider: cohere, name: "chat", paths: paths("*/v1/chat"),
		keys: cohereOldChatKeys, read: single("model", "message"), usage: cohereUsage},
	{provider: cohere, name: "embed", paths: paths("*/v2/embed", "*/v1/embed"),
		keys: cohereEmbedKeys, read: single("model", "texts|images|inputs"), usage: cohereUsage},
}

// readCohereChat takes a body apart that has a model and messages, which look like OpenAI's.
func readCohereChat(body *canonjson.Value, k *keys) (call, bool) {
	if member(body, "model") == "" {
		return call{}, false
	}
	return readChat(body, k)
}

// cohereUsage finds the usage of an answer: at its top, in the delta of the event that ends a stream, or in meta.
var cohereUsage = usageAt("usage", "delta.usage", "response.meta", "meta")

// cohereCounting is usage or meta: what the model saw, else what was billed.
var cohereCounting = counting{
	marks: []string{"tokens", "billed_units"},
	input: []string{"tokens.input_tokens", "billed_units.input_tokens"}, output: []string{"tokens.output_tokens", "billed_units.output_tokens"},
	cacheRead: []string{"cached_tokens"},
}

// cohereError is the API's error object.
func cohereError(_ int, message string) []byte {
	return marshal(wireObject{"message": message})
}

// cohereProtocol is chat of both versions. The second's messages look like OpenAI's; the first has the last message and the
// results of tools beside the history (message, tool_results, chat_history) and calls without ids.
var cohereProtocol = &protocol{
	name: "cohere", messages: "messages",
	top: cohereTop, message: chatHeard, event: cohereEvent,
	putSystem: putSystemMessage,
}

// cohereFirstProtocol is the first version.
var cohereFirstProtocol = &protocol{
	name: "cohere", messages: "message",
	top: cohereTop, message: skipMessage, event: cohereEvent,
}

func cohereTop(h *hearing, s *jsonscan.Scanner, key string) bool {
	switch key {
	case "preamble":
		h.top.system = readText(s)
	case "tool_results": // [{"call":{"name":…},"outputs":[…]}]
		h.begin(RoleTool)
		readList(s, func() {
			var name string
			var outputs []byte
			read(s, "call", func() { read(s, "name", &name) }, "outputs", &outputs)
			h.result(sessionlog.ToolResult{Output: outputOf(outputs)}, name)
		})
	default:
		return chatTop(h, s, key)
	}
	return true
}

// cohereEvent reads a whole answer, or one event of a stream, of either version.
func cohereEvent(a *answering, s *jsonscan.Scanner) {
	var e struct {
		kind, text, reason    string
		key                   blockKey
		message, delta, calls []byte
	}
	read(s, "type", &e.kind, "event_type", &e.kind, "index", &e.key, "id", &a.out.ID, "generation_id", &a.out.ID,
		"message", &e.message, "delta", &e.delta, "response", &e.delta, "text", &e.text, "tool_calls", &e.calls, "finish_reason", &e.reason)
	switch e.kind {
	case "": // the whole answer, of the first version where text stands at its top
		cohereMessage(a, e.message, "")
		cohereFirst(a, e.text, e.calls)
		a.stop(e.reason)
	case "text-generation", "tool-calls-generation":
		cohereFirst(a, e.text, e.calls)
	case "stream-end", "message-end":
		readIn(e.delta, "finish_reason", &e.reason)
		a.stop(e.reason)
	default:
		readIn(e.delta, "message", &e.message)
		cohereMessage(a, e.message, e.key)
	}
}

// cohereFirst adds the text and the calls of the first version.
func cohereFirst(a *answering, text string, calls []byte) {
	a.say(textKind, text)
	elementsOf(calls, func(raw []byte) {
		var args []byte
		b := a.add(callKind, "")
		readIn(raw, "name", &b.name, "parameters", &args)
		if args != nil {
			b.args = objectArguments(args)
		}
	})
}

// cohereMessage adds the message of an answer, or one delta of it, which is of the part or the call called key.
func cohereMessage(a *answering, raw []byte, key blockKey) {
	var plan string
	var content, calls []byte
	readIn(raw, "tool_plan", &plan, "content", &content, "tool_calls", &calls)
	a.say(thoughtKind, plan)
	part := func(raw []byte) {
		var text, thinking string
		readIn(raw, "text", &text, "thinking", &thinking)
		a.say(thoughtKind, thinking)
		a.say(textKind, text)
	}
	if isObject(content) {
		part(content)
	}
	elementsOf(content, part)
	if isObject(calls) { // of a stream, where deltas follow
		b := chatCall(calls)
		b.key = key
		if was := a.block(key); was != nil && b.id == "" {
			was.text = append(was.text, b.text...)
		} else {
			a.put(b)
		}
	}
	elementsOf(calls, func(call []byte) { a.put(chatCall(call)) })
}
