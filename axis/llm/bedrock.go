package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Bedrock: the runtime of Amazon Bedrock. Its OpenAI and Anthropic front doors are those providers' endpoints.
const bedrock = "bedrock"

var converseKeys = &keys{
	messages: "messages",
	surface:  []string{"system", "toolConfig", "promptVariables", "additionalModelRequestFields"},
	ignored:  []exempt{{"requestMetadata", "labels for the caller's own log"}},
}

// invokeKeys are those of the families of models beside Anthropic's and those that speak messages.
var invokeKeys = &keys{
	surface: []string{
		"prompt", "inputText", "input_text", "texts", "message", "chat_history", "preamble", "images", "inputImage",
		"inputs", "instruction", "taskType", "textToImageParams",
	},
}

var bedrockEndpoints = []endpoint{
	{name: "invoke", paths: paths("*/model/{model+}/invoke"), keys: invokeKeys, read: readInvoke},
	{name: "invoke-with-response-stream", paths: paths("*/model/{model+}/invoke-with-response-stream"), keys: invokeKeys, read: readInvoke},
	{name: "converse", paths: paths("*/model/{model+}/converse"), keys: converseKeys, read: readConverse},
	{name: "converse-stream", paths: paths("*/model/{model+}/converse-stream"), keys: converseKeys, read: readConverse},
	{name: "count-tokens", paths: paths("*/model/{model+}/count-tokens"), plain: countsTokens,
		keys: bedrockCountKeys, read: readBedrockCount},
}

var bedrockCountKeys = &keys{
	surface: []string{"input"},
}

// readBedrockCount takes a body apart whose input is the body of another call.
func readBedrockCount(body *canonjson.Value, k *keys) (call, bool) {
	input := get(body, "input")
	if input == nil {
		return call{}, false
	}
	at(input, "converse", func(inner *canonjson.Value) {
		if c, ok := readConverse(inner, converseKeys); ok {
			*inner = c.whole()
		}
	})
	return k.take(body, nil, call{})
}

// readConverse takes a body apart that has messages, or a prompt that the path names and its variables.
func readConverse(body *canonjson.Value, k *keys) (call, bool) {
	messages := list(body, "messages")
	if messages == nil {
		if get(body, "promptVariables") == nil {
			return call{}, false
		}
		none := array()
		messages = &none
	}
	var ids pairs
	each(messages, func(m *canonjson.Value) {
		at(m, "content", func(content *canonjson.Value) { converseContent(content, &ids) })
	})
	at(body, "system", func(system *canonjson.Value) { converseContent(system, &ids) })
	at(body, "toolConfig", func(config *canonjson.Value) {
		at(config, "tools", func(tools *canonjson.Value) { dropElems(tools, isCachePoint) })
	})
	return k.take(body, messages, call{systemKey: "system", user: firstRole(messages, "user")})
}

func isCachePoint(b *canonjson.Value) bool { return get(b, "cachePoint") != nil }

// converseContent takes the marks and the opaque echoes off the blocks of a content.
func converseContent(content *canonjson.Value, ids *pairs) {
	dropElems(content, isCachePoint)
	each(content, func(b *canonjson.Value) {
		at(b, "toolUse", func(use *canonjson.Value) { ids.number(use, "toolUseId") })
		at(b, "toolResult", func(result *canonjson.Value) { ids.number(result, "toolUseId") })
		at(b, "reasoningContent", func(r *canonjson.Value) {
			drop(r, "redactedContent")
			at(r, "reasoningText", func(t *canonjson.Value) { drop(t, "signature") })
		})
	})
}

// readInvoke takes the body of a model's own protocol apart: the path says no more than the model's name.
func readInvoke(body *canonjson.Value, k *keys) (call, bool) {
	switch {
	case list(body, "messages") == nil:
		c := call{}
		if c.surface, c.params = k.split(body); len(c.surface) == 0 {
			c.surface, c.params = c.params, nil
		}
		return c, true
	case get(body, "anthropic_version") != nil:
		return readVertexMessages(body, anthropicKeys)
	case get(body, "inferenceConfig") != nil, get(body, "toolConfig") != nil, get(body, "schemaVersion") != nil:
		return readConverse(body, converseKeys)
	}
	return readChat(body, chatKeys)
}

// invokeEvent returns what the bytes of an event of an invoke stream hold; of anything else the text itself.
func invokeEvent(text []byte) []byte {
	var event struct {
		Bytes []byte `json:"bytes"` // base64
	}
	if bytes.Contains(text, []byte(`"bytes"`)) && json.Unmarshal(text, &event) == nil && len(event.Bytes) > 0 {
		return event.Bytes
	}
	return text
}

var bedrockProvider = provider{
	fail: wordedError(map[int]string{http.StatusUnauthorized: "AccessDeniedException", http.StatusTooManyRequests: "ThrottlingException"},
		"InternalServerException", "ValidationException", func(_ int, word string, message []byte) []byte {
			return fmt.Appendf(nil, `{"__type":%q,"message":%s}`, word, message)
		}),
	header: func(h http.Header, ids *IDs) { h.Set("X-Amzn-Requestid", ids.Fresh("", Hexits, 32)) },
}

// converseProtocol is Bedrock's Converse, whose blocks are told by their key.
var converseProtocol = &protocol{
	name: "bedrock-converse", messages: "messages",
	event: converseEvent, unpack: unnamed,
	whole: converseWhole, stream: converseStream, framing: &eventStreams,
	putSystem: func(body *canonjson.Value, s string) { put(body, "system", converseText(s)) },
}

