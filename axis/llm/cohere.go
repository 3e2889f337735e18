package llm

import "github.com/tapedeck-dev/tapedeck/internal/canonjson"

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
		keys: cohereChatKeys, read: readCohereChat, usage: cohereUsage, fail: cohereError},
	{provider: cohere, name: "chat", paths: paths("*/v1/chat"),
		keys: cohereOldChatKeys, read: single("model", "message"), usage: cohereUsage, fail: cohereError},
	{provider: cohere, name: "embed", paths: paths("*/v2/embed", "*/v1/embed"),
		keys: cohereEmbedKeys, read: single("model", "texts|images|inputs"), usage: cohereUsage, fail: cohereError},
}

// readCohereChat takes a body apart that has a model and messages, which look like OpenAI's.
func readCohereChat(body *canonjson.Value, k *keys) (call, bool) {
	if member(body, "model") == "" {
		return call{}, false
	}
	return readChat(body, k)
}

// cohereUsage finds the usage of an answer: at its top, in the delta of the event that ends a stream, or in meta.
func cohereUsage(answer []byte) []byte {
	return lastObject(answer, []string{"usage"}, []string{"delta", "usage"}, []string{"response", "meta"}, []string{"meta"})
}

// cohereError is the API's error object.
func cohereError(_ int, message string) []byte {
	return marshal(struct {
		Message string `json:"message"`
	}{message})
}
