package llm

import (
	"fmt"
	"net/http"
)

// OpenAI: Chat Completions, Responses and their siblings, which most other servers speak too, and Azure.
const openAI = "openai"

// openAIIgnored are the keys that never change an answer, of OpenAI and of the servers and gateways that speak its
// protocols.
var openAIIgnored = []exempt{
	{"client_metadata", "Codex names its session and turn in it"},
	{"metadata", "labels for the caller's own books"},
	{"prompt_cache_key", "which cache a prefix is looked up in; agents put their session's id there"},
	{"prompt_cache_retention", "how long a prefix stays cached"},
	{"safety_identifier", "names the end user"},
	{"store", "whether the provider keeps the answer"},
	{"user", "names the end user"},
	{"session_id", "OpenRouter: groups requests for tracing"},
	{"trace", "OpenRouter: names of traces and spans"},
	{"litellm_session_id", "LiteLLM: groups requests in its log"},
	{"litellm_trace_id", "LiteLLM: groups requests in its log"},
	{"litellm_metadata", "LiteLLM: labels in its log"},
	{"request_id", "vLLM and Z.ai: the caller's name of the request"},
	{"user_id", "DeepSeek and Z.ai: names the end user"},
	{"cache_salt", "vLLM: keeps callers' caches apart"},
}

// azureAny begins the paths of Azure OpenAI that name the deployment, which stands for the model.
const azureAny = "*/deployments/{model}"

var openAIEndpoints = []endpoint{
	{name: "chat.completions", keys: chatKeys, read: readChat, talk: chatProtocol,
		paths: paths(azureAny+"/chat/completions", azureAny+"/extensions/chat/completions", "*/chat/completions",
			"*/publishers/mistralai/models/{model}:rawPredict", "*/publishers/mistralai/models/{model}:streamRawPredict")},
	{name: "responses", paths: paths("*/responses"), keys: responsesKeys, read: readResponses, talk: responsesProtocol},
	{name: responsesWarmUp, paths: paths("*/responses"), turns: newResponsesTurns, keys: responsesWarmUpKeys, read: readWarmUp},
	{name: "responses.ws", paths: paths("*/responses"), turns: newResponsesTurns,
		keys: responsesSocketKeys, read: readResponsesSocket, talk: responsesProtocol},
	{name: "realtime", paths: paths("*/realtime"), turns: newRealtimeTurns,
		keys: realtimeKeys, read: readResponses, talk: realtimeProtocol},
	{name: "responses.compact", paths: paths("*/responses/compact"), keys: responsesKeys, read: readResponses, talk: responsesProtocol},
	{name: "responses.input_tokens", paths: paths("*/responses/input_tokens"), plain: countsTokens,
		keys: responsesKeys, read: readResponses},
	{name: "completions",
		paths: paths(azureAny+"/completions", "*/engines/{model}/completions", "*/completions"),
		keys:  completionKeys, read: single("prompt"), talk: prompted(chatProtocol)},
	{name: "embeddings", paths: paths(azureAny+"/embeddings", "*/embeddings"), keys: embeddingKeys, read: single("input")},
	{name: "images.generations",
		paths: paths(azureAny+"/images/generations", "*/images/generations"),
		keys:  imageKeys, read: single("prompt")},
	{name: "images.edits",
		paths: paths(azureAny+"/images/edits", "*/images/edits"),
		keys:  imageKeys, read: single("prompt"), form: formCall},
	{name: "audio.speech", paths: paths(azureAny+"/audio/speech", "*/audio/speech"), keys: speechKeys, read: single("model", "input")},
	{name: "audio.transcriptions",
		paths: paths(azureAny+"/audio/transcriptions", "*/audio/transcriptions"),
		keys:  audioKeys, form: formCall},
	{name: "audio.translations", paths: paths(azureAny+"/audio/translations", "*/audio/translations"), keys: audioKeys, form: formCall},
}

// The endpoints without messages.
var (
	completionKeys = &keys{surface: []string{"prompt", "suffix"}, ignored: openAIIgnored}
	embeddingKeys  = &keys{surface: []string{"input"}, ignored: openAIIgnored}
	imageKeys      = &keys{
		surface: []string{"prompt", "image", "image[]", "images", "mask"}, ignored: openAIIgnored, omitted: formOmitted,
	}
	speechKeys = &keys{surface: []string{"input", "instructions"}, ignored: openAIIgnored}
	audioKeys  = &keys{surface: []string{"file", "prompt"}, ignored: openAIIgnored, omitted: formOmitted}
)

var formOmitted = []exempt{
	{"the boundary of a multipart body", "made up for each request; parts count by name, file name, type and content"},
}

// openAIError is the error object of the APIs.
func openAIError(status int, message string) []byte {
	kind, code := "invalid_request_error", "null"
	switch {
	case status == http.StatusUnauthorized:
		code = `"invalid_api_key"`
	case status == http.StatusTooManyRequests:
		kind, code = "requests", `"rate_limit_exceeded"`
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%q,"param":null,"code":%s}}`, jsonText(message), kind, code)
}

func openAIHeader(h http.Header, ids *IDs) {
	h.Set("X-Request-Id", ids.Fresh("req_", Hexits, 32))
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Processing-Ms", "42")
}
