package scriptedllm

import (
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// routes registers every endpoint of every provider. Their hosts differ and their paths do not collide, but for the lists
// of models and the files, which Anthropic and OpenAI keep under the same names.
func (e *Endpoint) routes() {
	handle := e.mux.HandleFunc
	handle("POST /v1/messages", e.converse(anthropic{}))
	handle("POST /v1/messages/count_tokens", e.serve(only(anthropic{}, anthropicCount)))

	handle("POST /v1/chat/completions", e.converse(chat{}))
	handle("POST /v1/responses", e.converse(responses{}))
	handle("GET /v1/responses", e.talk(openai{}, websocket.MessageText, newResponsesSocket))
	handle("GET /v1/realtime", e.talk(openai{}, websocket.MessageText, newRealtimeSocket))
	handle("POST /v1/responses/input_tokens", e.serve(only(openai{}, responsesCount)))
	handle("POST /v1/embeddings", e.serve(only(openai{}, openaiEmbed)))

	handle("GET /v1/models", e.serve(eitherOf(anthropicModels, openaiModels)))
	handle("POST /v1/files", e.serve(eitherOf(e.anthropicFile, e.openaiFile)))

	handle("POST /v1beta/models/{call}", e.gemini)
	handle("GET /ws/{service}", e.live)
	handle("GET /v1beta/models", e.serve(only(gemini{}, geminiModels)))
	handle("POST /upload/v1beta/files", e.geminiUpload)

	handle("POST /api/chat", e.converse(ollama{}))
	handle("POST /api/embed", e.serve(only(ollama{}, ollamaEmbed)))
	handle("GET /api/tags", e.serve(only(ollama{}, ollamaModels)))

	handle("POST /openai/deployments/{deployment}/chat/completions", e.converse(azure{chat{}}))
	handle("POST /openai/deployments/{deployment}/embeddings", e.serve(only(azure{chat{}}, openaiEmbed)))
	handle("POST /openai/responses", e.converse(azure{responses{}}))
	handle("POST /openai/v1/chat/completions", e.converse(azure{chat{}}))
	handle("POST /openai/v1/responses", e.converse(azure{responses{}}))
	handle("POST /openai/v1/embeddings", e.serve(only(azure{chat{}}, openaiEmbed)))

	handle("POST /model/{model}/converse", e.converse(converse{}))
	handle("POST /model/{model}/converse-stream", e.converse(converse{}))
	handle("POST /model/{model}/invoke", e.invoke)
	handle("POST /model/{model}/invoke-with-response-stream", e.converse(invoke{}))

	handle("/", e.unknown)
}

// eitherOf picks between Anthropic and OpenAI by the header that every Anthropic client sends.
func eitherOf(forAnthropic, forOpenAI plain) func(*http.Request) (wire, plain) {
	return func(r *http.Request) (wire, plain) {
		if r.Header.Get("Anthropic-Version") != "" {
			return anthropic{}, forAnthropic
		}
		return openai{}, forOpenAI
	}
}

// gemini answers the methods of a Gemini model, which stand behind a colon.
func (e *Endpoint) gemini(w http.ResponseWriter, r *http.Request) {
	switch _, method := geminiCall(r); method {
	case "countTokens":
		e.serve(only(gemini{}, geminiCount))(w, r)
	case "embedContent":
		e.serve(only(gemini{}, geminiEmbed))(w, r)
	case "batchEmbedContents":
		e.serve(only(gemini{}, geminiEmbedBatch))(w, r)
	default:
		e.converse(gemini{})(w, r)
	}
}

// live answers a socket of Gemini Live, of any version of the API.
func (e *Endpoint) live(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.PathValue("service"), ".GenerativeService.BidiGenerateContent") {
		e.unknown(w, r)
		return
	}
	e.talk(gemini{}, websocket.MessageBinary, newLiveSocket)(w, r)
}

// invoke answers a Bedrock model in its own format: Titan embeds, all others speak as Anthropic's do.
func (e *Endpoint) invoke(w http.ResponseWriter, r *http.Request) {
	if titanEmbeds(r.PathValue("model")) {
		e.serve(only(bedrock{}, titanEmbed))(w, r)
		return
	}
	e.converse(invoke{})(w, r)
}
