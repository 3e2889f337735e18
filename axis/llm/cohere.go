package llm

import (
	"cmp"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Cohere: chat and embed of both versions of its API.
const cohere = "cohere"

var (
	cohereChatKeys = &keys{
		messages: "messages", surface: []string{"tools", "tool_choice", "documents", "thinking"},
	}
	cohereOldChatKeys = &keys{surface: []string{"message", "chat_history", "preamble", "tools", "tool_results", "documents",
		"connectors", "conversation_id"}}
	cohereEmbedKeys = &keys{surface: []string{"texts", "images", "inputs"}}
)

var cohereEndpoints = []endpoint{
	{name: "chat", paths: paths("*/v2/chat"), keys: cohereChatKeys, read: readCohereChat, talk: cohereProtocol},
	{name: "chat", paths: paths("*/v1/chat"), keys: cohereOldChatKeys, read: single("model", "message")},
	{name: "embed", paths: paths("*/v2/embed", "*/v1/embed"), keys: cohereEmbedKeys, read: single("model", "texts|images|inputs")},
}

// readCohereChat takes a body apart that has a model and messages, which look like OpenAI's.
func readCohereChat(body *canonjson.Value, k *keys) (call, bool) {
	if member(body, "model") == "" {
		return call{}, false
	}
	return readChat(body, k)
}

// cohereProtocol is chat of both versions. The second's messages look like OpenAI's; the first has the last message and the
// results of tools beside the history (message, tool_results, chat_history) and calls without ids.
var cohereProtocol = &protocol{
	name: "cohere", messages: "messages",
	event:     cohereEvent,
	putSystem: putSystemMessage,
}

// cohereFirstProtocol is the first version.
var cohereFirstProtocol = &protocol{
	name: "cohere", messages: "message",
	event: cohereEvent,
}

// cohereEvent reads a whole answer, or one event of a stream, of either version.
func cohereEvent(a *answering, e *event) {
	delta := eventOf(latest(e.Delta, e.Response))
	switch e.Kind {
	case "": // the whole answer
		a.stop(e.Stop)
	case "text-generation", "tool-calls-generation": // of the first version
	case "stream-end", "message-end":
		a.stop(cmp.Or(delta.Stop, e.Stop))
		return
	default:
		e = &event{Index: e.Index, Message: latest(e.Message, delta.Message)}
	}
	m := nodeOf(e.Message)
	a.say(thoughtKind, textIn(m.Thinking))
	a.sayParts(m.Content)
	if isObject(m.Calls) { // of a stream, where deltas follow
		a.join(e.Index, callOf(m.Calls))
	}
	a.say(textKind, textIn(e.Text))
	for _, raw := range append(elements(m.Calls), elements(e.Calls)...) {
		a.put(callOf(raw))
	}
}
