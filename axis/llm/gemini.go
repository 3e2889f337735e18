package llm

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Gemini: the Gemini API of Google AI, Vertex AI and Code Assist, which Gemini CLI uses after a login.
const gemini = "gemini"

var geminiIgnored = []exempt{{"labels", "for the caller's bill"}}

var geminiKeys = &keys{
	messages: "contents",
	surface:  []string{"systemInstruction", "tools", "toolConfig", "cachedContent", "thinkingConfig"},
	ignored:  geminiIgnored,
}

var codeAssistKeys = &keys{
	messages: "contents",
	surface:  geminiKeys.surface,
	ignored: ignoring(geminiIgnored,
		exempt{"user_prompt_id", "Gemini CLI counts its prompts in it, behind its session's id"},
		exempt{"session_id", "of request: names the session"},
		exempt{"project", "names who pays"},
	),
}

var (
	geminiEmbedKeys = &keys{surface: []string{"content", "requests"}}
	vertexKeys      = &keys{surface: []string{"instances"}, ignored: geminiIgnored}
	countTokensKeys = &keys{
		messages: "contents",
		surface:  append([]string{"generateContentRequest"}, geminiKeys.surface...),
		ignored:  geminiIgnored,
	}
)

// geminiPaths are the places of a method.
func geminiPaths(method string) []pattern {
	return paths("*/models/{model}:"+method, "*/{tunedModels/model}:"+method, "*/{endpoints/model}:"+method)
}

var geminiEndpoints = []endpoint{
	{name: "generateContent", paths: geminiPaths("generateContent"), keys: geminiKeys, read: readGemini, talk: geminiProtocol},
	{name: "streamGenerateContent", paths: geminiPaths("streamGenerateContent"), keys: geminiKeys, read: readGemini, talk: geminiProtocol},
	{name: "generateContent", paths: paths("*/v1internal:generateContent"),
		keys: codeAssistKeys, read: readCodeAssist, talk: geminiProtocol},
	{name: "streamGenerateContent", paths: paths("*/v1internal:streamGenerateContent"),
		keys: codeAssistKeys, read: readCodeAssist, talk: geminiProtocol},
	{name: "BidiGenerateContent", turns: newLiveTurns,
		paths: paths("*GenerativeService.BidiGenerateContent", "*GenerativeService.BidiGenerateContentConstrained",
			"*LlmBidiService/BidiGenerateContent"),
		keys: liveKeys, read: readLive, talk: liveProtocol},
	{name: "embedContent", paths: geminiPaths("embedContent"), keys: geminiEmbedKeys, read: single("content")},
	{name: "batchEmbedContents", paths: geminiPaths("batchEmbedContents"), keys: geminiEmbedKeys, read: single("requests")},
	{name: "predict", paths: paths("*/publishers/google/models/{model}:predict"), keys: vertexKeys, read: single("instances")},
	{name: "countTokens", paths: geminiPaths("countTokens"), plain: countsTokens, keys: countTokensKeys, read: readCountTokens},
	{name: "countTokens", paths: paths("*/v1internal:countTokens"), plain: countsTokens, keys: codeAssistKeys, read: readCodeAssist},
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
	messages := *contents
	hoistThinking(body) // which may move them
	return k.take(body, &messages, call{systemKey: "systemInstruction", user: firstRole(&messages, "user", "")})
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
		whole, _ := k.take(body, nil, call{})
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
	hoisted := field("thinkingConfig", *thinking)
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

// geminiProvider has the names of the RPC codes that the API gives with an HTTP status.
var geminiProvider = provider{
	fail: wordedError(map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
	}, "INTERNAL", "FAILED_PRECONDITION", func(status int, word string, message []byte) []byte {
		return fmt.Appendf(nil, `{"error":{"code":%d,"message":%s,"status":%q}}`, status, message, word)
	}),
	header: func(h http.Header, _ *IDs) {
		h.Set("Server", "scaffolding on HTTPServer2")
		h["Vary"] = append(h["Vary"], "Origin", "X-Origin", "Referer")
	},
}

