package llm

import (
	"net/http"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Gemini: the Gemini API of Google AI, Vertex AI and Code Assist, which Gemini CLI uses after a login.
const gemini = "gemini"

var geminiIgnored = []exempt{{"labels", "for the caller's bill"}}

var geminiKeys = &keys{
	messages: "contents",
	surface:  []string{"systemInstruction", "tools", "toolConfig", "cachedContent", "thinkingConfig"},
	ignored:  geminiIgnored,
	omitted: []exempt{
		{"thoughtSignature of parts", "an opaque echo of the provider"},
		{"id of functionCall and functionResponse", "some clients make the ids up; name and order pair calls with results"},
		{"generationConfig.thinkingConfig", "stands in the surface as thinkingConfig"},
		{"keys in snake case", "read as those in camel case, which they stand for"},
	},
}

var codeAssistKeys = &keys{
	messages: "contents",
	surface:  geminiKeys.surface,
	ignored: ignoring(geminiIgnored,
		exempt{"user_prompt_id", "Gemini CLI counts its prompts in it, behind its session's id"},
		exempt{"session_id", "of request: names the session"},
		exempt{"project", "names who pays"},
	),
	omitted: append([]exempt{{"request", "its members count as those of the body"}}, geminiKeys.omitted...),
}

var (
	geminiEmbedKeys = &keys{surface: []string{"content", "requests"}}
	vertexKeys      = &keys{surface: []string{"instances"}, ignored: geminiIgnored}
	countTokensKeys = &keys{
		messages: "contents",
		surface:  append([]string{"generateContentRequest"}, geminiKeys.surface...),
		ignored:  geminiIgnored,
		omitted:  append([]exempt{{"generateContentRequest", "read as the body of generateContent is"}}, geminiKeys.omitted...),
	}
)

// geminiPaths are the places of a method.
func geminiPaths(method string) []pattern {
	return paths("*/models/{model}:"+method, "*/{tunedModels/model}:"+method, "*/{endpoints/model}:"+method)
}

var geminiEndpoints = []endpoint{
	{provider: gemini, name: "generateContent", paths: geminiPaths("generateContent"),
		keys: geminiKeys, read: readGemini, usage: geminiUsage, fail: geminiError},
	{provider: gemini, name: "streamGenerateContent", paths: geminiPaths("streamGenerateContent"),
		keys: geminiKeys, read: readGemini, usage: geminiUsage, fail: geminiError},
	{provider: gemini, name: "generateContent", paths: paths("*/v1internal:generateContent"),
		keys: codeAssistKeys, read: readCodeAssist, usage: geminiUsage, fail: geminiError},
	{provider: gemini, name: "streamGenerateContent", paths: paths("*/v1internal:streamGenerateContent"),
		keys: codeAssistKeys, read: readCodeAssist, usage: geminiUsage, fail: geminiError},
	{provider: gemini, name: "BidiGenerateContent", turns: newLiveTurns,
		paths: paths("*GenerativeService.BidiGenerateContent", "*GenerativeService.BidiGenerateContentConstrained",
			"*LlmBidiService/BidiGenerateContent"),
		keys: liveKeys, read: readLive, usage: geminiUsage, fail: geminiError},
	{provider: gemini, name: "embedContent", paths: geminiPaths("embedContent"),
		keys: geminiEmbedKeys, read: single("content"), usage: geminiUsage, fail: geminiError},
	{provider: gemini, name: "batchEmbedContents", paths: geminiPaths("batchEmbedContents"),
		keys: geminiEmbedKeys, read: single("requests"), usage: geminiUsage, fail: geminiError},
	{provider: gemini, name: "predict", paths: paths("*/publishers/google/models/{model}:predict"),
		keys: vertexKeys, read: single("instances"), usage: geminiUsage, fail: geminiError},
	{provider: gemini, name: "countTokens", paths: geminiPaths("countTokens"), plain: countsTokens,
		keys: countTokensKeys, read: readCountTokens, fail: geminiError},
	{provider: gemini, name: "countTokens", paths: paths("*/v1internal:countTokens"), plain: countsTokens,
		keys: codeAssistKeys, read: readCodeAssist, fail: geminiError},
}

var geminiCamel = map[string]string{
	"system_instruction": "systemInstruction",
	"tool_config":        "toolConfig",
	"cached_content":     "cachedContent",
	"generation_config":  "generationConfig",
	"safety_settings":    "safetySettings",
}

// readGemini takes a body apart that has contents.
func readGemini(body *canonjson.Value, k *keys) (call, bool) {
	contents := list(body, "contents")
	if contents == nil {
		return call{}, false
	}
	rename(body, geminiCamel)
	each(contents, geminiContent)
	c := call{
		model:     member(body, "model"),
		messages:  canonjson.Member{Key: "contents", Value: *contents},
		systemKey: "systemInstruction",
		user:      firstRole(contents, "user", ""),
	}
	hoistThinking(body)
	c.surface, c.params = k.split(body, "contents", "model")
	return c, true
}

// readCodeAssist takes a body apart whose request is that of the Gemini API.
func readCodeAssist(body *canonjson.Value, k *keys) (call, bool) {
	request := get(body, "request")
	if request == nil || request.Kind != canonjson.Object {
		return call{}, false
	}
	flat := object(request.Members...)
	for _, m := range body.Members {
		switch {
		case m.Key == "request":
		case get(&flat, m.Key) != nil: // which of the two counts is not known
			return call{}, false
		default:
			flat.Members = append(flat.Members, m)
		}
	}
	return readGemini(&flat, k)
}

// readCountTokens takes a body apart that has contents or a whole request.
func readCountTokens(body *canonjson.Value, k *keys) (call, bool) {
	if inner := get(body, "generateContentRequest"); inner != nil {
		c, ok := readGemini(inner, geminiKeys)
		if ok {
			*inner = c.whole()
		}
		whole := call{}
		whole.surface, whole.params = k.split(body)
		return whole, ok
	}
	return readGemini(body, k)
}

// hoistThinking brings thinkingConfig from generationConfig to the top.
func hoistThinking(body *canonjson.Value) {
	config := get(body, "generationConfig")
	if config == nil {
		return
	}
	rename(config, map[string]string{"thinking_config": "thinkingConfig"})
	thinking := get(config, "thinkingConfig")
	if thinking == nil || get(body, "thinkingConfig") != nil {
		return
	}
	hoisted := canonjson.Member{Key: "thinkingConfig", Value: *thinking}
	drop(config, "thinkingConfig")
	body.Members = append(body.Members, hoisted)
}

// geminiContent takes signatures of thoughts and the ids of function calls off the parts of a content.
func geminiContent(content *canonjson.Value) {
	at(content, "parts", func(parts *canonjson.Value) {
		each(parts, func(part *canonjson.Value) {
			drop(part, "thoughtSignature", "thought_signature")
			for _, key := range [...]string{"functionCall", "function_call", "functionResponse", "function_response"} {
				at(part, key, func(call *canonjson.Value) { drop(call, "id") })
			}
		})
	})
}

// geminiUsage finds the usage of an answer. Each chunk of a stream, be it events or a JSON array, counts up to itself: the
// last one stands. Code Assist wraps each in a response.
func geminiUsage(answer []byte) []byte {
	return lastObject(answer, []string{"usageMetadata"}, []string{"response", "usageMetadata"})
}

// geminiError is the API's error object.
func geminiError(status int, message string) []byte {
	type detail struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	}
	return marshal(struct {
		Error detail `json:"error"`
	}{detail{status, message, geminiStatus(status)}})
}

// geminiStatus is the name of the RPC code that the API gives with an HTTP status.
func geminiStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	}
	if status >= http.StatusInternalServerError {
		return "INTERNAL"
	}
	return "FAILED_PRECONDITION"
}
