package llm

import (
	"net/http"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Gemini is the Gemini API, of Google AI and of Vertex AI: POST …/models/M:generateContent and :streamGenerateContent.
//
//	surface: contents, systemInstruction, tools, toolConfig, cachedContent, generationConfig.thinkingConfig
//	ignored: labels
//
// Keys in snake case, which the API takes too, are read as those in camel case.
type Gemini struct{}

var geminiKeys = keys{
	surface: []string{"systemInstruction", "tools", "toolConfig", "cachedContent", "thinkingConfig"},
	ignored: []string{"labels"},
}

var geminiCamel = map[string]string{
	"system_instruction": "systemInstruction",
	"tool_config":        "toolConfig",
	"cached_content":     "cachedContent",
	"generation_config":  "generationConfig",
	"safety_settings":    "safetySettings",
}

// Name implements Provider.
func (Gemini) Name() string { return "gemini" }

// Endpoint implements Provider: "generateContent" or "streamGenerateContent", and the model of the path.
func (Gemini) Endpoint(path string) (endpoint, model string, ok bool) {
	dir, last := cutLast(path, "/")
	model, endpoint, ok = strings.Cut(last, ":")
	if !ok || model == "" || endpoint != "generateContent" && endpoint != "streamGenerateContent" {
		return "", "", false
	}
	_, collection := cutLast(dir, "/")
	switch collection {
	case "models":
		return endpoint, model, true
	case "tunedModels", "endpoints":
		return endpoint, collection + "/" + model, true
	}
	return "", "", false
}

// cutLast cuts s at its last sep; before is "" where there is none.
func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return "", s
}

// Read implements Provider. A body without contents is not of its shape.
func (Gemini) Read(body canonjson.Value) (Call, bool) {
	body = geminiTop(body)
	contents, ok := list(body, "contents")
	if !ok {
		return Call{}, false
	}
	contents = each(contents, geminiContent)
	c := Call{
		Messages:  canonjson.Member{Key: "contents", Value: contents},
		SystemKey: "systemInstruction",
		User:      firstRole(contents, "user", ""),
	}
	c.Surface, c.Params = geminiKeys.split(body, "contents", "model")
	return c, true
}

// geminiTop brings the keys of a body into one spelling, and thinkingConfig to the top.
func geminiTop(body canonjson.Value) canonjson.Value {
	top := object()
	for _, m := range body.Members {
		if camel, ok := geminiCamel[m.Key]; ok {
			m.Key = camel
		}
		if m.Key == "generationConfig" {
			for _, key := range []string{"thinkingConfig", "thinking_config"} {
				if thinking, ok := m.Value.Get(key); ok {
					top.Members = append(top.Members, canonjson.Member{Key: "thinkingConfig", Value: thinking})
				}
			}
			m.Value = without(m.Value, "thinkingConfig", "thinking_config")
		}
		top.Members = append(top.Members, m)
	}
	return top
}

// geminiContent takes signatures of thoughts and the ids of function calls off the parts of a content: some clients make
// the ids up, and name and order pair calls with results.
func geminiContent(content canonjson.Value) canonjson.Value {
	unnamed := func(call canonjson.Value) canonjson.Value { return without(call, "id") }
	return with(content, "parts", func(parts canonjson.Value) canonjson.Value {
		return each(parts, func(part canonjson.Value) canonjson.Value {
			part = without(part, "thoughtSignature", "thought_signature")
			for _, key := range []string{"functionCall", "function_call", "functionResponse", "function_response"} {
				part = with(part, key, unnamed)
			}
			return part
		})
	})
}

// Usage implements Provider. Each chunk of a stream, be it events or a JSON array, counts up to itself: the last one
// stands.
func (Gemini) Usage(answer []byte) []byte { return lastObject(answer, "usageMetadata") }

// ErrorBody implements Provider.
func (Gemini) ErrorBody(status int, message string) []byte {
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