// geminiProtocol is the Gemini API, and Code Assist, which wraps its requests and its answers. Keys stand in camel case or in
// snake case.
var geminiProtocol = &protocol{
	name: "gemini", messages: "contents", wrapped: "request",
	event: geminiEvent,
	whole: geminiWhole, stream: geminiStream, framing: &crlfEvents,
	putSystem: putSystemInstruction,
}

func putSystemInstruction(body *canonjson.Value, s string) {
	key := "systemInstruction"
	if get(body, "system_instruction") != nil {
		key = "system_instruction"
	}
	put(body, key, object(field("parts", converseText(s))))
}

// geminiEvent reads an answer, or one chunk of a stream.
func geminiEvent(a *answering, e *event) {
	if isObject(e.Response) { // Code Assist's
		a.read(geminiEvent, e.Response)
	}
	for _, raw := range elements(e.Choices) {
		c := eventOf(raw)
		if c.Index.further() {
			continue // another answer to the same
		}
		content := nodeOf(c.Content)
		for _, part := range elements(content.Content) {
			geminiPiece(a, part)
		}
		a.stop(c.Stop)
	}
	feedback := eventOf(e.Feedback)
	a.stop(feedback.Stop)
}

// geminiPiece adds a part. Texts that follow one another are one: chunks cut them anywhere.
func geminiPiece(a *answering, raw []byte) {
	n := nodeOf(raw)
	if isText(n.Signature) {
		a.out.Native = append(a.out.Native, append(append([]byte(`{"thoughtSignature":`), n.Signature...), '}'))
	}
	switch b := n.block(); b.kind {
	case thoughtKind, textKind:
		a.say(b.kind, string(b.text))
	case callKind:
		a.put(b)
	default:
		a.put(&block{kind: otherKind, raw: raw})
	}
}

var geminiAccess = Access{
	Provider: gemini, Endpoint: "generateContent",
	KeyName: "GEMINI_API_KEY", BaseName: "GEMINI_BASE_URL", Base: "https://generativelanguage.googleapis.com",
	path:      func(model string) string { return "/v1beta/models/" + url.PathEscape(model) + ":generateContent" },
	authorize: func(h http.Header, key string) { setKey(h, "X-Goog-Api-Key", "", key) },
	write:     writeGemini,
}

// writeGemini writes a request.
func writeGemini(q *Asking) (wireObject, error) {
	if err := q.laterSystem("Gemini"); err != nil {
		return nil, err
	}
	budget, err := q.budget()
	if err != nil {
		return nil, err
	}
	body := wireObject{"contents": geminiContents(q.Turns)}
	if q.System.Kind == canonjson.Array {
		body["systemInstruction"] = wireObject{"parts": geminiParts(q.System.Elems)}
	} else if q.System.Kind != canonjson.Null {
		body["systemInstruction"] = wireObject{"parts": geminiParts([]canonjson.Value{q.System})}
	}
	if tools := geminiTools(q.Tools.Elems); len(tools) > 0 {
		body["tools"] = tools
	}
	var calling any
	name, named := q.Choice.Get("name")
	switch {
	case named:
		calling = wireObject{"mode": "ANY", "allowedFunctionNames": []string{name.Str}}
	case q.Choice.Kind == canonjson.String:
		calling = wireObject{"mode": strings.ToUpper(q.Choice.Str)}
	case q.Choice.Kind != canonjson.Null:
		calling = raw(q.Choice)
	}
	if calling != nil {
		body["toolConfig"] = wireObject{"functionCallingConfig": calling}
	}
	if budget > 0 {
		body["generationConfig"] = wireObject{"thinkingConfig": wireObject{"thinkingBudget": budget}}
	}
	return body, nil
}

// geminiParts returns parts, texts and others.
func geminiParts(parts []canonjson.Value) []any {
	out := []any{}
	for i := range parts {
		if parts[i].Kind == canonjson.String {
			out = append(out, wireObject{"text": parts[i].Str})
		} else {
			out = append(out, raw(parts[i]))
		}
	}
	return out
}

