package llm

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Bedrock: the runtime of Amazon Bedrock. Its OpenAI and Anthropic front doors are those providers' endpoints.
const bedrock = "bedrock"

var converseKeys = &keys{
	messages: "messages",
	surface:  []string{"system", "toolConfig", "promptVariables", "additionalModelRequestFields"},
	ignored:  []exempt{{"requestMetadata", "labels for the caller's own log"}},
	omitted: []exempt{
		{"cachePoint blocks of messages, system and tools", "agents move the marks at every turn"},
		{"signature of reasoningText, redactedContent of reasoningContent", "opaque echoes of the provider"},
		{"toolUseId of a tool use and of its result", "numbered by first appearance: the pairing counts, the name does not"},
	},
}

// invokeKeys are those of the families of models beside Anthropic's and those that speak messages.
var invokeKeys = &keys{
	surface: []string{
		"prompt", "inputText", "input_text", "texts", "message", "chat_history", "preamble", "images", "inputImage",
		"inputs", "instruction", "taskType", "textToImageParams",
	},
	omitted: []exempt{
		{"a body with messages and anthropic_version", "read as Anthropic's messages are, its keys ignored too"},
		{"a body with messages and inferenceConfig, toolConfig or schemaVersion", "read as that of converse is"},
		{"any other body with messages", "read as OpenAI's chat completions are"},
		{"a body with none of the keys of the surface", "all of it is surface"},
	},
}

var bedrockEndpoints = []endpoint{
	{provider: bedrock, name: "invoke", paths: paths("*/model/{model+}/invoke"),
		keys: invokeKeys, read: readInvoke, usage: bedrockUsage, fail: bedrockError},
	{provider: bedrock, name: "invoke-with-response-stream", paths: paths("*/model/{model+}/invoke-with-response-stream"),
		keys: invokeKeys, read: readInvoke, usage: bedrockUsage, fail: bedrockError},
	{provider: bedrock, name: "converse", paths: paths("*/model/{model+}/converse"),
		keys: converseKeys, read: readConverse, usage: bedrockUsage, fail: bedrockError},
	{provider: bedrock, name: "converse-stream", paths: paths("*/model/{model+}/converse-stream"),
		keys: converseKeys, read: readConverse, usage: bedrockUsage, fail: bedrockError},
	{provider: bedrock, name: "count-tokens", paths: paths("*/model/{model+}/count-tokens"), plain: countsTokens,
		keys: bedrockCountKeys, read: readBedrockCount, fail: bedrockError},
}

var bedrockCountKeys = &keys{
	surface: []string{"input"},
	omitted: []exempt{{"input.converse", "read as the body of converse is, with the same keys ignored"}},
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
	var c call
	c.surface, c.params = k.split(body)
	return c, true
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
	c := call{
		messages:  canonjson.Member{Key: "messages", Value: *messages},
		systemKey: "system",
		user:      firstRole(messages, "user"),
	}
	c.surface, c.params = k.split(body, "messages")
	return c, true
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

// invocationMetrics is the key under which the last event of an invoke stream counts tokens.
const invocationMetrics = "amazon-bedrock-invocationMetrics"

// bedrockUsage finds the usage of an answer: that of converse or of the model itself, else what Bedrock counted, else the
// counts of Llama and of Titan's embeddings.
func bedrockUsage(answer []byte) []byte {
	var start, own, metrics, counts []byte
	for text := range answers(answer) {
		event := invokeEvent(text)
		start = latest(start, objectAt(event, "message", "usage"))
		own = latest(own, objectAt(event, "usage"))
		metrics = latest(metrics, objectAt(event, invocationMetrics))
		if !bytes.Contains(event, []byte(`"results"`)) { // Titan counts what it wrote in them, one by one
			counts = latest(counts, pickNumbers(event, "prompt_token_count", "generation_token_count", "inputTextTokenCount"))
		}
	}
	switch {
	case start != nil && own != nil:
		return mergeObjects(start, own)
	case own != nil || start != nil:
		return latest(start, own)
	}
	return latest(counts, metrics)
}

// latest returns now, or was where now is nil.
func latest(was, now []byte) []byte {
	if now == nil {
		return was
	}
	return now
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

// bedrockError is the body of the service's errors; their type stands in a header.
func bedrockError(_ int, message string) []byte {
	return marshal(struct {
		Message string `json:"message"`
	}{message})
}