// converseText is the list of blocks that a text is.
func converseText(s string) canonjson.Value {
	return array(object(field("text", text(s))))
}

// The protocols of models behind Bedrock's InvokeModel, whose streams wrap their events.
var (
	invokeAnthropic = invoked(*anthropicProtocol, anthropicWhole, invokeStream)
	invokeChat      = invoked(*chatProtocol, nil, nil)
	invokePrompt    = invoked(protocol{messages: "prompt", event: invokedEvent}, nil, nil)
	invokeTitan     = invoked(protocol{messages: "inputText", event: invokedEvent}, nil, nil)
)

func invoked(p protocol, whole func(*Reply) wireObject, stream func(*Reply, func(string, wireObject))) *protocol {
	p.unpack, p.whole, p.stream, p.framing = invokeEvent, whole, stream, &eventStreams
	return &p
}

// bedrockProtocol returns how a call of Bedrock is written.
func bedrockProtocol(call *tape.LLMCall, request []byte) *protocol {
	switch call.Endpoint {
	case "converse", "converse-stream":
		return converseProtocol
	case "invoke", "invoke-with-response-stream":
	default:
		return nil
	}
	has := make(map[string]bool)
	members(request, func(key, _ []byte) { has[string(key)] = true })
	switch {
	case has["messages"] && has["anthropic_version"]:
		return invokeAnthropic
	case has["messages"] && (has["inferenceConfig"] || has["toolConfig"] || has["schemaVersion"]):
		return converseProtocol
	case has["messages"]:
		return invokeChat
	case has["prompt"]:
		return invokePrompt
	case has["inputText"]:
		return invokeTitan
	}
	return nil
}

// converseEvent reads a whole answer, or one event of a stream, which is told by its keys.
func converseEvent(a *answering, e *event) {
	message := nodeOf(objectAt(e.Output, "message"))
	for _, part := range elements(message.Content) {
		a.put(partOf(part))
	}
	if b := partOf(e.Begun); b.kind == callKind {
		b.key = e.Index
		a.put(b)
	}
	if b := partOf(e.Delta); b.kind != otherKind {
		b.raw = nil // of a thought, which comes in pieces
		a.join(e.Index, b)
	}
	a.stop(e.Stop)
}

// unnamed returns an event of Converse that stands under its name, as the models behind InvokeModel send them.
func unnamed(text []byte) []byte {
	var e struct {
		Named []byte `json:"contentBlockStart|contentBlockDelta|messageStop"`
	}
	text = invokeEvent(text)
	fill(text, &e)
	return latest(text, e.Named)
}

// invokedEvent reads an answer of a model that is given a prompt alone: Llama, Titan, Mistral.
func invokedEvent(a *answering, e *event) {
	a.say(textKind, textIn(e.Text))
	for _, result := range append(elements(e.Choices), elements(e.Output)...) {
		a.read(invokedEvent, result)
	}
	a.stop(e.Stop)
}

// converseWhole is https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
func converseWhole(r *Reply) wireObject {
	content := []wireObject{}
	if r.Text != "" {
		content = append(content, wireObject{"text": r.Text})
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		use := converseUse(r, c)
		use["input"] = c.Arguments
		content = append(content, wireObject{"toolUse": use})
	}
	out := converseMetadata(r)
	out["output"] = wireObject{"message": wireObject{"role": "assistant", "content": content}}
	out["stopReason"] = r.stop()
	return out
}

func converseUse(r *Reply, c *CompletionCall) wireObject {
	return wireObject{"toolUseId": r.callID(c, "tooluse_", 22), "name": c.Name}
}

func converseMetadata(r *Reply) wireObject {
	return wireObject{
		"usage": wireObject{
			"inputTokens": r.InputTokens, "outputTokens": r.OutputTokens, "totalTokens": r.InputTokens + r.OutputTokens,
		},
		"metrics": wireObject{"latencyMs": 551},
	}
}

func converseStream(r *Reply, emit func(string, wireObject)) {
	send := func(event string, o wireObject) {
		o["p"] = padding(r)
		emit(event, o)
	}
	send("messageStart", wireObject{"role": "assistant"})
	index := 0
	block := func(pieces iter.Seq[string], delta func(string) wireObject) {
		for piece := range pieces {
			send("contentBlockDelta", wireObject{"contentBlockIndex": index, "delta": delta(piece)})
		}
		send("contentBlockStop", wireObject{"contentBlockIndex": index})
		index++
	}
	if r.Text != "" {
		block(r.textPieces(), func(piece string) wireObject { return wireObject{"text": piece} })
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		send("contentBlockStart", wireObject{"contentBlockIndex": index, "start": wireObject{"toolUse": converseUse(r, c)}})
		block(slices.Values(r.pieces(c.text())), func(piece string) wireObject { return wireObject{"toolUse": wireObject{"input": piece}} })
	}
	send("messageStop", wireObject{"stopReason": r.stop()})
	send("metadata", converseMetadata(r))
}

// padding is what Bedrock adds to every event, so that its length tells nothing.
func padding(r *Reply) string {
	return strings.Repeat("abcdefghijklmnopqrstuvwxyz", 2)[:1+r.OutputTokens%40]
}

// invokeStream wraps the events of Anthropic's.
func invokeStream(r *Reply, emit func(string, wireObject)) {
	anthropicStream(r, func(_ string, event wireObject) {
		emit("chunk", wireObject{"bytes": marshal(event), "p": padding(r)})
	})
}
