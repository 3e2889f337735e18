package llm

import (
	"cmp"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Ollama: its native API. Its OpenAI and Anthropic front doors are those providers' endpoints.
const ollama = "ollama"

var ollamaIgnored = []exempt{{"keep_alive", "how long the model stays loaded after the call"}}

var (
	ollamaChatKeys = &keys{
		messages: "messages", surface: []string{"tools", "think"}, ignored: ollamaIgnored,
	}
	ollamaGenerateKeys = &keys{
		surface: []string{"prompt", "suffix", "system", "template", "images", "context", "think"}, ignored: ollamaIgnored,
	}
	ollamaEmbedKeys = &keys{surface: []string{"input", "prompt"}, ignored: ollamaIgnored}
)

var ollamaEndpoints = []endpoint{
	{name: "chat", paths: paths("*/api/chat"), keys: ollamaChatKeys, read: readOllamaChat, talk: ollamaProtocol},
	{name: "generate", paths: paths("*/api/generate"), keys: ollamaGenerateKeys, read: readOllamaGenerate, talk: prompted(ollamaProtocol)},
	{name: "embed", paths: paths("*/api/embed"), keys: ollamaEmbedKeys, read: single("model", "input")},
	{name: "embeddings", paths: paths("*/api/embeddings"), keys: ollamaEmbedKeys, read: single("model", "prompt")},
}

// readOllamaChat takes a body apart that has a model and messages whose content is text: other servers have an /api/chat
// too.
func readOllamaChat(body *canonjson.Value, k *keys) (call, bool) {
	messages := list(body, "messages")
	if messages == nil || member(body, "model") == "" {
		return call{}, false
	}
	for i := range messages.Elems {
		if !isOllamaMessage(&messages.Elems[i]) {
			return call{}, false
		}
	}
	var ids pairs
	each(messages, func(m *canonjson.Value) {
		ids.number(m, "tool_call_id")
		at(m, "tool_calls", func(calls *canonjson.Value) {
			each(calls, func(call *canonjson.Value) { ids.number(call, "id") })
		})
	})
	return k.take(body, messages, call{systemMessages: withRole(messages, "system"), user: firstRole(messages, "user")})
}

// isOllamaMessage reports whether a message has a role, and a text or calls of tools.
func isOllamaMessage(m *canonjson.Value) bool {
	content := get(m, "content")
	if content == nil {
		content = get(m, "tool_calls")
	} else if content.Kind != canonjson.String {
		return false
	}
	return content != nil && member(m, "role") != ""
}

// readOllamaGenerate takes a body apart that has a model and a prompt. One without a prompt loads the model, or, with
// keep_alive 0, unloads it: it generates nothing.
func readOllamaGenerate(body *canonjson.Value, k *keys) (call, bool) {
	if member(body, "model") == "" || member(body, "prompt") == "" {
		return call{}, false
	}
	return single("prompt")(body, k)
}

// ollamaProtocol is Ollama's own API. Its messages look like OpenAI's; images stand beside a message's content, and calls have
// objects as arguments and, in older versions, no id.
var ollamaProtocol = &protocol{
	name: "ollama", messages: "messages",
	event: ollamaEvent,
	whole: ollamaWhole, stream: ollamaStream, framing: &jsonLines,
	putSystem: putSystemMessage,
}

// ollamaEvent reads an answer, or one line of a stream.
func ollamaEvent(a *answering, e *event) {
	chatDelta(a, e.Message)
	a.say(thoughtKind, textIn(e.Thinking))
	a.say(textKind, textIn(e.Response)) // of generate
	if e.Done {
		a.stop(cmp.Or(e.Stop, "stop"))
	}
}

// ollamaWhole is POST /api/chat: https://github.com/ollama/ollama/blob/main/docs/api.md.
func ollamaWhole(r *Reply) wireObject { return ollamaLast(r, r.Text, r.Thought, r.Calls) }

// ollamaLine is what the assistant says in one line of a stream; a key without a value is left out, as the server does.
func ollamaLine(r *Reply, text, thought string, calls []CompletionCall) wireObject {
	m := wireObject{"role": "assistant", "content": text}
	if thought != "" {
		m["thinking"] = thought
	}
	var list []wireObject
	for i, c := range calls {
		list = append(list, wireObject{"function": wireObject{"index": i, "name": c.Name, "arguments": c.Arguments}})
	}
	if list != nil {
		m["tool_calls"] = list
	}
	return wireObject{"model": r.Model, "created_at": r.IDs.Now().UTC().Format(time.RFC3339Nano), "message": m, "done": false}
}

func ollamaLast(r *Reply, text, thought string, calls []CompletionCall) wireObject {
	o := ollamaLine(r, text, thought, calls)
	o["done"], o["done_reason"] = true, r.stopIn("stop", "stop", "length")
	o["total_duration"], o["load_duration"] = 4_883_583_458, 1_334_875 // ns
	o["prompt_eval_count"], o["prompt_eval_duration"] = r.InputTokens, 342_546_000
	o["eval_count"], o["eval_duration"] = r.OutputTokens, 4_535_599_000
	return o
}

func ollamaStream(r *Reply, emit func(string, wireObject)) {
	for _, piece := range r.pieces(r.Thought) {
		if piece != "" {
			emit("", ollamaLine(r, "", piece, nil))
		}
	}
	for piece := range r.textPieces() {
		emit("", ollamaLine(r, piece, "", nil))
	}
	for _, c := range r.Calls { // a call comes whole
		emit("", ollamaLine(r, "", "", []CompletionCall{c}))
	}
	emit("", ollamaLast(r, "", "", nil))
}
