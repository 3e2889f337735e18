package llm

import (
	"encoding/json"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
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

// geminiProtocol is the Gemini API, and Code Assist, which wraps its requests and its answers. Keys stand in camel case or in
// snake case.
var geminiProtocol = &protocol{
	name: "gemini", messages: "contents", wrapped: "request",
	top: geminiTop, message: geminiHeard, event: geminiEvent,
}

func geminiTop(h *hearing, s *jsonscan.Scanner, key string) bool {
	switch key {
	case "systemInstruction", "system_instruction":
		var parts []byte
		read(s, "parts", &parts)
		h.top.system = textsIn(parts)
	case "tools":
		readList(s, func() {
			var functions []byte
			read(s, "functionDeclarations", &functions, "function_declarations", &functions)
			h.top.tools = h.top.tools || !isEmpty(functions)
		})
	default:
		return false
	}
	return true
}

// A geminiPart is one part of a content.
type geminiPart struct {
	text                 []byte
	thought              bool
	sign, call, response []byte
}

func readGeminiPart(raw []byte) (p geminiPart) {
	readIn(raw, "text", &p.text, "thought", &p.thought, "thoughtSignature", &p.sign, "thought_signature", &p.sign,
		"functionCall", &p.call, "function_call", &p.call, "functionResponse", &p.response, "function_response", &p.response)
	return p
}

// A geminiFunction is a call or a response.
type geminiFunction struct {
	id, name       string
	args, response []byte
}

func readGeminiFunction(raw []byte) (f geminiFunction) {
	readIn(raw, "id", &f.id, "name", &f.name, "args", &f.args, "response", &f.response)
	return f
}

func geminiHeard(h *hearing, s *jsonscan.Scanner) {
	elementsOf(h.beginAs(s, "parts"), func(raw []byte) {
		p := readGeminiPart(raw)
		switch {
		case p.call != nil:
			f := readGeminiFunction(p.call)
			h.call(sessionlog.ToolCall{ID: f.id, Name: f.name, Arguments: objectArguments(f.args)})
		case p.response != nil:
			f := readGeminiFunction(p.response)
			output, failed := geminiOutput(f.response)
			h.result(sessionlog.ToolResult{CallID: f.id, Output: output, IsError: failed}, f.name)
		case p.thought:
		case isText(p.text):
			h.text(textIn(p.text))
		default:
			h.attach(raw)
		}
	})
}

// geminiOutput returns what a response holds: the value of its one key where that is output or error, which the reference
// gives a meaning, else all of it.
func geminiOutput(response []byte) (output json.RawMessage, failed bool) {
	if isNull(response) {
		return noText, false
	}
	n, name := 0, ""
	var only []byte
	members(response, func(key, value []byte) {
		name, only = string(key), value
		n++
	})
	if n == 1 && (name == "output" || name == "error") {
		return outputOf(only), name == "error"
	}
	return oneLine(response), false
}

// geminiEvent reads an answer, or one chunk of a stream.
func geminiEvent(a *answering, s *jsonscan.Scanner) {
	var blocked string
	var candidates, failure []byte
	read(s, "response", func() { geminiEvent(a, s) }, "responseId", &a.out.ID, "modelVersion", &a.out.Model,
		"candidates", &candidates, "promptFeedback", func() { read(s, "blockReason", &blocked) }, "error", &failure)
	a.failed = a.failed || !isNull(failure)
	elementsOf(candidates, func(raw []byte) {
		var index blockKey
		var reason string
		var content, parts []byte
		readIn(raw, "index", &index, "content", &content, "finishReason", &reason)
		if index.further() {
			return // another answer to the same
		}
		readIn(content, "parts", &parts)
		elementsOf(parts, func(part []byte) { addGeminiPart(a, part) })
		a.stop(reason)
	})
	a.stop(blocked)
}

// addGeminiPart adds a part. Texts that follow one another are one: chunks cut them anywhere.
func addGeminiPart(a *answering, raw []byte) {
	p := readGeminiPart(raw)
	if isText(p.sign) {
		a.out.Native = append(a.out.Native, append(append([]byte(`{"thoughtSignature":`), p.sign...), '}'))
	}
	switch {
	case p.call != nil:
		addGeminiCall(a, p.call)
	case isText(p.text) && p.thought:
		a.say(thoughtKind, textIn(p.text))
	case isText(p.text):
		a.say(textKind, textIn(p.text))
	default:
		a.other(raw)
	}
}

// addGeminiCall adds a call of a tool.
func addGeminiCall(a *answering, raw []byte) {
	f := readGeminiFunction(raw)
	b := a.add(callKind, "")
	b.id, b.name, b.args = f.id, f.name, objectArguments(f.args)
}