func geminiContents(turns []Turn) []wireObject {
	j, ids := joining{key: "parts"}, newCallNumbers()
	names := make(map[string]string) // of the tools, by the numbers of their calls
	for i := range turns {
		m := &turns[i]
		if m.Role == RoleTool {
			key := "output"
			if m.Failed {
				key = "error"
			}
			j.add(RoleUser, []any{wireObject{"functionResponse": wireObject{
				"name": names[ids.result(m.Of)], "response": wireObject{key: raw(contentValue(m.Parts))},
			}}}, m.Extra)
			continue
		}
		parts := geminiParts(m.Parts)
		for _, c := range m.Calls {
			names[ids.call(c.ID)] = c.Name
			parts = append(parts, wireObject{"functionCall": wireObject{"name": c.Name, "args": raw(c.Arguments)}})
		}
		role := RoleUser
		if m.Role == RoleAssistant {
			role = "model"
		}
		j.add(role, parts, m.Extra)
	}
	return j.list
}

// geminiTools returns the tools: the program's in one element, the provider's own each as it stands.
func geminiTools(tools []canonjson.Value) []any {
	var own []any
	var declared []wireObject
	for i := range tools {
		v := &tools[i]
		if name := get(v, "name"); name == nil || name.Kind != canonjson.String {
			own = append(own, raw(*v))
			continue
		}
		function := wireObject{}
		for _, m := range v.Members {
			switch m.Key {
			case "input_schema":
				function["parametersJsonSchema"] = raw(m.Value)
			case "name", "description":
				function[m.Key] = raw(m.Value)
			}
		}
		declared = append(declared, function)
	}
	if declared != nil {
		own = append([]any{wireObject{"functionDeclarations": declared}}, own...)
	}
	return own
}

// A geminiOut is a part of an answer, and which pieces of the text it is: those that are empty make no part of their own.
type geminiOut struct {
	part   wireObject
	pieces []int
}

// geminiOuts are the thoughts, the texts, and then the calls, each one part.
func geminiOuts(r *Reply, thoughts, texts []string) (out []geminiOut) {
	for _, thought := range thoughts {
		if thought != "" {
			out = append(out, geminiOut{part: wireObject{"text": thought, "thought": true}})
		}
	}
	var pieces []int
	for i, text := range texts {
		if pieces = append(pieces, i); text != "" {
			out = append(out, geminiOut{wireObject{"text": text}, pieces})
			pieces = nil
		}
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		out = append(out, geminiOut{wireObject{"functionCall": wireObject{
			"id": r.callID(c, "", 16), "name": c.Name, "args": c.Arguments,
		}}, pieces})
		pieces = nil
	}
	return out
}

// geminiWhole is https://ai.google.dev/api/generate-content.
func geminiWhole(r *Reply) wireObject {
	id, parts := r.IDs.Fresh("", Base62, 22), []wireObject{}
	for _, p := range geminiOuts(r, []string{r.Thought}, []string{r.Text}) {
		parts = append(parts, p.part)
	}
	return geminiChunk(r, id, parts, true)
}

// geminiChunk is one GenerateContentResponse. The last one has the reason why the model stopped, STOP after a call as well.
func geminiChunk(r *Reply, id string, parts []wireObject, last bool) wireObject {
	candidate := wireObject{"index": 0, "content": wireObject{"role": "model", "parts": parts}}
	usage := wireObject{
		"promptTokenCount": r.InputTokens, "totalTokenCount": r.InputTokens,
		"promptTokensDetails": []wireObject{{"modality": "TEXT", "tokenCount": r.InputTokens}},
	}
	if last {
		candidate["finishReason"] = r.stopIn("STOP", "STOP", "MAX_TOKENS")
		usage["candidatesTokenCount"], usage["totalTokenCount"] = r.OutputTokens, r.InputTokens+r.OutputTokens
	}
	return wireObject{"candidates": []wireObject{candidate}, "usageMetadata": usage, "modelVersion": r.Model, "responseId": id}
}

// geminiStream sends a part a chunk: a call is never cut into pieces.
func geminiStream(r *Reply, emit func(string, wireObject)) {
	id := r.IDs.Fresh("", Base62, 22)
	parts := geminiOuts(r, r.pieces(r.Thought), r.texts())
	if len(parts) == 0 {
		parts = []geminiOut{{part: wireObject{"text": ""}}}
	}
	for i, p := range parts {
		for _, n := range p.pieces {
			r.tell(n)
		}
		emit("", geminiChunk(r, id, []wireObject{p.part}, i == len(parts)-1))
	}
}
